"""What was measured, as plain numbers."""

import statistics
from dataclasses import asdict, dataclass

from benchmarks.contenders.matmul import REFERENCE_FLOPS
from benchmarks.shapes import Shape, matmul_flops
from benchmarks.step_worker import StepWorker


@dataclass(frozen=True)
class Result:
    """The measurements of one contender in one mode.

    Attributes:
        contender: Name of the contender.
        title: The same for people.
        mode: How it was compiled.
        is_peer: Whether it is somebody else's work.
        num_parameters: Number of trained values.
        best_tokens_per_second: Target tokens a second in the fastest step of all rounds.
        median_tokens_per_second: Target tokens a second in the median step.
        share_of_peak: Matmul operations a second in the fastest step, divided by those of plain products in the same rounds.
    """

    contender: str
    title: str
    mode: str
    is_peer: bool
    num_parameters: int
    best_tokens_per_second: float
    median_tokens_per_second: float
    share_of_peak: float

    def to_dict(self) -> dict:
        """Returns the fields by name."""
        return asdict(self)


def peak_flops_per_second(matmul_workers: list[StepWorker]) -> float:
    """Returns the speed of the fastest plain matrix product that any worker saw."""
    return max(REFERENCE_FLOPS / min(all_seconds(worker)) for worker in matmul_workers)


def result_of(worker: StepWorker, shape: Shape, peak: float) -> Result:
    """Sums up the rounds of a worker."""
    best, median = min(all_seconds(worker)), statistics.median(all_seconds(worker))
    return Result(
        contender=worker.contender.name,
        title=worker.contender.title,
        mode=worker.mode,
        is_peer=worker.contender.is_peer,
        num_parameters=worker.num_parameters,
        best_tokens_per_second=shape.target_tokens / best,
        median_tokens_per_second=shape.target_tokens / median,
        share_of_peak=matmul_flops(shape) / best / peak,
    )


def all_seconds(worker: StepWorker) -> list[float]:
    """Returns the seconds of every step of every round."""
    return [seconds for steps in worker.rounds for seconds in steps]


def best_peer_speed(results: list[Result]) -> float | None:
    """Returns the target tokens a second of the fastest peer, or `None` if none took part."""
    return max((result.best_tokens_per_second for result in results if result.is_peer), default=None)


def ratio_to_best_peer(result: Result, results: list[Result]) -> float | None:
    """Returns how many times as fast as the best peer a contender is, or `None` without a peer."""
    peer = best_peer_speed(results)
    return None if peer is None else result.best_tokens_per_second / peer
