"""Times an imported Marian model beside Hugging Face and CTranslate2: `python -m benchmarks.marian_import`.

A checkpoint of OPUS-MT's shape is written with random weights. All contenders translate with it, CTranslate2 through our
bridges, and every translation has the same length. Each lives in a subprocess that is idle until its turn.
"""

import argparse
import datetime
import json
import shlex
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks.contenders import Contender
from benchmarks.decode import measure_job
from benchmarks.decoding.jobs import SOURCE_LENGTH, Job
from benchmarks.decoding.measurements import Measurement, as_json
from benchmarks.decoding.report import COLUMNS, markdown_table, print_tables, row_of, summary
from benchmarks.importing import DECODERS, DEFAULT_DECODERS
from benchmarks.importing.checkpoint import SHAPES, write_checkpoint
from benchmarks.page import machine, write_section
from benchmarks.report import versions
from benchmarks.shapes import Shape
from benchmarks.train_step import installed
from benchmarks.worker_process import WorkerProcess

NOTES = f"""\
A random checkpoint of this shape, with swish, tied embeddings, a bias of the logits and a banned pad, in every contender:
imported with `from_marian`, loaded by Hugging Face, and written for CTranslate2 with `to_ctranslate2`. Sources of
{SOURCE_LENGTH} tokens, {SOURCE_LENGTH} steps for every translation; ids (CTranslate2: tokens) in and out. "Same ids" is the
share of sentences for which a contender's translation is that of the reference, CTranslate2 in float32 with all threads on a
batch or with a thread for each part of it, whichever is faster."""


def main():
    """Measures what the command line asks for, and prints or writes it."""
    options = parse_arguments()
    console = Console(stderr=options.json, width=140)
    contenders = installed([DECODERS[name] for name in options.contenders], console)
    jobs = [Job(str(SOURCE_LENGTH), beam, size) for size in sorted(options.batches) for beam in sorted(options.beams)]
    measurements = measure(contenders, jobs, options, console)
    print_tables(measurements, console)
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.marian_import", *sys.argv[1:]])
        write_section(options.write, "marian_import", markdown_section(SHAPES[options.shape], measurements, command))
    if options.json:
        print(json.dumps({"machine": machine(), "versions": versions(contenders), "results": as_json(measurements)}, indent=2))


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="opus-mt", help="model to measure (small: only to try this out)")
    parser.add_argument("--contenders", nargs="+", choices=DECODERS, default=DEFAULT_DECODERS, help="who takes part")
    parser.add_argument("--beams", type=int, nargs="+", default=[4], help="beam sizes; 1 is greedy search")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32], help="batch sizes")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each contender after its first run")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a turn")
    parser.add_argument("--longest", type=float, default=20.0, help="a run that takes longer, in seconds, is not repeated")
    parser.add_argument("--threads", type=int, default=2, help="threads of each contender")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Markdown page whose section is to be replaced")
    parser.add_argument("--json", action="store_true", help="print the results as JSON; the tables go to standard error")
    return parser.parse_args()


def measure(contenders: list[Contender], jobs: list[Job], options, console: Console) -> list[Measurement]:
    """Returns the measurements of all contenders at all jobs."""
    workers = []
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(Path(folder), SHAPES[options.shape])
        try:
            for contender in contenders:
                for mode in contender.modes:
                    workers.append(WorkerProcess(contender, mode, folder, options.threads, "benchmarks.importing.worker"))
            for worker in workers:
                worker.read_answer()
            return [one for job in jobs for one in measure_job(job, workers, options, console)]
        finally:
            for worker in workers:
                worker.stop()


def markdown_section(shape: Shape, measurements: list[Measurement], command: str) -> str:
    """Returns the whole section of the page: what, where, when and the tables."""
    columns, rows = summary(measurements)
    contenders = {one.contender.name: one.contender for one in measurements}.values()
    parts = [
        f"## Speed\n\n{shape.describe_model()}, float32 unless a contender says otherwise.",
        NOTES,
        markdown_table(columns, rows),
        markdown_table(COLUMNS, [row_of(one, measurements) for one in measurements]),
        f"Measured on {datetime.date.today()}, {machine()}, {versions(contenders)}, with\n\n    {command}",
    ]
    return "\n\n".join(part for part in parts if part)


if __name__ == "__main__":
    main()
