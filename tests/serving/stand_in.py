"""A stand-in for TensorFlow Serving, for tests. It is not TensorFlow Serving.

What it shares with the server: the C runtime that runs the graph, the rules of the REST interface, of batching, of version
folders and of cross-origin requests, each written after the server's source. What it lacks: everything else.

    with StandIn({"en-de": "saved_models/en-de"}) as server:
        Client(server.url, model="en-de").translate("a house")
"""

import json
import re
import threading
import urllib.parse
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from keras_transformer.serving.runtime import SavedModelSession, TensorFlowError
from tests.serving.batching import Queue
from tests.serving.json_rules import RefusalError, read_request, write_response
from tests.serving.warmup import warm_up

NOT_FOUND = 5
HTTP_CODES = {1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 8: 429, 9: 400, 11: 400, 12: 501, 13: 500, 14: 503}
PREDICT = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?:(predict)", re.IGNORECASE)
STATUS = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?(/metadata)?", re.IGNORECASE)
CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "POST, GET",
    "Access-Control-Allow-Headers": "Content-Type",
}
TYPE_NAMES = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE"}


class Model:
    """The versions of a model: numeric folders, of which the newest is loaded once its warm-up requests have been answered.

    Args:
        name: The model's name.
        folder: Where the versions are.
        batching: `Batching`, or `None` for a session of its own for each request.
        threads: Threads of the runtime.
    """

    def __init__(self, name, folder, batching=None, threads=1):
        self.name, self.folder, self.batching, self.threads = name, Path(folder), batching, threads
        self.states = {}  # version: (state, error)
        self.sessions, self.queues = {}, {}
        self.batches = []  # Rows of each batch: those asked for, and those run.
        self.warm_ups = {}  # Number of warm-up requests by version.
        self.users = Counter()  # Requests by the version that they use.
        self.polling, self.changed = threading.Lock(), threading.Condition()

    def poll(self):
        """Loads the newest version, and then lets go of the one before. A version that failed is not tried again."""
        with self.polling:
            versions = [int(path.name) for path in self.folder.glob("*") if path.name.isdigit() and path.is_dir()]
            newest = max(versions, default=None)
            if newest is not None and newest not in self.states:
                self.load(newest)
            wanted = newest if newest in self.sessions else max(self.sessions, default=None)
            for version in [version for version in self.sessions if version != wanted or version not in versions]:
                self.unload(version)

    def load(self, version):
        self.states[version] = ("LOADING", "")
        try:
            session = self.loaded(self.folder / str(version))
        except (TensorFlowError, RefusalError, ValueError) as error:
            self.states[version] = ("END", str(error))
            return
        if self.batching is not None:
            self.queues[version] = {name: self.make_queue(session, name) for name in session.signatures}
        with self.changed:
            self.sessions[version] = session
        self.states[version] = ("AVAILABLE", "")

    def loaded(self, folder):
        session = SavedModelSession(folder, self.threads, self.threads)
        try:
            self.warm_ups[int(folder.name)] = warm_up(session, folder)
        except (TensorFlowError, RefusalError):
            session.close()
            raise
        return session

    def make_queue(self, session, signature):
        return Queue(lambda inputs, timeout: session.run(signature, inputs, timeout), self.batching, self.batches)

    def unload(self, version):
        self.states[version] = ("UNLOADING", "")
        with self.changed:
            session = self.sessions.pop(version)
            self.changed.wait_for(lambda: not self.users[version])
        for queue in self.queues.pop(version, {}).values():
            queue.close()
        session.close()
        self.states[version] = ("END", "")

    @contextmanager
    def held(self, version):
        """Gives a loaded version, the newest unless it is named, and keeps it loaded meanwhile."""
        with self.changed:
            version = self.chosen(version)
            session = self.sessions[version]
            self.users[version] += 1
        try:
            yield version, session
        finally:
            with self.changed:
                self.users[version] -= 1
                self.changed.notify_all()

    def chosen(self, version):
        found = max(self.sessions, default=None) if version is None else version
        if found not in self.sessions:
            which = f"Latest({self.name})" if version is None else f"Specific({self.name}, {version})"
            raise RefusalError(f"Servable not found for request: {which}", NOT_FOUND)
        return found

    def predict(self, version, body, timeout):
        with self.held(version) as (version, session):
            signature, inputs, in_rows = read_request(body, session.signatures)
            if version in self.queues:
                outputs = self.queues[version][signature].ask(inputs, timeout)
            else:
                outputs = session.run(signature, inputs, timeout)
        return write_response(outputs, in_rows)

    def close(self):
        for version in list(self.sessions):
            self.unload(version)


class StandIn:
    """The stand-in server, on a free port of the loopback interface.

    Args:
        models: Folders of versions by the names of the models.
        batching: `Batching`; `None` switches it off, as it is by default in the server.
        cors: Whether cross-origin requests are allowed, `--rest_api_enable_cors_support`.
        labels: Versions by label, for all models.
        timeout: Seconds that a request may take, `--rest_api_timeout_in_ms`.
        poll_every: Seconds between two looks at the folders; `None` looks only when `poll` is called.
        threads: Threads of the runtime.
    """

    def __init__(self, models, batching=None, cors=False, labels=None, timeout=30.0, poll_every=None, threads=1):
        self.models = {name: Model(name, folder, batching, threads) for name, folder in models.items()}
        self.cors, self.labels, self.timeout = cors, labels or {}, timeout
        self.requests = []  # Method, path and body of each.
        self.poll()
        handler = type("Handler", (Handler,), {"stand_in": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
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
        self.server.server_close()
        for model in self.models.values():
            model.close()

    def keep_polling(self, seconds):
        while not self.ending.wait(seconds):
            self.poll()

    def poll(self):
        for model in self.models.values():
            model.poll()

    def answer(self, method, path, body):
        """Returns the JSON that answers a request."""
        match = PREDICT.fullmatch(path) if method == "POST" else STATUS.fullmatch(path) if method == "GET" else None
        if match is None:
            raise RefusalError(f"Malformed request: {method} {path}")
        name, version, label, what = match.groups()
        name = urllib.parse.unquote(name)
        if label is not None:
            version = self.labelled(urllib.parse.unquote(label))
        version = int(version) if version is not None else None
        if what == "predict":
            return self.model(name, version).predict(version, body, self.timeout)
        return json.dumps(self.metadata(name, version) if what else self.status(name, version), indent=1).encode()

    def labelled(self, label):
        if label not in self.labels:
            raise RefusalError(f"Unrecognized servable version label: {label}")
        return self.labels[label]

    def model(self, name, version):
        if name not in self.models:
            which = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise RefusalError(f"Servable not found for request: {which}", NOT_FOUND)
        return self.models[name]

    def status(self, name, version):
        states = self.models[name].states if name in self.models else {}
        if version is not None and version not in states:
            raise RefusalError(f"Could not find version {version} of model {name}", NOT_FOUND)
        if not states:
            raise RefusalError(f"Could not find any versions of model {name}", NOT_FOUND)
        chosen = states if version is None else {version: states[version]}
        return {"model_version_status": [version_status(*item) for item in sorted(chosen.items(), reverse=True)]}

    def metadata(self, name, version):
        with self.model(name, version).held(version) as (version, session):
            signatures = {key: described(value) for key, value in session.signatures.items()}
        return {
            "model_spec": {"name": name, "signature_name": "", "version": str(version)},
            "metadata": {"signature_def": {"signature_def": signatures}},
        }


class Handler(BaseHTTPRequestHandler):
    """Reads a request and writes its answer. `stand_in` is the server."""

    protocol_version = "HTTP/1.1"
    stand_in = None

    def do_GET(self):
        self.reply()

    do_POST = do_OPTIONS = do_GET  # noqa: N815

    def reply(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urllib.parse.urlsplit(self.path).path
        self.stand_in.requests.append((self.command, path, body))
        status, data = self.answer(path, body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in CORS.items() if self.stand_in.cors else ():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def answer(self, path, body):
        if self.command == "OPTIONS" and self.stand_in.cors:
            return 200, b""
        try:
            return 200, self.stand_in.answer(self.command, path, body)
        except (RefusalError, TensorFlowError) as error:
            return HTTP_CODES[error.code], json.dumps({"error": str(error)}).encode()

    def log_message(self, *arguments):
        """Says nothing."""


def version_status(version, state):
    code = "UNKNOWN" if state[1] else "OK"
    return {"version": str(version), "state": state[0], "status": {"error_code": code, "error_message": state[1]}}


def described(signature):
    sides = {"inputs": signature.inputs, "outputs": signature.outputs}
    found = {side: {name: tensor_info(info) for name, info in infos.items()} for side, infos in sides.items()}
    return {**found, "method_name": "tensorflow/serving/predict", "defaults": {}}


def tensor_info(info):
    sizes = [{"size": str(size), "name": ""} for size in info.shape or ()]
    dtype = TYPE_NAMES.get(info.dtype, f"DT_{info.dtype.upper()}")
    return {"dtype": dtype, "tensor_shape": {"dim": sizes, "unknown_rank": info.shape is None}, "name": info.tensor}
