"""What a contender hands to the worker that times it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Runner:
    """Training steps that are ready to run.

    Attributes:
        run: Takes a number of steps, runs them, and returns the seconds of each.
        num_parameters: Number of trained values, to see that all contenders are of one size.
    """

    run: Callable[[int], list[float]]
    num_parameters: int
