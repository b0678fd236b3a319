"""What a person wants to know of a dataset, as tables on a console."""

from collections import Counter

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keras_transformer.data import ParallelDataset, Statistics
from keras_transformer.data.statistics import REASONS

MOST_SHAPES = 32  # More of them say nothing to a reader.


def print_statistics(dataset: ParallelDataset, name: str, console: Console):
    """Prints all tables of a dataset.

    Args:
        dataset: The dataset.
        name: What to call it.
        console: Where to print. On a terminal, tables have lines; in a pipe, nothing but blanks.
    """
    console.print(Text(name, style="bold"), soft_wrap=True)
    print_table(console, ["pairs", "", ""], pair_rows(dataset.statistics))
    print_table(console, ["sentences", "source", "target"], sentence_rows(dataset))
    print_table(console, ["batches", ""], batch_rows(dataset))
    shapes = Counter(dataset.plan(0).shapes)
    if len(shapes) <= MOST_SHAPES:
        print_table(console, ["shape", "rows", "source length", "target length", "batches"], shape_rows(shapes))


def pair_rows(statistics: Statistics) -> list[list[str]]:
    """Lists what became of the pairs."""
    read = max(1, statistics.read)
    rows = [["read", grouped(statistics.read), ""], ["kept", grouped(statistics.kept), f"{statistics.kept / read:.1%}"]]
    for reason, count in statistics.dropped.items():
        if count:
            rows.append([f"dropped: {REASONS[reason]}", grouped(count), f"{count / read:.1%}"])
    return rows


def sentence_rows(dataset: ParallelDataset) -> list[list[str]]:
    """Describes the sentences, source beside target."""
    names = (
        "vocabulary",
        "words",
        "tokens",
        "tokens a word",
        "tokens a sentence",
        "half have up to",
        "95% have up to",
        "longest",
    )
    columns = (sentence_figures(dataset, side) for side in ("source", "target"))
    return [list(row) for row in zip(names, *columns, strict=True)]


def sentence_figures(dataset: ParallelDataset, side: str) -> list[str]:
    """Describes the sentences of the `"source"` or the `"target"`."""
    statistics = dataset.statistics
    tokens = statistics.tokens(side)
    return [
        grouped(getattr(dataset.tokenizer, side).vocabulary_size),
        grouped(getattr(statistics, f"{side}_words")),
        grouped(tokens),
        f"{statistics.tokens_per_word(side):.2f}",
        f"{tokens / statistics.kept:.1f}",
        *(grouped(statistics.length_at(side, share)) for share in (0.5, 0.95, 1.0)),
    ]


def batch_rows(dataset: ParallelDataset) -> list[list[str]]:
    """Describes the batches of an epoch."""
    plan = dataset.plan(0)
    return [
        ["batches an epoch", grouped(len(plan))],
        ["shapes", grouped(len(set(plan.shapes)))],
        ["pairs a batch", f"{dataset.num_pairs / len(plan):.1f}"],
        ["padding", f"{dataset.padding_share():.1%} of all positions"],
    ]


def shape_rows(shapes: Counter) -> list[list[str]]:
    """Lists shapes from short to long, and how many batches have them."""
    in_order = sorted(shapes, key=lambda shape: (shape.source_length + shape.target_length, shape.source_length))
    return [[str(place), *map(grouped, shape), grouped(shapes[shape])] for place, shape in enumerate(in_order, start=1)]


def print_samples(dataset: ParallelDataset, count: int, console: Console):
    """Prints some pairs as pieces, taken from all over the corpus."""
    for number in np.unique(np.linspace(0, dataset.num_pairs - 1, min(count, dataset.num_pairs)).astype(int)):
        console.print(Text(f"pair {number + 1:,}", style="bold"))
        for side in ("source", "target"):
            ids = getattr(dataset.store, side)[number]
            console.print(
                Text(f"  {' '.join(getattr(dataset.tokenizer, side).tokens(ids))}"), soft_wrap=not console.is_terminal
            )
        console.print()


def print_table(console: Console, heads: list[str], rows: list[list[str]], justify: list[str] | None = None):
    """Prints a table: its first column is words, the others are numbers, unless `justify` says otherwise."""
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for number, head in enumerate(heads):
        table.add_column(head, justify=justify[number] if justify else "right" if number else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    if not console.is_terminal:
        console.print()


def grouped(number: int) -> str:
    """Writes a number with its thousands apart."""
    return f"{number:,}"
