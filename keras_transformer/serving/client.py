"""Asks a translation server: `python -m keras_transformer.serving.client --model NAME [TEXT ...]`.

Translates the texts of the command line, or what comes through the standard input, a sentence a line. With --scores each line
begins with the score and a tab; with --nbest there are several lines for each sentence, best first, that begin with its number
and a tab.
"""

import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from keras_transformer.serving.answers import (
    Alignment,
    Hypothesis,
    ModelVersion,
    ServedTranslation,
    TargetScore,
    described,
    model_versions,
    signature_of,
    text_of,
    unpadded,
)
from keras_transformer.serving.errors import NOT_FOUND, ServingError
from keras_transformer.serving.rest_client import RestConnection
from keras_transformer.text.strings import clean_texts, is_single

FIRST_DELAY, LONGEST_DELAY = 0.2, 5.0  # Seconds before the first retry, doubled for each further one.
POLL = 0.25  # Seconds between two looks at a model that is being loaded.
AS_EXPORTED = {"beam_size": 0, "length_penalty": -1.0, "max_length": 0}  # What stands for the exported values in a request.
NEVER = -1e6  # Scores below this are of hypotheses that were not found.


class Client:
    """Translates with a model that TensorFlow Serving runs. May be used by several threads.

    Args:
        url: `"http://host:8501"` for the server's REST port, or `"grpc://host:8500"` for the other, which needs the package
            tensorflow-serving-api: `pip install "keras3-transformer[serving]"`.
        model: The model's name on the server.
        version: Which version to ask. Defaults to the newest.
        label: Which version to ask, by its label, such as `"stable"`.
        timeout: Seconds to wait for the answer to one request.
        retries: How often a request is sent again, after a growing pause, if the server can't be reached or is overloaded.
        batch_size: Most texts in a request.
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
        headers: Mapping[str, str] | None = None,
    ):
        if version is not None and label is not None:
            raise ValueError(f"Give a version or a label, not both. Received: version={version}, label={label!r}")
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1. Received: batch_size={batch_size}")
        self.model = model
        self.retries = retries
        self.batch_size = batch_size
        self._connection = connect(url, model, version, label, timeout, headers)

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
            found = self._predict(signature, {"text": texts, **rows})
            return list(map(ServedTranslation, found["translation"], found["score"], found["truncated"]))

        found = self._in_batches(ask, texts)
        return found if return_scores else text_of(found)

    def nbest(self, texts: str | Sequence[str]) -> list:
        """Returns the best `Hypothesis`es of each text, best first: as many as were exported, or as were found."""

        def ask(texts):
            found = self._predict("nbest", {"text": texts})
            rows = [map(Hypothesis, *row) for row in zip(found["translations"], found["scores"], strict=True)]
            return [[one for one in row if one.score > NEVER] for row in rows]

        return self._in_batches(ask, texts)

    def score(self, sources: str | Sequence[str], targets: str | Sequence[str]) -> TargetScore | list[TargetScore]:
        """Returns a `TargetScore` for each pair of a text and its translation."""
        if is_single(sources) != is_single(targets) or (not is_single(sources) and len(sources) != len(targets)):
            raise ValueError("`sources` and `targets` must be two texts, or two lists of the same length")

        def ask(sources, targets):
            found = self._predict("score", {"source": sources, "target": targets})
            return list(map(TargetScore, found["log_probability"], found["token_count"]))

        return self._in_batches(ask, sources, targets)

    def align(self, texts: str | Sequence[str]) -> Alignment | list[Alignment]:
        """Translates, and tells for each target token how much the model looked at each source token."""

        def ask(texts):
            found = self._predict("align", {"text": texts})
            names = ("translation", "source_tokens", "target_tokens", "alignment")
            return [unpadded(*row) for row in zip(*(found[name] for name in names), strict=True)]

        return self._in_batches(ask, texts)

    def status(self) -> list[ModelVersion]:
        """Returns the versions of the model that the server knows, or the chosen one."""
        return model_versions(self._with_retries(self._connection.status))

    def metadata(self) -> dict[str, dict]:
        """Returns the signatures: for each, the dtype and shape of its inputs and outputs; -1 is a size that is free."""
        answer = self._with_retries(self._connection.metadata)
        signatures = answer["metadata"]["signature_def"]["signature_def"]
        return {name: signature_of(found) for name, found in sorted(signatures.items()) if not name.startswith("__")}

    def wait_until_ready(self, timeout: float = 60) -> ModelVersion:
        """Waits until a version of the model answers, and returns it. Raises `ServingError` if none does in time."""
        deadline = time.monotonic() + timeout
        while True:
            late = time.monotonic() >= deadline
            try:
                found = model_versions(self._connection.status())
                ready = [version for version in found if version.state == "AVAILABLE"]
                if ready:
                    return max(ready)
                reason = ServingError(f"The model {self.model!r} is not ready: {described(found)}")
            except ServingError as error:
                reason = error
            if late:
                raise ServingError(f"Not ready after {timeout:g} s. {reason}", reason.status) from reason
            time.sleep(POLL)

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

    def _predict(self, signature: str, inputs: Mapping[str, list]) -> dict[str, list]:
        return self._with_retries(lambda: self._connection.predict(signature, inputs))

    def _with_retries(self, ask: Callable[[], dict]) -> dict:
        for attempt in range(self.retries + 1):
            try:
                return ask()
            except ServingError as error:
                if error.status == NOT_FOUND:
                    raise self._explained(error) from error
                if not error.can_retry or attempt == self.retries:
                    raise
            time.sleep(min(LONGEST_DELAY, FIRST_DELAY * 2**attempt) * random.uniform(0.5, 1))

    def _explained(self, error: ServingError) -> ServingError:
        """Adds what the server does have."""
        try:
            found = described(model_versions(self._connection.status(every_version=True)))
        except ServingError:
            found = "none. Is the name the one of --model_name, or of models.config?"
        return ServingError(f"{error}. Versions of {self.model!r} on the server: {found}", error.status)


def connect(url: str, model: str, version: int | None, label: str | None, timeout: float, headers: Mapping | None):
    """Chooses the protocol that a URL asks for."""
    scheme = url.partition("://")[0]
    if scheme in ("http", "https"):
        return RestConnection(url, model, version, label, timeout, headers)
    if scheme == "grpc":
        from keras_transformer.serving.grpc_client import GrpcConnection

        return GrpcConnection(url, model, version, label, timeout)
    raise ValueError(f"The URL must begin with http://, https:// or grpc://. Received: url={url!r}")


def with_exported(options: Mapping[str, float | None]) -> dict[str, float]:
    """Checks options, and fills in what stands for the exported ones."""
    for name, least in (("beam_size", 1), ("length_penalty", 0), ("max_length", 1)):
        if options[name] is not None and not options[name] >= least:
            raise ValueError(f"`{name}` must be at least {least}, or `None`. Received: {name}={options[name]}")
    return {name: AS_EXPORTED[name] if value is None else value for name, value in options.items()}


if __name__ == "__main__":
    from keras_transformer.serving.command import main

    sys.exit(main())
