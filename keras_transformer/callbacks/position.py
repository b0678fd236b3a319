"""Where a training stands, and in which data."""

from dataclasses import dataclass
from pathlib import Path

CONTENT = {"tokenizer": "the tokenizer", "source": "the source sentences", "target": "the target sentences"}


@dataclass(frozen=True)
class Position:
    """Where a training stands.

    Attributes:
        epoch: Number of whole epochs that are done: the epoch to go on with, counted from 0.
        step: Number of steps of that epoch that are done.
        total_steps: Number of steps done in all epochs.
        batches: Number of batches in an epoch, if known.
        stopped: Whether a callback has ended the training for good.
    """

    epoch: int = 0
    step: int = 0
    total_steps: int = 0
    batches: int | None = None
    stopped: bool = False


def check_same_data(saved: dict | None, now: dict | None, where: Path):
    """Raises a `ValueError` if a dataset is not the one that a checkpoint was written with.

    Args:
        saved: The `fingerprint` of the checkpoint's dataset, if it is known.
        now: That of the dataset to go on with, if it has one.
        where: The checkpoint.
    """
    if saved is None or now is None:
        return
    changed = [name for name in now if name in saved and saved[name] != now[name]]
    if not changed:
        return
    if "tokenizer" in changed:  # And with it the ids of the sentences, whatever the text.
        changed = [name for name in changed if name not in ("source", "target")]
    words = [CONTENT.get(name) or f"`{name}` ({saved[name]}, now {now[name]})" for name in changed]
    raise ValueError(
        f"The data has changed since the checkpoint {where} was written: {', '.join(words)}. A training goes on with the same "
        "pairs in the same order, the same tokenizer and options: put them back, or begin a new run in another directory"
    )
