"""A served model: its versions in a folder, loaded and let go of as TensorFlow Serving does it."""

import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from keras_transformer.serving.local.batching import Batching, Queue
from keras_transformer.serving.local.json_rules import RefusalError, read_request, write_response
from keras_transformer.serving.local.warm_up_requests import warm_up
from keras_transformer.serving.runtime import SavedModelSession, Signature, TensorInfo
from keras_transformer.serving.versions import versions_in

NOT_FOUND = 5
TYPE_NAMES = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE"}
UNLOADED = ("END", "")
LABEL = re.compile(r'version_labels\s*\{\s*key:\s*"([^"]*)"\s*value:\s*(\d+)')


class ServedModel:
    """The versions of a model: numeric folders, of which the newest is loaded once its warm-up requests have been answered.

    Args:
        name: The model's name.
        folder: Where the versions are.
        batching: `Batching`, or `None` for a session of its own for each request.
        threads: Threads that one operation may use.
        only: The one version to serve, instead of the newest.
        report: Called with a line whenever a version is loaded or let go of.
    """

    def __init__(
        self,
        name: str,
        folder: str | os.PathLike,
        batching: Batching | None = None,
        threads: int = 1,
        only: int | None = None,
        report: Callable[[str], object] = lambda line: None,
    ):
        self.name, self.folder, self.batching, self.threads = name, Path(folder), batching, threads
        self.only, self.report = only, report
        self.states = {}  # version: (state, error)
        self.labels = {}
        self.sessions, self.queues = {}, {}
        self.batches = Counter()  # Batches by their rows: those asked for, and those run.
        self.warm_ups = {}  # Number of warm-up requests by version.
        self.users = Counter()  # Requests by the version that they use.
        self.polling, self.changed = threading.Lock(), threading.Condition()

    def poll(self):
        """Loads the newest version, and then lets go of the one before. A version that failed is not tried again."""
        with self.polling:
            versions = [version for version in versions_in(self.folder) if self.only in (None, version)]
            newest = max(versions, default=None)
            if newest is not None and self.states.get(newest, UNLOADED) == UNLOADED:
                self.load(newest)
            wanted = newest if newest in self.sessions else max(self.sessions, default=None)
            for version in [version for version in self.sessions if version != wanted or version not in versions]:
                self.unload(version)
            self.labels = read_labels(self.folder / "models.config")

    def load(self, version: int):
        """Loads a version and lets it answer from then on, if it can be loaded."""
        self.states[version] = ("LOADING", "")
        self.report(f"{self.name}: loading version {version}")
        try:
            session = self.loaded(self.folder / str(version))
        except Exception as error:  # noqa: BLE001  (whatever is wrong with it, the version before goes on)
            self.states[version] = ("END", str(error) or type(error).__name__)
            self.report(f"{self.name}: version {version} could not be loaded: {error}")
            return
        if self.batching is not None:
            self.queues[version] = {name: self.make_queue(session, name) for name in session.signatures}
        with self.changed:
            self.sessions[version] = session
        self.states[version] = ("AVAILABLE", "")
        self.report(f"{self.name}: version {version} serves")

    def loaded(self, folder: Path) -> SavedModelSession:
        """Opens a session and lets it answer the warm-up requests."""
        session = SavedModelSession(folder, intra_op_threads=self.threads)
        try:
            self.warm_ups[int(folder.name)] = warm_up(session, folder)
        except BaseException:
            session.close()
            raise
        return session

    def make_queue(self, session: SavedModelSession, signature: str) -> Queue:
        """Returns a queue for the requests of a signature."""
        return Queue(lambda inputs, timeout: session.run(signature, inputs, timeout), self.batching, self.batches)

    def unload(self, version: int):
        """Lets go of a version, once the requests that use it have been answered."""
        self.states[version] = ("UNLOADING", "")
        with self.changed:
            session = self.sessions.pop(version)
            self.changed.wait_for(lambda: not self.users[version])
        for queue in self.queues.pop(version, {}).values():
            queue.close()
        session.close()
        self.states[version] = UNLOADED

    @contextmanager
    def held(self, version: int | None) -> Iterator[tuple[int, SavedModelSession]]:
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

    def chosen(self, version: int | None) -> int:
        """Returns the version that answers a request."""
        found = max(self.sessions, default=None) if version is None else version
        if found not in self.sessions:
            raise not_found(self.name, version)
        return found

    def predict(self, version: int | None, body: bytes, timeout: float) -> bytes:
        """Answers a request of the REST interface."""
        with self.held(version) as (version, session):
            signature, inputs, in_rows = read_request(body, session.signatures)
            if version in self.queues:
                outputs = self.queues[version][signature].ask(inputs, timeout)
            else:
                outputs = session.run(signature, inputs, timeout)
        return write_response(outputs, in_rows)

    def status(self, version: int | None) -> dict:
        """Returns the states of all versions, or of one."""
        states = dict(self.states)
        if not states or version not in (None, *states):
            raise no_versions(self.name, version)
        chosen = states if version is None else {version: states[version]}
        return {"model_version_status": [version_status(*item) for item in sorted(chosen.items(), reverse=True)]}

    def metadata(self, version: int | None) -> dict:
        """Returns the signatures of a version."""
        with self.held(version) as (version, session):
            signatures = {key: described(value) for key, value in session.signatures.items()}
        return {
            "model_spec": {"name": self.name, "signature_name": "", "version": str(version)},
            "metadata": {"signature_def": {"signature_def": signatures}},
        }

    def close(self):
        """Lets go of all versions."""
        for version in list(self.sessions):
            self.unload(version)


def read_labels(config: Path) -> dict[str, int]:
    """Returns the versions that `models.config` has names for."""
    try:
        return {label: int(version) for label, version in LABEL.findall(config.read_text(encoding="utf8"))}
    except FileNotFoundError:
        return {}


def not_found(name: str, version: int | None) -> RefusalError:
    """Makes the error of a model or a version that does not serve."""
    which = f"Latest({name})" if version is None else f"Specific({name}, {version})"
    return RefusalError(f"Servable not found for request: {which}", NOT_FOUND)


def no_versions(name: str, version: int | None) -> RefusalError:
    """Makes the error of a model or a version that was asked for its state and has none."""
    which = "any versions" if version is None else f"version {version}"
    return RefusalError(f"Could not find {which} of model {name}", NOT_FOUND)


def version_status(version: int, state: tuple[str, str]) -> dict:
    """Returns the state of a version as it is written."""
    code = "UNKNOWN" if state[1] else "OK"
    return {"version": str(version), "state": state[0], "status": {"error_code": code, "error_message": state[1]}}


def described(signature: Signature) -> dict:
    """Returns a signature as it is written."""
    sides = {"inputs": signature.inputs, "outputs": signature.outputs}
    found = {side: {name: tensor_info(info) for name, info in infos.items()} for side, infos in sides.items()}
    return {**found, "method_name": "tensorflow/serving/predict", "defaults": {}}


def tensor_info(info: TensorInfo) -> dict:
    """Returns an input or output of a signature as it is written."""
    sizes = [{"size": str(size), "name": ""} for size in info.shape or ()]
    dtype = TYPE_NAMES.get(info.dtype, f"DT_{info.dtype.upper()}")
    return {"dtype": dtype, "tensor_shape": {"dim": sizes, "unknown_rank": info.shape is None}, "name": info.tensor}
