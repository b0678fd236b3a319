"""Processes that train together, as on JAX several hosts do: one of them writes, and all wait for each other.

Everywhere else there is one process, which writes.
"""

from collections import deque
from collections.abc import Iterable

import keras
import numpy as np


def num_processes() -> int:
    """Returns how many processes train together."""
    if keras.backend.backend() != "jax":
        return 1
    import jax  # noqa: TID251

    return jax.process_count()


def is_writer() -> bool:
    """Tells whether this process is the one that writes files: the first."""
    if num_processes() == 1:
        return True
    import jax  # noqa: TID251

    return jax.process_index() == 0


def wait_for_each_other(name: str):
    """Returns when all processes have come here, each with the same name.

    Args:
        name: What they have done until now.
    """
    if num_processes() > 1:
        from jax.experimental import multihost_utils  # noqa: TID251

        multihost_utils.sync_global_devices(name)


def first_ones(numbers: Iterable[float]) -> list[float]:
    """Returns the numbers of the first process in all of them, so that none decides otherwise than the rest.

    Args:
        numbers: As many in each process.
    """
    own = np.array(list(numbers), np.float64)
    if num_processes() == 1:
        return own.tolist()
    from jax.experimental import multihost_utils  # noqa: TID251

    # As bits: JAX would round them to float32.
    return multihost_utils.broadcast_one_to_all(own.view(np.uint32)).view(np.float64).tolist()


def gathered(variable):
    """Returns the whole value of a variable whose parts are spread over processes, and any other variable as it is.

    Args:
        variable: A Keras variable. All processes have to ask for it.
    """
    if num_processes() == 1 or variable.value.is_fully_replicated:
        return variable
    from jax.experimental import multihost_utils  # noqa: TID251

    return multihost_utils.process_allgather(variable.value, tiled=True)


def pass_over(arrays: Iterable):
    """Goes through arrays that another process writes: to gather and to check them takes all processes."""
    deque(arrays, maxlen=0)
