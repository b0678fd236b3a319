"""Sharing a CPU's cores among sentences rather than within operations, on TensorFlow.

The products of a decoding step are small: two threads that work on one of them spend much of their time waiting for each other.
Two threads that work on sentences of their own do not.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np


def parallel_sentences(num_threads: int | None = None):
    """Lets TensorFlow use one thread for an operation, so that searches share the cores among sentences.

    Call it before TensorFlow has computed anything; the environment variable `TF_NUM_INTRAOP_THREADS=1` does the same. It is
    for processes that translate on a CPU. Training is better off with the default.

    Args:
        num_threads: How many parts of a batch are translated at the same time. Defaults to the number of cores.
    """
    import tensorflow as tf  # noqa: TID251

    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(num_threads or os.cpu_count() or 1)
    except RuntimeError as error:
        raise ValueError("`parallel_sentences` must be called before TensorFlow has computed anything") from error


def num_parts() -> int:
    """Returns into how many parts a batch is divided: one, unless operations have one thread and there is no GPU."""
    import tensorflow as tf  # noqa: TID251

    threads = tf.config.threading.get_intra_op_parallelism_threads() or int(os.environ.get("TF_NUM_INTRAOP_THREADS") or 0)
    if threads != 1 or tf.config.list_physical_devices("GPU"):
        return 1
    parts = tf.config.threading.get_inter_op_parallelism_threads() or int(os.environ.get("TF_NUM_INTEROP_THREADS") or 0)
    return parts or os.cpu_count() or 1


def in_parts(run, count: int):
    """Returns a function that runs the parts of a batch at the same time.

    Args:
        run: A function from a dictionary of arrays `(B, ...)` to one of arrays `(B, n)` or `(B, n, L)`, with L as it may be.
        count: The number of parts.
    """
    if count == 1:
        return run
    pool = ThreadPoolExecutor(count)

    def run_parts(inputs: dict) -> dict:
        parts = min(count, len(inputs["source_ids"]))
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
