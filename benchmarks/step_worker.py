"""The parent's end of a worker that trains."""

from benchmarks.contenders import Contender
from benchmarks.worker_process import WorkerProcess


class StepWorker(WorkerProcess):
    """A contender that trains in a subprocess, and the seconds of each of its steps, round by round; see `WorkerProcess`."""

    def __init__(self, contender: Contender, mode: str, shape: str, threads: int):
        super().__init__(contender, mode, shape, threads, "benchmarks.worker")
        self.rounds = []
        self.num_parameters = self.read_answer()["num_parameters"]

    def run_round(self, seconds: float):
        """Lets the contender train for about this long, at least one step, and notes the time of each step."""
        self.rounds.append(self.ask(seconds)["seconds"])
