"""What every contender hands to the worker that times it."""

from collections.abc import Callable
from typing import Protocol

from benchmarks.decoding.jobs import Job


class Decoder(Protocol):
    """A model that is ready to translate."""

    def prepare(self, job: Job) -> Callable[[], list]:
        """Returns a function that translates all batches of a job; making inputs ready and compiling is done before."""

    def read(self, job: Job, found: list) -> tuple[list[list[int]], list[int]]:
        """Reads what that function returned.

        Returns:
            A tuple: the ids of each translation, without its end, and how many steps the decoder took for each batch.
        """


def with_steps(batches: list[list[list[int]]], job: Job) -> tuple[list[list[int]], list[int]]:
    """Returns the rows of all batches, and as many steps for each batch as its longest translation has tokens.

    Rows have no ends, which took a step of their own; a row that was cut at its fixed length may have none.
    """
    steps = [min(max(map(len, rows)) + 1, job.fixed_length or max(map(len, rows)) + 1) for rows in batches]
    return [row for rows in batches for row in rows], steps
