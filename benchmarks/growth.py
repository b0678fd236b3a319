"""How speed changes with length and batch size, beside peers: `python -m benchmarks.growth`.

Training against the length of sequences, and decoding against the length of translations and against the number of sentences
in a batch. `--write` puts tables into a page and pictures into the folder `figures` beside it.
"""

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from benchmarks.contenders import CONTENDERS, Contender
from benchmarks.decoding import DECODERS
from benchmarks.growing.curves import Curve, decoding_by_batch, decoding_by_length, training_by_length
from benchmarks.growing.measuring import measure
from benchmarks.growing.report import markdown_section, table
from benchmarks.page import write_section
from benchmarks.shapes import SHAPES
from benchmarks.train_step import installed

TRAINERS = ["ours-tensorflow", "keras-hub", "torch", "marian"]
TRANSLATORS = ["ours-tensorflow", "ctranslate2-float32", "ctranslate2-float32-split", "marian"]
CURVES = ("length", "output", "batch")
FIGURES = "figures"


def main(words: list[str] | None = None):
    """Measures what the command line asks for, and prints or writes it."""
    words = sys.argv[1:] if words is None else words
    options = parse_arguments(words)
    console = Console(width=140)
    curves = [curve for curve in curves_of(options, console) if curve.name in options.curves]
    for curve in curves:
        measure(curve, options, console)
    for curve in curves:
        print(f"\n{curve.title}\n\n{table(curve)}")
    folder = options.figures or (options.write and options.write.parent / FIGURES)
    if folder:
        write_figures(curves, folder)
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.growth", *words])
        section = markdown_section(curves, SHAPES[options.shape], FIGURES, options.all_modes, command)
        write_section(options.write, "growth", section)


def parse_arguments(words: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--curves", nargs="+", choices=CURVES, default=list(CURVES), help="what is measured")
    add("--shape", choices=SHAPES, default="tiny", help="model to measure")
    add("--trainers", nargs="+", choices=CONTENDERS, default=TRAINERS, help="who trains")
    add("--translators", nargs="+", choices=DECODERS, default=TRANSLATORS, help="who decodes")
    add("--all-modes", action="store_true", help="train in every way that a contender can be compiled, not in the first alone")
    add("--lengths", type=int, nargs="+", default=[64, 128, 256, 512, 1024, 2048], help="lengths of sequences in training")
    add("--tokens", type=int, default=2048, help="tokens a side of a training batch")
    add("--outputs", type=int, nargs="+", default=[16, 32, 64, 128, 256], help="lengths of translations, at most 512")
    add("--batches", type=int, nargs="+", default=[1, 4, 16, 64], help="numbers of sentences that are decoded at once")
    add("--beam", type=int, default=4, help="beam size")
    add("--rounds", type=int, default=3, help="turns of each contender after its first run")
    add("--seconds", type=float, default=1.0, help="length of a turn")
    add("--longest", type=float, default=10.0, help="a run that takes longer, in seconds, is not repeated")
    add("--limit", type=float, default=120.0, help="a contender that takes longer to answer, in seconds, is left out")
    add("--threads", type=int, default=2, help="threads of each contender")
    add("--figures", type=Path, metavar="FOLDER", help="where pictures go (default: beside the page)")
    add("--write", type=Path, metavar="PAGE", help="Markdown page whose section is to be replaced")
    return parser.parse_args(words)


def curves_of(options, console: Console) -> list[Curve]:
    """Lists what can be measured."""
    shape = SHAPES[options.shape]
    trainers = installed([CONTENDERS[name] for name in options.trainers], console)
    trainers = trainers if options.all_modes else list(in_first_mode(trainers))
    translators = installed([DECODERS[name] for name in options.translators], console)
    return [
        training_by_length(trainers, shape, options.lengths, options.tokens),
        decoding_by_length(translators, shape, options.outputs, options.beam, batch=8),
        decoding_by_batch(translators, shape, options.batches, options.beam, length=32),
    ]


def in_first_mode(contenders: Iterable[Contender]) -> Iterable[Contender]:
    """Leaves each contender one way of being compiled: as a graph, or not at all."""
    return (dataclasses.replace(contender, modes=contender.modes[:1]) for contender in contenders)


def write_figures(curves: list[Curve], folder: Path):
    """Draws all curves."""
    from benchmarks.growing import figure  # It loads Keras: not beside those who are measured.

    for curve in curves:
        print(f"Wrote {figure.write(curve, folder)}")


if __name__ == "__main__":
    main()
