"""TensorFlow Serving's REST interface."""

import http.client
import json
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping

from keras_transformer.serving.answers import ModelVersion, model_versions, signatures
from keras_transformer.serving.errors import misdirection, refusal, silence, too_long, too_slow

PORTS = {"http": 80, "https": 443}
PIECE = 2**16  # Bytes that are read at a time: no more than this is set aside because a server announced it.


class RestConnection:
    """Asks a model of a server over HTTP, once; each thread keeps a connection of its own open.

    Redirections are not followed, and proxies that the environment names are not used. Each call has a `timeout`, the seconds
    that it may take in all, from the connection to the last byte.

    Args:
        url: Where the server is, such as `"http://localhost:8501"`, with a path before `/v1` if a proxy adds one.
        model: Name of the model.
        version, label: Which version to ask; the newest if both are `None`.
        max_answer_bytes: Most bytes of an answer.
        headers: Sent with every request, for a proxy that asks for them.
    """

    def __init__(
        self, url: str, model: str, version: int | None, label: str | None, max_answer_bytes: int, headers: Mapping[str, str]
    ):
        self.url = url.rstrip("/")
        self.max_answer_bytes = max_answer_bytes
        self.headers = {"Content-Type": "application/json", **headers}
        for name, value in self.headers.items():
            if not (f"{name}{value}".isprintable() and f"{name}{value}".isascii()):
                raise ValueError(f"A header must be ASCII without line breaks. Received: {name!r} (the value is kept secret)")
        self._parts = urllib.parse.urlsplit(self.url)
        self._context = None
        if self._parts.scheme == "https":
            self._context = ssl.create_default_context()
            self._context.sslsocket_class = TlsSocket
        self._model = f"/v1/models/{urllib.parse.quote(model, safe='')}"
        self._chosen = self._model + version_path(version, label)
        self._local = threading.local()

    def predict(self, signature: str, inputs: Mapping[str, list], read: Callable[[dict], list], timeout: float) -> list:
        """Runs a signature on lists of values, one for each row, and returns what `read` makes of the answer."""
        body = json.dumps({"signature_name": signature, "inputs": inputs})
        return self._ask("POST", f"{self._chosen}:predict", read, timeout, body.encode())

    def status(self, timeout: float, every_version: bool = False) -> list[ModelVersion]:
        """Returns the versions that the server knows, or the chosen one."""
        return self._ask("GET", self._model if every_version else self._chosen, model_versions, timeout)

    def metadata(self, timeout: float) -> dict[str, dict]:
        """Returns the signatures."""
        return self._ask("GET", f"{self._chosen}/metadata", signatures, timeout)

    def _ask(self, method: str, path: str, read: Callable, timeout: float, body: bytes | None = None):
        address, exchanged = self.url + path, False
        try:
            path = urllib.parse.quote(self._parts.path, safe="/%") + path
            status, data = self._exchange(method, path, body, time.monotonic() + timeout)
            exchanged = True
        except TimeoutError:
            raise too_slow(address, timeout) from None
        except TooLongError:
            raise too_long(address, self.max_answer_bytes) from None
        except (OSError, http.client.HTTPException, ValueError) as error:  # (http.client reads chunk sizes below 0.)
            raise silence(address, error) from None
        finally:
            if not exchanged:
                self.close()
        if status != http.HTTPStatus.OK:
            raise refusal(address, status, error_text(data))
        try:
            return read(json.loads(data.decode("utf-8", "replace")))
        except (ValueError, RecursionError, MemoryError) as error:
            raise misdirection(address, data[:PIECE].decode("utf-8", "replace"), error) from None

    def _exchange(self, method: str, path: str, body: bytes | None, deadline: float) -> tuple[int, bytes]:
        kept = getattr(self._local, "connection", None)
        if kept is not None and kept.sock is not None:
            try:
                return self._send(kept, method, path, body, deadline)
            except (ConnectionError, http.client.BadStatusLine):  # The server had closed it.
                self.close()
        self._local.connection = self._connected(deadline)
        return self._send(self._local.connection, method, path, body, deadline)

    def _send(self, connection, method: str, path: str, body: bytes | None, deadline: float) -> tuple[int, bytes]:
        connection.sock.deadline, connection.sock.room = deadline, self.max_answer_bytes
        connection.request(method, path, body, self.headers)
        answer = connection.getresponse()
        data = b"".join(iter(lambda: answer.read(PIECE), b""))
        if answer.length:
            raise http.client.IncompleteRead(data, answer.length)
        return answer.status, data

    def _connected(self, deadline: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname, self._parts.port or PORTS[self._parts.scheme]
        if self._context is None:
            connection = http.client.HTTPConnection(host, port)
        else:
            connection = http.client.HTTPSConnection(host, port, context=self._context)
        connection.sock = connected_socket(host, port, self._context, deadline)
        return connection

    def close(self):
        """Closes the connection of this thread."""
        connection, self._local.connection = getattr(self._local, "connection", None), None
        if connection is not None:
            connection.close()


class TooLongError(Exception):
    """More bytes came than there was room for."""


class Bounded:
    """Makes a socket keep to a deadline, and to `room`: the bytes that it may still receive."""

    deadline, room = 0.0, 0

    def hurry(self, share: int = 1):
        """Gives the next operation the time that is left, or a share of it."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self.settimeout(seconds / share)

    def send(self, data, flags=0):  # noqa: D102
        self.hurry()
        return super().send(data, flags)

    def sendall(self, data, flags=0):  # noqa: D102
        self.hurry()
        return super().sendall(data, flags)  # (That of TLS calls `send`.)

    def recv_into(self, buffer):  # noqa: D102
        self.hurry()
        count = super().recv_into(buffer)
        self.room -= count
        if self.room < 0:
            raise TooLongError
        return count


class PlainSocket(Bounded, socket.socket):
    """A socket that keeps to them."""


class TlsSocket(Bounded, ssl.SSLSocket):
    """A socket with TLS that keeps to them."""


def connected_socket(host: str, port: int, context: ssl.SSLContext | None, deadline: float) -> Bounded:
    """Connects to the first address of a host that answers, and gives each an equal share of the time that is left."""
    found, failure = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), OSError("no address")
    for index, (family, kind, protocol, _, address) in enumerate(found):
        sock = PlainSocket(family, kind, protocol)
        sock.deadline = deadline
        try:
            sock.hurry(len(found) - index)
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                sock.hurry()
                sock = context.wrap_socket(sock, server_hostname=host)
            return sock
        except OSError as error:
            sock.close()
            failure = error
    raise failure


def version_path(version: int | None, label: str | None) -> str:
    """Returns the part of the address that chooses a version."""
    if version is not None:
        return f"/versions/{int(version)}"
    return f"/labels/{urllib.parse.quote(label, safe='')}" if label is not None else ""


def error_text(data: bytes) -> str:
    """Reads the message of an error: JSON from the server itself, anything from a proxy before it."""
    text = data.decode("utf-8", "replace")
    try:
        found = json.loads(text)["error"]
    except (ValueError, LookupError, TypeError, RecursionError, MemoryError):
        return text
    return found if isinstance(found, str) else text
