"""Sharing a CPU's cores among sentences rather than within operations, on TensorFlow.

Two threads that work on one matrix product spend part of their time waiting for each other, the more the smaller it is. Two
threads that work on sentences of their own do not.
"""

import os


def parallel_sentences(num_threads: int | None = None):
    """Lets TensorFlow use one thread for an operation, so that training steps and searches share the cores among sentences.

    Call it before TensorFlow has computed anything; the environment variable `TF_NUM_INTRAOP_THREADS=1` does the same. It is
    for processes that train or translate on a CPU. Results are the same, up to the order in which numbers are added. A training
    step is divided if the loss is a `SmoothedCrossEntropy` and the step is not compiled by XLA.

    Args:
        num_threads: How many parts of a batch are computed at the same time. Defaults to the number of cores.
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
