"""Processes that are killed while they write, and disks that are full."""

import contextlib
import multiprocessing
import os
import signal
import sys

try:
    import resource
except ImportError:  # There is none on Windows.
    resource = None

EVENTS = ("open", "os.", "shutil.", "fcntl.", "ctypes.")  # What Python does to files and folders is one of these.


def killed(moment: int, work) -> bool:
    """Runs some work in a process of its own, which is killed before its n-th touch of the file system.

    Args:
        moment: The number of the touch, from 1.
        work: What to do.

    Returns:
        Whether it came to that. Otherwise the work was done before.
    """
    process = multiprocessing.get_context("fork").Process(target=work_and_die, args=(moment, work))
    process.start()
    process.join(300)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def work_and_die(moment: int, work):
    left = [moment]

    def count(event, _):
        if event.startswith(EVENTS):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    work()


@contextlib.contextmanager
def full_disk(room: int):
    """Lets no file grow beyond so many bytes: writing fails as it does on a full disk, in C libraries too."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
