"""The parent's end of a worker: start it, ask it for a few steps, stop it."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile

from benchmarks.contenders import Contender


class WorkerProcess:
    """A contender in a subprocess, idle unless asked to run. It says unasked that it is ready: read that first.

    Args:
        contender: Who runs.
        mode: One of the contender's modes.
        shape: Name of the model's shape.
        threads: Number of threads it may compute with.
        worker: Module that is run, and told the contender's module, the mode and the shape.
    """

    def __init__(self, contender: Contender, mode: str, shape: str, threads: int, worker: str):
        self.contender = contender
        self.mode = mode
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in `stop`
        self.process = subprocess.Popen(
            [sys.executable, "-m", worker, contender.module, mode, shape],
            env={**os.environ, **worker_environment(threads), **contender.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def ask(self, question) -> dict:
        """Sends a line of JSON and waits for the answer."""
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return self.read_answer()

    def read_answer(self) -> dict:
        """Waits for a line of JSON; raises a `RuntimeError` with the end of its log if the worker died."""
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.process.wait()
        self.log.seek(0)
        raise RuntimeError(f"{self.contender.name} ({self.mode}) stopped:\n{self.log.read()[-3000:]}")

    def stop(self):
        """Closes the worker's input, on which it ends, and waits for it."""
        with contextlib.suppress(BrokenPipeError):  # It may have died.
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


def worker_environment(threads: int) -> dict[str, str]:
    """Returns the environment that holds TensorFlow and torch to a number of threads; JAX takes a thread for each core.

    Whoever runs on TensorFlow has its quicker matrix products, which it takes by itself only on CPUs with AVX-512.
    `MKL_NUM_THREADS` is not set: CTranslate2 with a thread for each batch would have that many for each of them.
    """
    return {
        "OMP_NUM_THREADS": str(threads),
        "TF_NUM_INTRAOP_THREADS": str(threads),
        "TF_NUM_INTEROP_THREADS": str(threads),
        "TF_ENABLE_ONEDNN_OPTS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "HF_HUB_OFFLINE": "1",
    }
