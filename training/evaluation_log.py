"""A log of every measurement: which text it was made on, so that one can see how often a test set was looked at."""

import datetime
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from keras_transformer.folders import naming

from .scores import Score

FILE = "evaluations.jsonl"


def log_evaluation(
    folder: Path,
    name: str,
    source: Sequence[str],
    references: Sequence[Sequence[str]],
    search: dict,
    scores: Sequence[Score],
):
    """Adds a line to the log in a folder.

    Args:
        folder: The folder of the run, or of the translator, that was measured.
        name: What the set is called.
        source: Its sentences.
        references: For each of them, one or several translations.
        search: How they were translated.
        scores: What was found.
    """
    entry = {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "set": name,
        "sentences": len(source),
        "source_sha256": text_hash(source),
        "reference_sha256": [text_hash(stream) for stream in zip(*references, strict=False)],
        "search": search,
        "scores": [score.as_json() for score in scores],
    }
    with naming(folder / FILE), open(folder / FILE, "a", encoding="utf8") as file:
        file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def text_hash(lines: Iterable[str]) -> str:
    """Returns the SHA-256 of lines of text: what `sha256sum` prints for a file of them."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
