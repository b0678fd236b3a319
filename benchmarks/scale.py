"""How much faster two processes train than one: `python -m benchmarks.scale`.

Each process is pinned to a core of its own and computes on JAX. All of them go through `python -m training.train`, as started
by `python -m training.launch`, with the same recipe: the batches are the same, and each process takes its part of the rows.
"""

import argparse
import csv
import datetime
import json
import shlex
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from benchmarks.page import machine, version_of, write_section
from benchmarks.shapes import SHAPES, Shape
from training.launch import end, free_port, start_all, watch

NUM_PAIRS = {"tiny": 1_500, "base": 150}
RECIPE = """
[data]
train_source = "source"
train_target = "target"
batch_tokens = {batch_tokens}
num_shapes = 4

[tokenizer]
file = "tokenizer"

[model]
model_dim = {shape.model_dim}
feed_forward_dim = {shape.feed_forward_dim}
num_heads = {shape.num_heads}
num_encoder_layers = {shape.num_layers}
num_decoder_layers = {shape.num_layers}
dropout = {shape.dropout}

[optimization]
epochs = {epochs}
average_checkpoints = 1
"""
NOTES = """\
Generated sentences through `python -m training.train` on JAX: one process pinned to a core, and two, each pinned to a core
of its own, which divide the rows of the same batches between them and add up their gradients over the loopback interface
(Gloo). Speed is real target tokens a second in the fastest epoch after the first, in which programs are compiled; the time
of checkpoints does not count. Efficiency is the speed of n processes divided by n times that of one. Cores of one processor
share its caches and memory: that is in the number, as it would not be between machines."""


def main():
    """Measures what the command line asks for, and prints or writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["tiny"], help="models to measure (tiny)")
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2], help="numbers of processes (1 2)")
    parser.add_argument("--epochs", type=int, default=4, help="epochs of each, of which the first does not count (4)")
    parser.add_argument("--pairs", type=int, help="size of the generated corpus")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Markdown page whose section is to be replaced")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    results = [
        result
        for name in options.shapes
        for result in measure(SHAPES[name], options.processes, options.pairs or NUM_PAIRS[name], options.epochs)
    ]
    print(json.dumps(results, indent=2) if options.json else table(results))
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.scale", *sys.argv[1:]])
        write_section(options.write, "scale", section(results, command))


def measure(shape: Shape, counts: list[int], num_pairs: int, epochs: int) -> list[dict]:
    """Trains a shape with each number of processes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate_in_a_process(folder, num_pairs)
        text = RECIPE.format(shape=shape, batch_tokens=shape.target_tokens, epochs=max(2, epochs))
        (folder / "recipe.toml").write_text(text, encoding="utf8")
        speeds = {count: tokens_per_second(folder, count) for count in sorted(set(counts))}
    fewest = min(speeds)
    return [
        {
            "shape": shape.name,
            "processes": count,
            "tokens_per_second": speed,
            "efficiency": speed * fewest / (count * speeds[fewest]),
        }
        for count, speed in speeds.items()
    ]


def generate_in_a_process(folder: Path, num_pairs: int):
    """Writes the corpus without loading a backend here, which would take memory from what is measured."""
    program = "import sys; from pathlib import Path; from benchmarks.data import generate"
    program += "; generate(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[2]))"
    subprocess.run([sys.executable, "-c", program, str(folder), str(num_pairs)], check=True)


def tokens_per_second(folder: Path, count: int) -> float:
    """Trains with a number of processes and returns the speed of the fastest epoch."""
    run = folder / f"run-{count}"
    words = [str(folder / "recipe.toml"), "--output", str(run)]
    processes = start_all(count, 1, free_port(), words, pin=True, stdout=subprocess.DEVNULL)
    try:
        code = watch(processes, "The measurement ends here.")
    finally:
        end(processes)
    if code != 0:
        raise RuntimeError(f"Training with {count} processes failed with exit code {code}; see above")
    return fastest_epoch(run / "history.csv")


def fastest_epoch(history: Path) -> float:
    """Returns the tokens a second of the fastest epoch but for the first."""
    with open(history, encoding="utf8", newline="") as file:
        rows = [(int(row["tokens"]), float(row["train_seconds"])) for row in csv.DictReader(file)]
    return max((tokens - before) / (seconds - begun) for (before, begun), (tokens, seconds) in pairwise(rows))


def table(results: list[dict]) -> str:
    """Makes a Markdown table."""
    lines = ["| shape | processes | target tokens/s | efficiency |", "| --- | ---: | ---: | ---: |"]
    for one in results:
        lines.append(f"| {one['shape']} | {one['processes']} | {one['tokens_per_second']:,.0f} | {one['efficiency']:.0%} |")
    return "\n".join(lines)


def section(results: list[dict], command: str) -> str:
    """Returns the section of the page."""
    return f"""## Processes that train together

{NOTES}

{table(results)}

Measured on {datetime.date.today()}, {machine()}, jax {version_of("jax")}, keras {version_of("keras")}, with

    {command}"""


if __name__ == "__main__":
    main()
