"""TensorFlow Serving's REST interface."""

import http.client
import json
import threading
import urllib.parse
from collections.abc import Mapping

from keras_transformer.serving.errors import misdirection, refusal, silence, too_slow


class RestConnection:
    """Asks a model of a server over HTTP, once; each thread keeps a connection of its own open.

    Args:
        url: Where the server is, such as `"http://localhost:8501"`, with a path before `/v1` if a proxy adds one.
        model: Name of the model.
        version, label: Which version to ask; the newest if both are `None`.
        timeout: Seconds to wait for an answer.
        headers: Sent with every request, for a proxy that asks for them.
    """

    def __init__(
        self,
        url: str,
        model: str,
        version: int | None = None,
        label: str | None = None,
        timeout: float = 30,
        headers: Mapping[str, str] | None = None,
    ):
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.headers = {"Content-Type": "application/json", **(headers or {})}
        self._parts = urllib.parse.urlsplit(self.url)
        self._model = f"/v1/models/{urllib.parse.quote(model, safe='')}"
        self._chosen = self._model + version_path(version, label)
        self._local = threading.local()

    def predict(self, signature: str, inputs: Mapping[str, list]) -> dict[str, list]:
        """Runs a signature on lists of values, one for each row."""
        body = json.dumps({"signature_name": signature, "inputs": inputs})
        return self._ask("POST", f"{self._chosen}:predict", "outputs", body.encode())["outputs"]

    def status(self, every_version: bool = False) -> dict:
        """Returns the server's answer about the state of the versions."""
        return self._ask("GET", self._model if every_version else self._chosen, "model_version_status")

    def metadata(self) -> dict:
        """Returns the server's answer about the signatures."""
        return self._ask("GET", f"{self._chosen}/metadata", "metadata")

    def _ask(self, method: str, path: str, expected: str, body: bytes | None = None) -> dict:
        """Returns the server's answer, an object that has the expected field."""
        address = self.url + path
        try:
            status, data = self._exchange(method, self._parts.path + path, body)
        except TimeoutError:
            self._disconnect()
            raise too_slow(address, self.timeout) from None
        except (OSError, http.client.HTTPException) as error:
            self._disconnect()
            raise silence(address, error or type(error).__name__) from error
        if status != http.HTTPStatus.OK:
            raise refusal(address, status, error_text(data))
        text = data.decode("utf-8", "replace")
        answer = json_object(text)
        if expected not in answer:
            raise misdirection(address, text)
        return answer

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection, is_new = self._connection()
        try:
            return self._send(connection, method, path, body)
        except (ConnectionError, http.client.BadStatusLine):
            if is_new:
                raise
        self._disconnect()  # The server had closed a connection that was kept.
        return self._send(self._connection()[0], method, path, body)

    def _send(self, connection, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection.request(method, path, body, self.headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        """Returns this thread's connection, and whether it is a new one."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            return connection, False
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        self._local.connection = kind(self._parts.hostname, self._parts.port, timeout=self.timeout)
        return self._local.connection, True

    def _disconnect(self):
        connection, self._local.connection = getattr(self._local, "connection", None), None
        if connection is not None:
            connection.close()

    def close(self):
        """Closes the connection of this thread."""
        self._disconnect()


def version_path(version: int | None, label: str | None) -> str:
    """Returns the part of the address that chooses a version."""
    if version is not None:
        return f"/versions/{int(version)}"
    return f"/labels/{urllib.parse.quote(label, safe='')}" if label is not None else ""


def json_object(text: str) -> dict:
    """Reads a JSON object; anything else is read as an empty one."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def error_text(data: bytes) -> str:
    """Reads the message of an error: JSON from the server itself, anything from a proxy before it."""
    text = data.decode("utf-8", "replace")
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return text[:500]
