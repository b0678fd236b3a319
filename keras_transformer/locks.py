"""Files that one process at a time can lock."""

import os
from typing import TextIO

try:
    import fcntl
except ImportError:  # There is none on Windows.
    fcntl = None


def hold_lock(path: str | os.PathLike, wait: bool = True) -> TextIO:
    """Locks a file against other processes, or, where files cannot be locked so, only opens it.

    Args:
        path: The file. It is made if need be, and stays.
        wait: Whether to wait until another process has given the lock back. Otherwise that is a `BlockingIOError`.

    Returns:
        The file, for a `with` statement. The lock is given back when it is closed or the process ends, however it ends.
    """
    file = open(path, "w")  # noqa: SIM115 - closed by who holds the lock
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        file.close()
        raise
    return file
