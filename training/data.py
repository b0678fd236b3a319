"""Shows a corpus as a model will see it: `keras-transformer data train.en train.de`.

Prints how many pairs are kept and dropped and why, how long sentences are, into how many tokens a word falls, and how the pairs
fill batches. Saves a plot of the lengths and of the shapes that batches are padded to.
"""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

from rich.console import Console

from .command import load_backend, make_console, run_command
from .console import program
from .recipe import read_table
from .recipe_tables import CORPORA, DataTable, TokenizerTable, has_columns
from .recipe_values import did_you_mean


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: The words of the command line; `None` takes those of this process.

    Returns:
        The exit code: 0, or 2 if something is wrong with what was given.
    """
    options = parse_arguments(argv)
    return run_command(lambda: run(options))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line. What was not given has no entry, so that a recipe's word counts."""
    parser = argparse.ArgumentParser(
        prog=program("data"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument(
        "data",
        nargs="+",
        metavar="FILES_OR_RECIPE",
        help=f"two text files, source and target (.gz too); a .tsv file; a recipe (.toml); or a corpus: {', '.join(CORPORA)}",
    )
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="where the files of multi30k lie")
    vocabulary = parser.add_mutually_exclusive_group()
    vocabulary.add_argument("--tokenizer", type=Path, metavar="FILE", dest="file", help="use this instead of training one")
    vocabulary.add_argument("--vocabulary-size", type=int, metavar="N", help="size of the vocabulary that is trained (8000)")
    parser.add_argument("--batch-tokens", type=int, metavar="N", help="most positions of a batch on either side (4096)")
    parser.add_argument("--num-shapes", type=limit(int, "an integer"), metavar="N", help="shapes of batches, or none (16)")
    parser.add_argument(
        "--max-length", type=limit(int, "an integer"), metavar="N", help="most tokens of a sentence, or none (256)"
    )
    parser.add_argument("--max-ratio", type=limit(float, "a number"), metavar="R", help="most unequal lengths, or none (4)")
    parser.add_argument("--samples", type=int, default=3, metavar="N", help="how many pairs to show in pieces (3)")
    parser.add_argument("--plot", default="data.png", metavar="PATH", help="where to save the plot, or none (data.png)")
    return parser.parse_args(argv)


def limit(convert: type, kind: str) -> Callable[[str], int | float | None]:
    """Makes an argument's type: a number of a kind, or `none`."""

    def read_limit(word: str):
        try:
            return None if word.lower() == "none" else convert(word)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"expected {kind}, or none. Received: {word}") from error

    return read_limit


def run(options: argparse.Namespace):
    """Does what the command line asks for."""
    load_backend()  # Only now: `--help` need not wait for it.
    from .corpora import check_numbers, find_splits, make_dataset, make_tokenizer
    from .data_tables import print_samples, print_statistics

    if hasattr(options, "vocabulary_size"):
        options.file = None  # It counts more than a tokenizer that the recipe names.
    data, vocabulary = (overridden(table, options) for table in tables_of(options.data))
    check_numbers(data)
    if options.samples < 0:
        raise ValueError(f"`--samples` must not be negative. Received: {options.samples}")
    pairs = find_splits(data).train
    tokenizer = make_tokenizer(pairs, vocabulary)
    dataset = make_dataset(pairs, tokenizer, data)
    console = make_console()
    print_statistics(dataset, pairs.name, console)
    print_samples(dataset, options.samples, console)
    if options.plot != "none":
        save_plot(dataset, pairs.name, Path(options.plot), console)


def tables_of(words: list[str]) -> tuple[DataTable, TokenizerTable]:
    """Tells a recipe, a corpus, and one or two files apart."""
    match words:
        case [recipe] if recipe.endswith(".toml"):
            return read_table(recipe, "data", DataTable), read_table(recipe, "tokenizer", TokenizerTable)
        case [name] if name in CORPORA:
            return DataTable(corpus=name), TokenizerTable()
        case [columns] if has_columns(columns):
            return DataTable(train_source=(Path(columns),)), TokenizerTable()
        case [source, target] if not has_columns(source) and not has_columns(target):
            return DataTable(train_source=(Path(source),), train_target=(Path(target),)), TokenizerTable()
    hint = did_you_mean(words[0], CORPORA) if len(words) == 1 else ""
    raise ValueError(
        f"Expected two text files (source and target), one .tsv file, one recipe (.toml), or one of the corpora "
        f"{', '.join(CORPORA)}. Received: {' '.join(words)}{hint}"
    )


def overridden(table, options: argparse.Namespace):
    """Puts what the command line says in the place of what a table says."""
    given = {key.name: getattr(options, key.name) for key in fields(table) if hasattr(options, key.name)}
    return replace(table, **given)


def save_plot(dataset, title: str, path: Path, console: Console):
    """Saves the plot, or says what it takes."""
    if importlib.util.find_spec("matplotlib") is None:
        console.print('No plot: matplotlib is not installed. Install it with: pip install ".[plots]"', markup=False)
        return
    from .data_plot import draw

    path.parent.mkdir(parents=True, exist_ok=True)
    draw(dataset, title).savefig(path)
    console.print(f"Plot: {path}", markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
