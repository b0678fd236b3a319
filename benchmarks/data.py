"""The data pipeline: `python -m benchmarks.data`.

Writes files of generated sentences, tokenizes them, and takes batches, each in a process of its own so that its peak of memory
can be read. `--write` puts the results into a document.
"""

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.memory import peak_gib
from benchmarks.page import machine, write_section

WORDS_PER_LINE = (4, 28)
NUM_WORDS = 20_000
BATCH_TOKENS = 4096
CHUNK = 10_000

NOTES = f"""\
Generated sentences of {WORDS_PER_LINE[0]} to {WORDS_PER_LINE[1] - 1} words, a BPE vocabulary of 8,000, batches of
{BATCH_TOKENS:,} tokens in 16 shapes. Building tokenizes both files and writes the cache; opening checks the cache, sums and
all. Tokens are those of both sides, starts and ends included, padding not. Memory is the peak of a process of its own, with
Keras imported."""


def main():
    """Runs all sizes and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 4_000_000], help="sizes of the generated corpora")
    parser.add_argument("--write", type=Path, help="a document whose section on the data pipeline is replaced")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)  # A process of its own: folder, what to measure.
    options = parser.parse_args()
    if options.measure:
        folder, what = options.measure
        print(json.dumps({"build": measure_build, "iterate": measure_iteration}[what](Path(folder))))
        return
    section = report([measured(num_pairs) for num_pairs in options.pairs], options.pairs)
    print(section)
    if options.write:
        write_section(options.write, "data", section)


def measured(num_pairs: int) -> dict:
    """Generates a corpus in a temporary folder and measures it."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), num_pairs)
        results = {"pairs": num_pairs}
        for what in ("build", "iterate"):
            command = [sys.executable, "-m", "benchmarks.data", "--measure", folder, what]
            results |= json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        return results


def generate(folder: Path, num_pairs: int, num_tokenizer_lines: int = 100_000):
    """Writes two files of sentences of made-up words, whose frequencies fall as those of a language do, and a tokenizer."""
    import keras_transformer as kt

    random = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(random.choice(letters, random.integers(1, 11))) for _ in range(NUM_WORDS)])
    chances = 1 / np.arange(2, NUM_WORDS + 2)
    with open(folder / "source", "w") as source, open(folder / "target", "w") as target:
        for first in range(0, num_pairs, CHUNK):
            count = min(CHUNK, num_pairs - first)
            lengths = random.integers(*WORDS_PER_LINE, count)
            write_lines(source, lengths, words, chances, random)
            write_lines(target, lengths + random.integers(-2, 3, count), words, chances, random)
    with open(folder / "source") as source:
        lines = [line for line, _ in zip(source, range(num_tokenizer_lines), strict=False)]
    kt.Tokenizer.train(iter(lines), 8000, progress=False).save(folder / "tokenizer")


def write_lines(file, lengths: np.ndarray, words: np.ndarray, chances: np.ndarray, random):
    """Writes one line of each length."""
    drawn = random.choice(words, int(lengths.sum()), p=chances / chances.sum())
    file.writelines(" ".join(line) + "\n" for line in np.split(drawn, np.cumsum(lengths)[:-1]))


def measure_build(folder: Path) -> dict:
    """Tokenizes the corpus into the cache."""
    started = time.perf_counter()
    dataset = open_dataset(folder)
    seconds = time.perf_counter() - started
    return {"build_seconds": seconds, "kept": dataset.num_pairs, "build_gib": peak_gib()}


def measure_iteration(folder: Path) -> dict:
    """Opens the cache and takes every batch of an epoch."""
    started = time.perf_counter()
    dataset = open_dataset(folder)
    opened = time.perf_counter()
    tokens = sum(int((labels != 0).sum()) for _, labels in dataset.batches(0))
    tokens += dataset.statistics.tokens("source") + dataset.num_pairs
    return {
        "open_seconds": opened - started,
        "iterate_seconds": time.perf_counter() - opened,
        "tokens": tokens,
        "batches": len(dataset),
        "padding": dataset.padding_share(),
        "iterate_gib": peak_gib(),
    }


def open_dataset(folder: Path):
    """Makes the dataset as a user does."""
    import keras_transformer as kt

    tokenizer = kt.Tokenizer.load(folder / "tokenizer")
    return kt.data.parallel_dataset(folder / "source", folder / "target", tokenizer, BATCH_TOKENS, cache=folder / "cache")


def report(results: list[dict], sizes: list[int]) -> str:
    """Returns the section of the document."""
    rows = [
        f"| {result['pairs']:,} | {2 * result['pairs'] / result['build_seconds']:,.0f} | {result['build_gib']:.2f} "
        f"| {result['open_seconds']:.1f} | {result['tokens'] / result['iterate_seconds'] / 1e6:.1f} "
        f"| {result['padding']:.1%} | {result['iterate_gib']:.2f} |"
        for result in results
    ]
    return "\n".join(
        [
            "## Data pipeline",
            "",
            NOTES,
            "",
            "| pairs | building, lines/s | peak, GiB | opening, s | batches, million tokens/s | padding | peak, GiB |",
            "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            *rows,
            "",
            f"Measured on {datetime.date.today()}, {machine()}, with",
            "",
            f"    python -m benchmarks.data --pairs {' '.join(map(str, sizes))} --write docs/benchmarks.md",
        ]
    )


if __name__ == "__main__":
    main()
