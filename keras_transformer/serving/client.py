"""A client of TensorFlow Serving; as a program, see `keras_transformer.serving.client_arguments`."""

import random
import sys
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence

from keras_transformer.serving.answers import (
    Alignment,
    ModelVersion,
    ServedTranslation,
    TargetScore,
    alignments,
    described,
    hypotheses,
    served_translations,
    target_scores,
    text_of,
)
from keras_transformer.serving.errors import NOT_FOUND, ServingError
from keras_transformer.serving.rest_client import RestConnection
from keras_transformer.text.strings import clean_texts, is_single

FIRST_DELAY, LONGEST_DELAY = 0.2, 5.0  # Seconds before the first retry, doubled for each further one.
LONGEST_TIMEOUT = 10**6  # Seconds. Sockets take no more than twice that.
POLL, LOOK = 0.25, 1.0  # Seconds between two looks at a model that is being loaded, and those that even the last may take.
AS_EXPORTED = {"beam_size": 0, "length_penalty": -1.0, "max_length": 0}  # What stands for the exported values in a request.


class Client:
    """Translates with a model that TensorFlow Serving runs. May be used by several threads.

    Whatever a server sends, a call returns an answer of the documented form or raises `ServingError`.

    Args:
        url: `"http://host:8501"` for the server's REST port, or `"grpc://host:8500"` for the other, which needs the package
            tensorflow-serving-api: `pip install "keras3-transformer[serving]"`.
        model: The model's name on the server.
        version: Which version to ask. Defaults to the newest.
        label: Which version to ask, by its label, such as `"stable"`.
        timeout: Most seconds for one request, from the connection to the last byte, its retries included. Only the lookup of
            the server's name is not counted.
        retries: How often a request is sent again, after a growing pause, if the server can't be reached or is overloaded.
        batch_size: Most texts in a request.
        max_answer_bytes: Most bytes of the answer to one request.
        headers: Sent with every REST request, for a proxy that asks for them.

    Example:

        client = Client("http://localhost:8501", model="en-de")
        client.translate(["a house", "a tree"])  # ["ein Haus", "ein Baum"]
    """

    def __init__(
        self,
        url: str = "http://localhost:8501",
        *,
        model: str,
        version: int | None = None,
        label: str | None = None,
        timeout: float = 30,
        retries: int = 3,
        batch_size: int = 32,
        max_answer_bytes: int = 2**25,
        headers: Mapping[str, str] | None = None,
    ):
        if version is not None and label is not None:
            raise ValueError(f"Give a version or a label, not both. Received: version={version}, label={label!r}")
        if not 0 < timeout <= LONGEST_TIMEOUT:
            raise ValueError(f"`timeout` must be more than 0 s, and at most {LONGEST_TIMEOUT}. Received: timeout={timeout}")
        if retries < 0:
            raise ValueError(f"`retries` must not be negative. Received: retries={retries}")
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1. Received: batch_size={batch_size}")
        self.model = model
        self.timeout = timeout
        self.retries = retries
        self.batch_size = batch_size
        self._connection = connect(url, model, version, label, max_answer_bytes, headers or {})

    def translate(
        self,
        texts: str | Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        return_scores: bool = False,
    ) -> str | ServedTranslation | list:
        """Translates a text or a list of texts.

        Args:
            texts: A text, or a list of them.
            beam_size, length_penalty, max_length: `None` leaves what the model was exported with. Larger values than the
                export allows are cut to its limits.
            return_scores: Whether to return `ServedTranslation`s instead of strings.

        Returns:
            What was asked for, for each text in order; for a single text, the one.
        """
        options = {"beam_size": beam_size, "length_penalty": length_penalty, "max_length": max_length}
        options = with_exported(options) if any(value is not None for value in options.values()) else {}
        signature = "translate_with_options" if options else "serving_default"

        def ask(texts):
            rows = {name: [value] * len(texts) for name, value in options.items()}
            return self._predict(signature, {"text": texts, **rows}, served_translations)

        found = self._in_batches(ask, texts)
        return found if return_scores else text_of(found)

    def nbest(self, texts: str | Sequence[str]) -> list:
        """Returns the best `Hypothesis`es of each text, best first: as many as were exported, or as were found."""
        return self._in_batches(lambda texts: self._predict("nbest", {"text": texts}, hypotheses), texts)

    def score(self, sources: str | Sequence[str], targets: str | Sequence[str]) -> TargetScore | list[TargetScore]:
        """Returns a `TargetScore` for each pair of a text and its translation."""
        if is_single(sources) != is_single(targets) or (not is_single(sources) and len(sources) != len(targets)):
            raise ValueError("`sources` and `targets` must be two texts, or two lists of the same length")

        def ask(sources, targets):
            return self._predict("score", {"source": sources, "target": targets}, target_scores)

        return self._in_batches(ask, sources, targets)

    def align(self, texts: str | Sequence[str]) -> Alignment | list[Alignment]:
        """Translates, and tells for each target token how much the model looked at each source token."""
        return self._in_batches(lambda texts: self._predict("align", {"text": texts}, alignments), texts)

    def status(self) -> list[ModelVersion]:
        """Returns the versions of the model that the server knows, or the chosen one."""
        return self._with_retries(self._connection.status)

    def metadata(self) -> dict[str, dict]:
        """Returns the signatures: for each, the dtype and shape of its inputs and outputs; -1 is a size that is free."""
        return self._with_retries(self._connection.metadata)

    def wait_until_ready(self, timeout: float = 60) -> ModelVersion:
        """Waits until a version of the model answers, and returns it. Raises `ServingError` if none does in time.

        The last look at the server may take a second more.
        """
        left, deadline = timeout, time.monotonic() + timeout
        while True:
            try:
                found = self._connection.status(min(self.timeout, max(left, LOOK)))
                ready = [version for version in found if version.state == "AVAILABLE"]
                if ready:
                    return max(ready)
                reason = ServingError(f"The model {self.model!r} is not ready: {described(found)}")
            except ServingError as error:
                reason = error
            left = deadline - time.monotonic()
            if left <= 0:
                raise ServingError(f"Not ready after {timeout:g} s. {reason}", reason.status) from reason
            time.sleep(min(POLL, left))

    def close(self):
        """Closes this thread's connection to the server."""
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def _in_batches(self, ask: Callable[..., list], *columns: str | Sequence[str]):
        """Asks for some texts at a time, those of similar length together, and puts the answers in order."""
        if is_single(columns[0]):
            return ask(*([clean] for clean in clean_texts(columns)))[0]
        columns = [clean_texts(column) for column in columns]
        order = sorted(range(len(columns[0])), key=lambda index: len(columns[0][index]))
        answers = [None] * len(order)
        for start in range(0, len(order), self.batch_size):
            chosen = order[start : start + self.batch_size]
            found = ask(*([column[index] for index in chosen] for column in columns))
            for index, answer in zip(chosen, found, strict=True):
                answers[index] = answer
        return answers

    def _predict(self, signature: str, inputs: Mapping[str, list], read: Callable[[dict], list]) -> list:
        count = len(next(iter(inputs.values())))

        def read_all(answer):
            found = read(answer)
            if len(found) != count:
                raise ValueError(f"{len(found)} rows for {count} texts")
            return found

        return self._with_retries(lambda seconds: self._connection.predict(signature, inputs, read_all, seconds))

    def _with_retries(self, ask: Callable[[float], list | dict]) -> list | dict:
        """Asks, with the seconds that are left, until there is an answer or no time for another pause."""
        deadline = time.monotonic() + self.timeout
        left = self.timeout
        for attempt in range(self.retries + 1):
            pause = min(LONGEST_DELAY, FIRST_DELAY * 2**attempt) * random.uniform(0.5, 1)
            try:
                return ask(left)
            except ServingError as error:
                left = deadline - pause - time.monotonic()
                if error.status == NOT_FOUND and left > 0:
                    raise self._explained(error, left) from error
                if not error.can_retry or attempt == self.retries or left <= 0:
                    raise
            time.sleep(pause)

    def _explained(self, error: ServingError, seconds: float) -> ServingError:
        """Adds what the server does have."""
        try:
            found = described(self._connection.status(seconds, every_version=True))
        except ServingError:
            found = "none. Is the name the one of --model_name, or of models.config?"
        return ServingError(f"{error}. Versions of {self.model!r} on the server: {found}", error.status)


def connect(url: str, model: str, version: int | None, label: str | None, max_answer_bytes: int, headers: Mapping):
    """Chooses the protocol that a URL asks for, and keeps secrets out of URLs, which messages show."""
    shown = url.rpartition("@")[2].partition("?")[0]  # (The rest may be secret.)
    scheme = url.partition("://")[0]
    if scheme not in ("http", "https", "grpc"):
        raise ValueError(f"The URL must begin with http://, https:// or grpc://. Received: url={shown!r}")
    try:
        parts = urllib.parse.urlsplit(url)
        valid = parts.hostname and parts.port != 0 and not (parts.query or parts.fragment or "@" in url)
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(
            "The URL must have the form http://host:port/path. A user, a password or a token goes into `headers`: "
            f"{{'Authorization': 'Bearer ...'}}. Received (without what may be secret): url={shown!r}"
        )
    if scheme == "grpc":
        from keras_transformer.serving.grpc_client import GrpcConnection

        return GrpcConnection(url, model, version, label, max_answer_bytes)
    return RestConnection(url, model, version, label, max_answer_bytes, headers)


def with_exported(options: Mapping[str, float | None]) -> dict[str, float]:
    """Checks options, and fills in what stands for the exported ones."""
    found = {}
    for name, least, kind in (("beam_size", 1, int), ("length_penalty", 0, float), ("max_length", 1, int)):
        value = AS_EXPORTED[name] if options[name] is None else options[name]
        if options[name] is not None and not (least <= value < 2**31 and kind(value) == value):
            whole = "whole, " if kind is int else ""
            raise ValueError(f"`{name}` must be at least {least}, {whole}and below 2**31, or `None`. Received: {name}={value}")
        found[name] = kind(value)
    return found


if __name__ == "__main__":
    from keras_transformer.serving.command import main

    sys.exit(main())
