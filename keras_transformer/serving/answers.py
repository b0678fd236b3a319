"""What a translation server answers, and how its answers are read."""

from collections.abc import Iterable
from typing import NamedTuple


class ServedTranslation(NamedTuple):
    """A translation, what it was compared by, and whether its source was cut at the server's limit."""

    text: str
    score: float
    truncated: bool


class Hypothesis(NamedTuple):
    """One of several translations, and what it was compared by."""

    text: str
    score: float


class TargetScore(NamedTuple):
    """How likely a translation is: the log-probability of all its tokens, and how many they are, the end included."""

    log_probability: float
    token_count: int


class Alignment(NamedTuple):
    """A translation and where the model looked: a row of `weights` for each target token, a column for each source token."""

    translation: str
    source_tokens: list[str]
    target_tokens: list[str]
    weights: list[list[float]]


class ModelVersion(NamedTuple):
    """A version that the server knows. `state` is `"AVAILABLE"` once it answers; `message` says why it does not."""

    version: int
    state: str
    message: str


def text_of(found: ServedTranslation | list[ServedTranslation]) -> str | list[str]:
    """Leaves only the text of translations."""
    return [one.text for one in found] if isinstance(found, list) else found.text


def unpadded(translation: str, source: list[str], target: list[str], weights: list[list[float]]) -> Alignment:
    """Removes what fills a row up to the longest of its batch."""
    source_length, target_length = (len([token for token in tokens if token]) for tokens in (source, target))
    weights = [row[:source_length] for row in weights[:target_length]]
    return Alignment(translation, source[:source_length], target[:target_length], weights)


def model_versions(answer: dict) -> list[ModelVersion]:
    """Reads the server's answer about its versions."""
    found = answer.get("model_version_status", [])
    return [ModelVersion(int(one["version"]), one["state"], one.get("status", {}).get("error_message", "")) for one in found]


def described(versions: Iterable[ModelVersion]) -> str:
    """Says which versions there are."""
    return ", ".join(f"{one.version} {one.state} {one.message}".strip() for one in versions) or "none"


def signature_of(found: dict) -> dict[str, dict]:
    """Reads the server's description of a signature."""
    return {
        side: {name: tensor_of(info) for name, info in sorted(found.get(side, {}).items())} for side in ("inputs", "outputs")
    }


def tensor_of(info: dict) -> dict:
    """Reads the server's description of an input or output."""
    shape = [int(size.get("size", 0)) for size in info.get("tensor_shape", {}).get("dim", [])]
    dtype = info["dtype"].removeprefix("DT_").lower()
    return {"dtype": {"float": "float32", "double": "float64"}.get(dtype, dtype), "shape": shape}
