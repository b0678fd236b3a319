"""Files that one process at a time can lock."""

import errno
import os
from typing import TextIO

try:
    import fcntl
except ImportError:  # There is none on Windows.
    fcntl = None

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # What file systems say that have none.


def hold_lock(path: str | os.PathLike, wait: bool = True) -> TextIO:
    """Locks a file against other processes, or, where files cannot be locked so, only opens it.

    Args:
        path: The file. It is made if need be, and stays as it is. A symbolic link is a `ValueError`: it could lead to
            somebody else's file.
        wait: Whether to wait until another process has given the lock back. Otherwise that is a `BlockingIOError`.

    Returns:
        The file, for a `with` statement. The lock is given back when it is closed or the process ends, however it ends.
    """
    try:
        file = open(path, "r+", opener=opened)  # noqa: SIM115 - closed by who holds the lock
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ValueError(f"A lock must be a file, not a symbolic link. Remove the link. Received: {path}") from error
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        file.close()
        raise
    return file


def opened(path: str, flags: int) -> int:
    """Opens a file, made if need be, whose content stays; a symbolic link is an error."""
    return os.open(path, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
