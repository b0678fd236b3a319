"""The products with weights that a translation needs, and nothing else: the limit of who multiplies as fast as torch."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import torch

from benchmarks.decoding.decoder import with_steps
from benchmarks.decoding.jobs import SOURCE_LENGTH, Job
from benchmarks.decoding.weights import make_weights
from benchmarks.shapes import Shape

TRIALS = 3
OF_SOURCES = ("encoder_block", "cross_attention/key", "cross_attention/value")  # Needed once a sentence.


class Products:
    """Multiplies rows, as many as a decoder has, by all kernels of the shape."""

    def __init__(self, shape: Shape):
        self.threads = torch.get_num_threads()
        self.source_kernels, self.step_kernels = [], []
        for path, kernel in make_weights(shape).items():
            if path.endswith("kernel"):
                is_once = any(part in path for part in OF_SOURCES)
                kernels = self.source_kernels if is_once else self.step_kernels
                kernels.append(torch.from_numpy(kernel).T.contiguous())

    def prepare(self, job: Job) -> Callable[[], list]:
        """Returns a function that computes the products of a job: all threads on one, or a thread for each part of it."""
        parts = min(self.threads, job.batch_size)
        sizes = [len(range(part, job.batch_size, parts)) for part in range(parts)]
        pool = ThreadPoolExecutor(parts)

        def together():
            torch.set_num_threads(self.threads)
            self.run(job, job.batch_size)

        def apart():
            torch.set_num_threads(1)
            list(pool.map(lambda size: self.run(job, size), sizes))

        fastest = min((together, apart), key=lambda way: min(timed(way) for _ in range(TRIALS)))
        return lambda: [fastest()]

    @torch.no_grad()
    def run(self, job: Job, batch_size: int):
        """Computes the products of a source and of all steps; the first one has one hypothesis a sentence."""
        self.multiply(batch_size * SOURCE_LENGTH, self.source_kernels)
        for step in range(job.fixed_length):
            self.multiply(batch_size * (job.beam_size if step else 1), self.step_kernels)

    def multiply(self, num_rows: int, kernels: list[torch.Tensor]):
        """Multiplies so many rows by all kernels."""
        rows = {width: torch.ones(num_rows, width) for width in {kernel.shape[1] for kernel in kernels}}
        for kernel in kernels:
            torch.nn.functional.linear(rows[kernel.shape[1]], kernel)

    def read(self, job: Job, found: list) -> tuple[list[list[int]], list[int]]:
        """Pretends that there are translations."""
        return with_steps([[[0] * (job.fixed_length - 1)] * job.batch_size], job)


def timed(way: Callable[[], None]) -> float:
    """Returns the seconds that a run takes."""
    started = perf_counter()
    way()
    return perf_counter() - started


def make_decoder(shape: Shape, mode: str) -> Products:
    """Makes the kernels."""
    return Products(shape)
