"""What a translation server answers, and how its answers are read."""

import re
import reprlib
from collections.abc import Iterable
from typing import NamedTuple

from keras_transformer.serving.errors import SHOWN
from keras_transformer.text.strings import clean_text

NEVER = -1e6  # Scores below this are of hypotheses that were not found.
LARGEST = 3.5e38  # No float32 is larger.
INT64 = re.compile(r"-?\d{1,19}", re.ASCII)  # As the server writes them: in strings.


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


def checked(value, form, name: str):
    """Returns a part of an answer that has the form it should have, or raises a `ValueError`.

    Args:
        value: The part.
        form: A type of JSON, `INT64`, or a list with the form of each item.
        name: What the part is called.
    """
    if isinstance(form, list) and isinstance(value, list):
        return [checked(item, form[0], name) for item in value]
    if form is float and type(value) in (int, float) and abs(value) <= LARGEST:  # NaN is not.
        return float(value)
    if form is INT64 and isinstance(value, str) and INT64.fullmatch(value):
        return int(value)
    if form in (int, bool, dict) and type(value) is form:
        return value
    if form is str and isinstance(value, str) and clean_text(value) == value:
        return value
    raise ValueError(f"{name} is {reprlib.repr(value)}")


def part(owner, name: str, form=dict, default=None):
    """Returns a named part of an object in an answer."""
    return checked(checked(owner, dict, f"what should have {name}").get(name, default), form, name)


def output_rows(answer: dict, **forms) -> list[tuple]:
    """Returns the values of the named outputs of a signature, a row for each text."""
    outputs = part(answer, "outputs")
    return list(zip(*(part(outputs, name, [form]) for name, form in forms.items()), strict=True))


def served_translations(answer: dict) -> list[ServedTranslation]:
    """Reads an answer of the signatures that translate."""
    return [ServedTranslation(*row) for row in output_rows(answer, translation=str, score=float, truncated=bool)]


def hypotheses(answer: dict) -> list[list[Hypothesis]]:
    """Reads an answer of the signature `nbest`."""
    rows = output_rows(answer, translations=[str], scores=[float])
    return [[Hypothesis(*one) for one in zip(*row, strict=True) if one[1] > NEVER] for row in rows]


def target_scores(answer: dict) -> list[TargetScore]:
    """Reads an answer of the signature `score`."""
    return [TargetScore(*row) for row in output_rows(answer, log_probability=float, token_count=int)]


def alignments(answer: dict) -> list[Alignment]:
    """Reads an answer of the signature `align`."""
    rows = output_rows(answer, translation=str, source_tokens=[str], target_tokens=[str], alignment=[[float]])
    return [unpadded(*row) for row in rows]


def unpadded(translation: str, source: list[str], target: list[str], weights: list[list[float]]) -> Alignment:
    """Removes what fills a row up to the longest of its batch."""
    if [len(row) for row in weights] != [len(source)] * len(target):
        raise ValueError(f"alignment has not {len(target)} rows of {len(source)} weights")
    source_length, target_length = (len([token for token in tokens if token]) for tokens in (source, target))
    weights = [row[:source_length] for row in weights[:target_length]]
    return Alignment(translation, source[:source_length], target[:target_length], weights)


def model_versions(answer: dict) -> list[ModelVersion]:
    """Reads the server's answer about its versions."""
    found = part(answer, "model_version_status", [dict])
    messages = [part(part(one, "status", dict, {}), "error_message", str, "") for one in found]
    names = [(part(one, "version", INT64), part(one, "state", str)) for one in found]
    return [ModelVersion(*name, message) for name, message in zip(names, messages, strict=True)]


def described(versions: Iterable[ModelVersion]) -> str:
    """Says which versions there are."""
    return ", ".join(f"{one.version} {one.state} {one.message}".strip() for one in versions)[:SHOWN] or "none"


def signatures(answer: dict) -> dict[str, dict]:
    """Reads the server's description of the signatures."""
    found = part(part(part(answer, "metadata"), "signature_def"), "signature_def")
    return {name: signature_of(found[name]) for name in sorted(found) if not name.startswith("__")}


def signature_of(found: dict) -> dict[str, dict]:
    """Reads the server's description of a signature."""
    sides = {side: part(found, side, dict, {}) for side in ("inputs", "outputs")}
    return {side: {name: tensor_of(info) for name, info in sorted(infos.items())} for side, infos in sides.items()}


def tensor_of(info: dict) -> dict:
    """Reads the server's description of an input or output."""
    sizes = part(part(info, "tensor_shape", dict, {}), "dim", [dict], [])
    dtype = part(info, "dtype", str).removeprefix("DT_").lower()
    dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    return {"dtype": dtype, "shape": [part(size, "size", INT64, "0") for size in sizes]}
