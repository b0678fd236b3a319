"""Where a training stands."""

from dataclasses import dataclass


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
