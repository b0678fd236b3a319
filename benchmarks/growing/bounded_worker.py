"""The parent's end of a worker that may fail: what it cannot do within its time and memory is left out."""

import os
import resource
import threading
from collections.abc import Callable

from benchmarks.contenders import Contender
from benchmarks.worker_process import WorkerProcess


class BoundedWorker(WorkerProcess):
    """A contender in a subprocess that is ended when an answer takes too long; see `WorkerProcess`.

    Args:
        contender, mode, shape, threads, worker: See `WorkerProcess`.
        seconds: The longest that an answer may take.
        gib: The most memory that it may have; Linux alone holds it to that.

    Attributes:
        failure: Why it answers no more, or `None`.
    """

    def __init__(self, contender: Contender, mode: str, shape: str, threads: int, worker: str, seconds: float, gib: float):
        super().__init__(contender, mode, shape, threads, worker)
        self.seconds = seconds
        self.failure = None
        limit_memory(self.process.pid, gib)

    def get_ready(self):
        """Waits until it says so."""
        self.bounded(self.read_answer)

    def seconds_of_runs(self, question: dict) -> list[float]:
        """Asks for runs and returns the seconds of each; none once it has failed."""
        answer = None if self.failure else self.bounded(lambda: self.ask(question))
        return answer["seconds"] if answer else []

    def bounded(self, get_answer: Callable[[], dict]) -> dict | None:
        """Gets an answer; notes the failure and returns `None` if there is none in time."""
        timer = threading.Timer(self.seconds, self.give_up)
        timer.start()
        try:
            return get_answer()
        except (RuntimeError, OSError, ValueError) as error:  # It died, before it was asked or while it answered.
            self.failure = self.failure or reason_in(str(error))
            return None
        finally:
            timer.cancel()

    def give_up(self):
        """Ends the process."""
        self.failure = f"no answer within {self.seconds:.0f} s"
        self.process.kill()


def reason_in(log: str) -> str:
    """Returns the last line that names an error, or else the last that says something."""
    lines = [line.strip() for line in log.splitlines() if line.strip()] or ["it stopped"]
    return next((line for line in reversed(lines) if "Error" in line), lines[-1])


def limit_memory(process: int, gib: float):
    """Holds a process to an amount of memory, where the system can do that."""
    if hasattr(resource, "prlimit"):
        resource.prlimit(process, resource.RLIMIT_DATA, (int(gib * 2**30),) * 2)


def machine_gib() -> float:
    """Returns how much memory the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
