"""The parent's end of an engine: write what it serves, start it, ask it, stop it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.worker_process import worker_environment


def prepare(folder: Path, *what: str):
    """Writes what the engines serve, in a process of its own; see `benchmarks.serving.prepare`."""
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-m", "benchmarks.serving.prepare", str(folder), *what], env=environment, check=True)


class Engine:
    """An engine in a subprocess that is idle unless asked.

    Args:
        name: One of `benchmarks.serving.engines.ENGINES`.
        folder: What `prepare` wrote.
        threads: Number of threads it may compute with.
    """

    def __init__(self, name: str, folder: Path, threads: int):
        self.name, self.answers = name, []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.serving.worker", name, str(folder), str(threads)],
            env={**os.environ, **worker_environment(threads), "KERAS_BACKEND": "torch"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.start = self._read()

    @property
    def peak_gib(self) -> float:
        """The most memory that it has had."""
        return self.answers[-1][1]["peak_gib"]

    def ask(self, **question):
        """Asks a question and keeps the answer."""
        print(json.dumps(question), file=self.process.stdin, flush=True)
        self.answers.append((question, self._read()))

    def answers_to(self, **part) -> list[dict]:
        """Returns the answers to all questions that have these values."""
        return [answer for question, answer in self.answers if part.items() <= question.items()]

    def stop(self):
        """Closes its input, on which it ends."""
        self.process.stdin.close()
        self.process.wait()

    def _read(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} stopped with {self.process.wait()}")
        return json.loads(line)
