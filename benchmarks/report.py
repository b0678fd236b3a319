"""Results as tables: for the terminal and for a page of the documentation."""

import datetime
import platform
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from benchmarks.contenders import CONTENDERS, Contender
from benchmarks.page import machine, version_of
from benchmarks.results import Result, ratio_to_best_peer
from benchmarks.shapes import FLOPS_FORMULA, Shape

COLUMNS = ("contender", "compiled", "target tokens/s", "median", "times best peer", "of matmul peak", "parameters")
NOTES = f"""\
One step is forward pass, sparse cross-entropy from logits over all target tokens, backward pass and Adam, in float32, with
dropout 0.1 and one matrix for both embeddings and the logits. Every contender has a process of its own and the same number
of threads; they take turns in short rounds, so that all see the same noise. Speed is that of the fastest step of all rounds;
where a contender can be run in several ways, each has a row and the best one counts; "divided" is `kt.parallel_sentences()`,
with which threads share the sentences of a batch instead of the operations. Every contender hides the padding of
the source and the future of the target, though the batch has no padding. keras-hub and torch.nn.Transformer apply dropout to
attention weights as well, and the latter within the feed-forward network, as they have one rate for all; ours and Marian
follow the paper. Ours takes `kt.optimizers.FusedAdam`, torch peers run eagerly with torch's fused Adam, keras-hub with Keras'
Adam. TensorFlow runs with `TF_ENABLE_ONEDNN_OPTS=1` for everyone: without it, it takes slower matrix products on a CPU
without AVX-512. The matmul peak is the fastest of plain float32 products in
TensorFlow and torch (1024 x 512 x 2048 and 2048 x 2048 x 2048) in the same rounds; the operations of a step are counted as
{FLOPS_FORMULA}. A product is shorter than a step and finds a quiet moment more easily: on a busy machine the share of the
peak is understated."""


def row_of(result: Result, results: list[Result]) -> tuple[str, ...]:
    """Formats the cells of one contender."""
    ratio = ratio_to_best_peer(result, results)
    return (
        result.title,
        result.mode,
        f"{result.best_tokens_per_second:,.0f}",
        f"{result.median_tokens_per_second:,.0f}",
        "-" if ratio is None else f"{ratio:.2f}",
        f"{result.share_of_peak:.0%}",
        f"{result.num_parameters:,}",
    )


def rows_of(results: list[Result]) -> list[tuple[str, ...]]:
    """Formats all contenders, fastest first."""
    ordered = sorted(results, key=lambda result: -result.best_tokens_per_second)
    return [row_of(result, results) for result in ordered]


def print_table(shape: Shape, results: list[Result], peak: float, console: Console):
    """Prints the results of one shape."""
    table = Table(title=heading(shape, peak))
    for index, column in enumerate(COLUMNS):
        table.add_column(column, justify="left" if index < 2 else "right")
    for row in rows_of(results):
        table.add_row(*row)
    console.print(table)


def heading(shape: Shape, peak: float) -> str:
    """Says what was measured and against which peak."""
    return f"{shape.name}: {shape.describe()}; matmul peak {peak / 1e9:.0f} GFLOP/s"


def markdown_table(results: list[Result]) -> str:
    """Returns the results of one shape as a Markdown table."""
    rules = ["---", "---"] + ["---:"] * (len(COLUMNS) - 2)
    return "\n".join("| " + " | ".join(row) + " |" for row in [COLUMNS, rules, *rows_of(results)])


def markdown_section(measured: list[tuple[Shape, list[Result], float]], command: str) -> str:
    """Returns the whole section of the page: what, where, when and the tables."""
    parts = ["## Training step", NOTES]
    parts += [f"### {heading(shape, peak)}\n\n{markdown_table(results)}" for shape, results, peak in measured]
    parts.append(f"Measured on {datetime.date.today()}, {machine()}, {versions()}, with\n\n    {command}")
    return "\n\n".join(parts)


def versions(contenders: Iterable[Contender] = CONTENDERS.values()) -> str:
    """Lists Python and the contenders' packages that are installed, with their versions."""
    packages = sorted({package for contender in contenders for package in contender.packages})
    found = [f"{package} {version}" for package in packages if (version := version_of(package))]
    return ", ".join([f"Python {platform.python_version()}", *found])
