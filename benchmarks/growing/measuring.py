"""Lets contenders take turns at every size of a curve."""

from rich.console import Console

from benchmarks.growing.bounded_worker import BoundedWorker, machine_gib
from benchmarks.growing.curves import Curve, Point


def measure(curve: Curve, options, console: Console):
    """Measures all points of a curve.

    Args:
        curve: What to measure; it is given the speeds.
        options: From the command line: `shape`, `threads`, `rounds`, `seconds` of a turn, the `longest` run that is repeated,
            and the `limit` of an answer.
        console: Where to say how it goes.
    """
    workers = []
    try:
        workers += start_workers(curve, options)
        for worker in workers:
            worker.get_ready()
        for point in curve.points:
            console.print(f"{curve.title}: {curve.axis} {point.size}")
            measure_point(curve, point, workers, options)
            for line in lines_about(curve, point, workers):
                console.print(f"    {line}", markup=False)  # Reasons may have brackets.
    finally:
        for worker in workers:
            worker.stop()


def start_workers(curve: Curve, options) -> list[BoundedWorker]:
    """Starts a worker for each mode of each contender; they divide the machine's memory."""
    pairs = [(contender, mode) for contender in curve.contenders for mode in contender.modes]
    share = machine_gib() / max(1, len(pairs))
    return [
        BoundedWorker(contender, mode, options.shape, options.threads, curve.worker, options.limit, share)
        for contender, mode in pairs
    ]


def measure_point(curve: Curve, point: Point, workers: list[BoundedWorker], options):
    """Lets every worker run, and then again in rounds, unless it is too slow for that."""
    again = []
    for worker in workers:
        seconds = worker.seconds_of_runs({**point.question, "seconds": 0})
        curve.add(worker.contender, point, seconds)
        if seconds and min(seconds) < options.longest:
            again.append(worker)
    for _ in range(options.rounds):
        for worker in again:
            curve.add(worker.contender, point, worker.seconds_of_runs({**point.question, "seconds": options.seconds}))


def lines_about(curve: Curve, point: Point, workers: list[BoundedWorker]) -> list[str]:
    """Says how fast each contender is, and who has failed why."""
    lines = []
    for contender in curve.contenders:
        if speed := curve.speed(contender, point.size):
            lines.append(f"{contender.title}: {speed:,.0f} {curve.unit}")
    failed = [worker for worker in workers if worker.failure]
    return [*lines, *(f"{worker.contender.title}, {worker.mode}, is left out: {worker.failure}" for worker in failed)]
