"""The REST interface of TensorFlow Serving over HTTP, for one machine.

with LocalServer([ServedModel("en-de", "saved_models/en-de")]) as server:
    Client(server.url, model="en-de").translate("a house")
"""

import json
import re
import socket
import sys
import threading
import urllib.parse
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from keras_transformer.serving.local.json_rules import RefusalError
from keras_transformer.serving.local.models import ServedModel, no_versions, not_found
from keras_transformer.serving.runtime import TensorFlowError

# HTTP's codes by TensorFlow's; 500 for the others.
HTTP_CODES = {1: 499, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501, 14: 503, 16: 401}
PREDICT = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?:(predict)", re.IGNORECASE)
STATUS = re.compile(r"/v1/models(?:/([^/:]+))?(?:/versions/(\d+)|/labels/([^/:]+))?(?:/(metadata))?", re.IGNORECASE)
CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "POST, GET",
    "Access-Control-Allow-Headers": "Content-Type",
}
PAGES = ("/", "/index.html", "/playground.html")
MOST_BYTES = 32 << 20  # Of a request's body.
PATIENCE = 30.0  # Seconds that a client may be silent for.
LARGEST_VERSION = 2**63 - 1


class LocalServer:
    """Serves models until it is closed. The port is taken at once, and answers when the newest versions have been loaded.

    Args:
        models: The models.
        host: The address to listen at.
        port: The port; 0 takes a free one.
        cors: Whether cross-origin requests are allowed, `--rest_api_enable_cors_support`.
        timeout: Seconds that a request may take, `--rest_api_timeout_in_ms`.
        poll_every: Seconds between two looks at the folders; `None` looks only when `poll` is called.
        page: Returns the page in HTML that is shown at `/`.
    """

    def __init__(
        self,
        models: Sequence[ServedModel],
        host: str = "127.0.0.1",
        port: int = 0,
        cors: bool = False,
        timeout: float = 30.0,
        poll_every: float | None = None,
        page: Callable[[], str] | None = None,
    ):
        self.models = {model.name: model for model in models}
        self.cors, self.timeout, self.page = cors, timeout, page
        self.server = HTTPServer((host, port), type("Handler", (Handler,), {"owner": self}), bind_and_activate=False)
        try:
            self.server.server_bind()
            self.poll()
            self.server.server_activate()
        except BaseException:
            self.close()
            raise
        self.url = f"http://{host}:{self.server.server_address[1]}"
        self.ending = threading.Event()
        self.threads = [threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})]
        if poll_every is not None:
            self.threads.append(threading.Thread(target=self.keep_polling, args=[poll_every]))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self.ending.set()
        self.server.shutdown()
        for thread in self.threads:
            thread.join()
        self.close()

    def close(self):
        """Gives the port and the models' memory back."""
        self.server.server_close()
        for model in self.models.values():
            model.close()

    def keep_polling(self, seconds: float):
        """Looks at the folders until the server ends. One that cannot be read now is looked at again later."""
        while not self.ending.wait(seconds):
            try:
                self.poll()
            except OSError as error:
                print(f"cannot look for new versions: {error}", file=sys.stderr)

    def poll(self):
        """Looks at the models' folders."""
        for model in self.models.values():
            model.poll()

    def answer(self, method: str, path: str, body: bytes) -> bytes:
        """Returns the JSON that answers a request."""
        match = PREDICT.fullmatch(path) if method == "POST" else STATUS.fullmatch(path) if method == "GET" else None
        if match is None:
            raise RefusalError(f"Malformed request: {method} {path}")
        if match[1] is None:
            raise RefusalError("Missing model name in request.")
        name, version, label, what = match.groups()
        name = urllib.parse.unquote(name)
        model = self.models.get(name)
        version = self.version(model, version, label and urllib.parse.unquote(label))
        if model is None:
            raise not_found(name, version) if what else no_versions(name, version)
        if what and what.lower() == "predict":
            return model.predict(version, body, self.timeout)
        return json.dumps(model.metadata(version) if what else model.status(version), indent=1).encode()

    def version(self, model: ServedModel | None, number: str | None, label: str | None) -> int | None:
        """Returns the version that an address names, if it names one."""
        if label is not None:
            if model is None or label not in model.labels:
                raise RefusalError(f"Unrecognized servable version label: {label}")
            return model.labels[label]
        if number is not None and (len(number) > 19 or int(number) > LARGEST_VERSION):
            raise RefusalError(f"Failed to convert version: {number} to numeric value.")
        return int(number) if number is not None else None


class HTTPServer(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: socket.socket, client_address: tuple):
        """Says nothing of clients that went away."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Reads a request and writes its answer, in JSON whatever happens. `owner` is the server."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    wbufsize = -1  # Headers and content go out together.
    disable_nagle_algorithm = True
    owner = None

    def reply(self):
        """Answers the request whose headers have been read."""
        if (refusal := self.body_refusal()) is not None:
            self.send_error(*refusal)
            return
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
            self.wfile.flush()
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        if len(body) < size:  # The client has gone away.
            self.close_connection = True
            return
        self.send(*self.answer(body))

    do_GET = do_POST = do_OPTIONS = do_PUT = do_PATCH = do_DELETE = do_HEAD = reply  # noqa: N815

    def body_refusal(self) -> tuple[int, str] | None:
        """Returns why the body of the request will not be read, if it will not."""
        sizes = set(self.headers.get_all("Content-Length", ["0"]))
        if "Transfer-Encoding" in self.headers:
            return 411, "Length Required: send the body as a whole, with a Content-Length"
        if len(sizes) > 1 or not all(size.isascii() and size.isdigit() for size in sizes):
            return 400, f"Malformed request: Content-Length: {', '.join(sorted(sizes))}"
        if len(size := sizes.pop()) > 18 or int(size) > MOST_BYTES:
            return 413, f"Content Too Large: a request may have {MOST_BYTES} bytes"
        return None

    def answer(self, body: bytes) -> tuple[int, bytes, str]:
        """Returns the status, the content and its type."""
        path, owner = self.path.partition("?")[0], self.owner
        if self.command == "OPTIONS" and owner.cors:
            return 200, b"", "text/plain"
        try:
            if self.command == "GET" and path in PAGES and owner.page is not None:
                return 200, owner.page().encode(), "text/html; charset=utf-8"
            if not path.lower().startswith("/v1/"):
                return 404, in_json("Not Found"), "application/json"
            return 200, owner.answer(self.command, path, body), "application/json"
        except (RefusalError, TensorFlowError) as error:
            return HTTP_CODES.get(error.code, 500), in_json(str(error)), "application/json"
        except Exception as error:  # noqa: BLE001  (whatever it is, the client hears of it)
            return 500, in_json(f"{type(error).__name__}: {error}"), "application/json"

    def send(self, status: int, data: bytes, kind: str = "application/json"):
        """Writes an answer."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in CORS.items() if self.owner.cors else ():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None):
        """Answers what is not HTTP, or too much of it, and reads no more from this client."""
        self.close_connection = True
        self.request_version = self.protocol_version  # A request without a version would get an answer without a status.
        self.send(code, in_json(message or self.responses[code][0]))

    def handle_expect_100(self) -> bool:
        """Lets the client wait until it is clear that its body will be read."""
        return True

    def log_message(self, *arguments: object):
        """Says nothing."""


def in_json(message: str) -> bytes:
    """Returns an error as TensorFlow Serving writes it."""
    return json.dumps({"error": message}).encode()
