"""Times translation with this package beside its peers: `python -m benchmarks.decode`.

All contenders have the same Transformer and, but for keras-hub, the same weights. Each lives in a subprocess that is idle
until its turn; for every job each is asked for a few seconds of translation, one after the other, in several rounds.
"""

import argparse
import json
import shlex
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.contenders import Contender
from benchmarks.decoding import DECODERS, DEFAULT_DECODERS, QUICK_DECODERS
from benchmarks.decoding.jobs import REALISTIC, SOURCE_LENGTH, Job
from benchmarks.decoding.measurements import Measurement, as_json
from benchmarks.decoding.report import markdown_section, print_tables
from benchmarks.page import machine, write_section
from benchmarks.report import versions
from benchmarks.shapes import SHAPES
from benchmarks.train_step import installed
from benchmarks.worker_process import WorkerProcess

LONG_JOB = (4, 32)  # Beam and batch size.
KERAS_HUB_BATCH = 32


def main():
    """Measures what the command line asks for, and prints or writes it."""
    options = parse_arguments()
    console = Console(stderr=options.json, width=140)
    contenders = installed([DECODERS[name] for name in options.contenders], console)
    measurements = measure(contenders, jobs_of(options), options, console)
    print_tables(measurements, console)
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.decode", *sys.argv[1:]])
        write_section(options.write, "decode", markdown_section(SHAPES[options.shape], measurements, command))
    if options.json:
        print(json.dumps({"machine": machine(), "versions": versions(contenders), "results": as_json(measurements)}, indent=2))


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="base", help="model to measure")
    parser.add_argument(
        "--contenders", nargs="+", choices=DECODERS, help=f"who takes part (default: {' '.join(DEFAULT_DECODERS)})"
    )
    parser.add_argument("--workloads", nargs="+", default=[str(SOURCE_LENGTH), REALISTIC], help="tokens, or 'realistic'")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4], help="beam sizes; 1 is greedy search")
    parser.add_argument("--batches", type=int, nargs="+", help="batch sizes (default: 1 8 32 128)")
    parser.add_argument("--rounds", type=int, help="turns of each contender after its first run (default: 2)")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a turn")
    parser.add_argument("--longest", type=float, default=20.0, help="a run that takes longer, in seconds, is not repeated")
    parser.add_argument("--threads", type=int, default=2, help="threads of each contender")
    parser.add_argument("--quick", action="store_true", help="batches of 1 and 32, one round, only ours and the reference")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Markdown page whose section is to be replaced")
    parser.add_argument("--json", action="store_true", help="print the results as JSON; the tables go to standard error")
    options = parser.parse_args()
    options.contenders = options.contenders or (QUICK_DECODERS if options.quick else DEFAULT_DECODERS)
    options.batches = options.batches or ([1, 32] if options.quick else [1, 8, 32, 128])
    options.rounds = (1 if options.quick else 2) if options.rounds is None else options.rounds
    return options


def jobs_of(options) -> list[Job]:
    """Lists the jobs, small batches first: the peak of memory only rises. The long one shows what becomes of longer outputs."""
    jobs = [
        Job(workload, beam_size, batch_size)
        for batch_size in sorted(options.batches)
        for beam_size in sorted(options.beams)
        for workload in options.workloads
    ]
    short = Job(str(SOURCE_LENGTH), *LONG_JOB)
    if short in jobs:
        jobs.insert(jobs.index(short) + len(options.workloads), Job(str(4 * SOURCE_LENGTH), *LONG_JOB))
    return jobs


def takes_part(contender: Contender, job: Job) -> bool:
    """Tells whether a contender has a job: longer outputs are for ours alone, keras-hub does what it can in acceptable time.

    Where the model ends its translations itself, int8 has none: rounded weights never reach the end, and write to the limit.
    """
    if contender.name in ("products", "ctranslate2-int8"):
        return job.fixed_length == SOURCE_LENGTH
    if contender.name == "keras-hub":
        return job.fixed_length == SOURCE_LENGTH and job.batch_size <= KERAS_HUB_BATCH
    return not contender.is_peer or (job.fixed_length or 0) <= SOURCE_LENGTH


def measure(contenders: list[Contender], jobs: list[Job], options, console: Console) -> list[Measurement]:
    """Returns the measurements of all contenders at all jobs."""
    workers = []
    try:
        for contender in contenders:
            for mode in contender.modes:
                workers.append(WorkerProcess(contender, mode, options.shape, options.threads, "benchmarks.decoding.worker"))
        for worker in workers:
            worker.read_answer()
        return [one for job in jobs for one in measure_job(job, workers, options, console)]
    finally:
        for worker in workers:
            worker.stop()


def measure_job(job: Job, workers: list[WorkerProcess], options, console: Console) -> list[Measurement]:
    """Lets every contender translate, and then again in rounds."""
    console.print(f"{job.title}, batch {job.batch_size}")
    found = [(first_run(job, worker), worker) for worker in workers if takes_part(worker.contender, job)]
    again = [(measurement, worker) for measurement, worker in found if measurement.seconds[0] < options.longest]
    for _ in range(options.rounds):
        for measurement, worker in again:
            measurement.seconds += worker.ask({"job": job.to_dict(), "seconds": options.seconds})["seconds"]
    for measurement, _ in found:
        console.print(f"    {measurement.describe()}")
    return [measurement for measurement, _ in found]


def first_run(job: Job, worker: WorkerProcess) -> Measurement:
    """Asks for the translations."""
    answer = worker.ask({"job": job.to_dict(), "seconds": 0})
    return Measurement(job, worker.contender, answer["ids"], answer["steps"], answer["peak_gib"], answer["seconds"])


if __name__ == "__main__":
    main()
