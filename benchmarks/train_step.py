"""Times one training step of this package beside its peers: `python -m benchmarks.train_step`.

All contenders build the same Transformer. Each lives in a subprocess that is idle until its turn; in every round
each is asked for a few seconds of training, one after the other.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from benchmarks.contenders import CONTENDERS, MATMULS, Contender
from benchmarks.page import machine, write_section
from benchmarks.report import markdown_section, print_table, versions
from benchmarks.results import Result, peak_flops_per_second, ratio_to_best_peer, result_of
from benchmarks.shapes import SHAPES, Shape
from benchmarks.step_worker import StepWorker


def main():
    """Measures what the command line asks for, and prints or writes it."""
    options = parse_arguments()
    console = Console(stderr=options.json, width=120)
    contenders = installed([CONTENDERS[name] for name in options.contenders], console)
    measured = []
    for name in options.shapes:
        shape = SHAPES[name]
        results, peak = measure(shape, contenders, options, console)
        print_table(shape, results, peak, console)
        measured.append((shape, results, peak))
    if options.json:
        print(json.dumps(as_json(measured), indent=2))
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.train_step", *sys.argv[1:]])
        write_section(options.write, "train_step", markdown_section(measured, command))


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES), help="models to measure")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), help="who takes part")
    parser.add_argument(
        "--without-xla", nargs="+", choices=SHAPES, default=[], help="models for which TensorFlow need not compile, for minutes"
    )
    parser.add_argument("--rounds", type=int, default=4, help="how often each contender has a turn")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a turn")
    parser.add_argument("--threads", type=int, default=2, help="threads of each contender")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Markdown page whose section is to be replaced")
    parser.add_argument("--json", action="store_true", help="print the results as JSON; the tables go to standard error")
    return parser.parse_args()


def installed(contenders: list[Contender], console: Console) -> list[Contender]:
    """Leaves out contenders whose packages are not installed, and says so."""
    for contender in contenders:
        if missing := contender.missing_packages():
            console.print(f"Skipping {contender.name}: {', '.join(missing)} is not installed.")
    return [contender for contender in contenders if not contender.missing_packages()]


def measure(shape: Shape, contenders: list[Contender], options, console: Console) -> tuple[list[Result], float]:
    """Returns the results of all contenders at one shape, and the matmul peak in operations a second."""
    workers, matmul_workers = [], []
    try:
        for contender in contenders:
            modes = modes_of(contender, is_compiled=shape.name not in options.without_xla)
            start_workers(contender, modes, shape, options.threads, workers, console)
        for contender in installed(list(MATMULS.values()), console):
            start_workers(contender, contender.modes, shape, options.threads, matmul_workers, console)
        for number in range(1, options.rounds + 1):
            console.print(f"{shape.name}: round {number} of {options.rounds}")
            for worker in [*workers, *matmul_workers]:
                worker.run_round(options.seconds)
    finally:
        for worker in [*workers, *matmul_workers]:
            worker.stop()
    peak = peak_flops_per_second(matmul_workers)
    return [result_of(worker, shape, peak) for worker in workers], peak


def modes_of(contender: Contender, is_compiled: bool) -> list[str]:
    """Returns the ways in which a contender runs; unless `is_compiled`, without XLA, if there is another."""
    others = [mode for mode in contender.modes if mode != "xla"]
    return list(contender.modes) if is_compiled or not others else others


def start_workers(
    contender: Contender, modes: Iterable[str], shape: Shape, threads: int, workers: list[StepWorker], console: Console
):
    """Appends a ready worker for each of these modes of a contender."""
    for mode in modes:
        console.print(f"{shape.name}: starting {contender.name}, {mode}")
        workers.append(StepWorker(contender, mode, shape.name, threads))


def as_json(measured: list[tuple[Shape, list[Result], float]]) -> dict:
    """Returns all that was measured as plain dictionaries."""
    return {
        "machine": machine(),
        "versions": versions(),
        "shapes": {
            shape.name: {
                "description": shape.describe(),
                "matmul_peak_gflops": peak / 1e9,
                "results": [{**result.to_dict(), "times_best_peer": ratio_to_best_peer(result, results)} for result in results],
            }
            for shape, results, peak in measured
        },
    }


if __name__ == "__main__":
    main()
