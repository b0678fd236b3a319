"""A batch of sentences that is divided among threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np


def in_parts(run, count: int, run_alone):
    """Returns a function that runs the parts of a batch at the same time.

    Args:
        run: A function from a dictionary of arrays `(B, ...)` to one of arrays `(B, n)` or `(B, n, L)`, with L as it may be.
        count: The number of parts.
        run_alone: The same for a batch of one sentence, which has all threads to itself if there are several parts.
    """
    if count == 1:
        return run
    pool = ThreadPoolExecutor(count)

    def run_parts(inputs: dict) -> dict:
        parts = min(count, len(inputs["source_ids"]))
        if parts == 1:
            return run_alone(inputs)
        # One sentence here, one there: neighbours are of similar length.
        return joined(list(pool.map(run, [{name: x[part::parts] for name, x in inputs.items()} for part in range(parts)])))

    return run_parts


def joined(parts: list[dict]) -> dict:
    """Puts the results of parts together, in the order of the whole."""
    return {name: interleaved([part[name] for part in parts]) for name in parts[0]}


def interleaved(arrays: list[np.ndarray]) -> np.ndarray:
    """Returns the array of which the i-th of n arrays has the rows i, i + n, ...; shorter rows are padded with zeros."""
    sizes = [max(sizes) for sizes in zip(*(array.shape[1:] for array in arrays), strict=True)]
    whole = np.zeros((sum(map(len, arrays)), *sizes), arrays[0].dtype)
    for part, array in enumerate(arrays):
        whole[(slice(part, None, len(arrays)), *(slice(size) for size in array.shape[1:]))] = array
    return whole
