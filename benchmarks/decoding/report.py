"""Results as tables: for the terminal and for a page of the documentation."""

import datetime
import functools
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks.decoding import DECODERS
from benchmarks.decoding.jobs import SOURCE_LENGTH, Job
from benchmarks.decoding.measurements import Measurement, of_contender, reference_of
from benchmarks.decoding.notes import NOTES
from benchmarks.page import machine
from benchmarks.report import versions
from benchmarks.shapes import Shape

OURS = "ours-tensorflow"
COLUMNS = ("batch", "contender", "tokens/s", "median", "times reference", "mean tokens", "steps", "same ids", "peak, GiB")


def row_of(measurement: Measurement, measurements: list[Measurement]) -> tuple[str, ...]:
    """Formats the cells of one contender at one job."""
    reference = reference_of(measurement.job, measurements)
    return (
        str(measurement.job.batch_size),
        measurement.contender.title,
        f"{measurement.best_tokens_per_second:,.0f}",
        f"{measurement.median_tokens_per_second:,.0f}",
        f"{measurement.ratio_to(reference):.2f}" if reference else "-",
        f"{measurement.mean_tokens:.1f}",
        f"{measurement.mean_steps:.1f}",
        f"{measurement.share_equal(reference):.0%}" if reference and measurement.has_shared_weights else "-",
        f"{measurement.peak_gib:.2f}",
    )


def by_title(measurements: list[Measurement]) -> dict[str, list[Measurement]]:
    """Groups measurements by what is decoded and how; within a group, batches keep their order."""
    titles = dict.fromkeys(one.job.title for one in measurements)
    return {title: [one for one in measurements if one.job.title == title] for title in titles}


def summary_of(measurements: list[Measurement], peer: str, find: Callable) -> list[tuple[str, ...]]:
    """Returns rows that say how many times as fast as a peer our graph is, a column for each batch size.

    Args:
        measurements: Those of all.
        peer: What the peer is called.
        find: Finds the peer's measurement, given a job and measurements.
    """
    sizes = sorted({one.job.batch_size for one in measurements})
    rows = []
    for title, group in by_title(measurements).items():
        beam_size, workload = group[0].job.beam_size, group[0].job.workload
        jobs = [Job(workload, beam_size, size) for size in sizes]
        pairs = [(of_contender(OURS, job, group), find(job, group)) for job in jobs]
        if any(ours and theirs for ours, theirs in pairs):
            cells = [f"{ours.ratio_to(theirs):.2f}" if ours and theirs else "-" for ours, theirs in pairs]
            rows.append((peer, title, *cells))
    return rows


def summary(measurements: list[Measurement]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Returns the columns and rows of a table of our graph against each peer."""
    sizes = sorted({one.job.batch_size for one in measurements})
    rows = summary_of(measurements, "CTranslate2, float32, the faster way", reference_of)
    for name, contender in DECODERS.items():
        if contender.is_peer:
            rows += summary_of(measurements, contender.title, functools.partial(of_contender, name))
    return ("times as fast as", "workload", *(f"batch {size}" for size in sizes)), rows


def longer_outputs(measurements: list[Measurement]) -> list[str]:
    """Says how much longer it takes to write longer translations."""
    lines = []
    for one in measurements:
        job = Job(str(SOURCE_LENGTH), one.job.beam_size, one.job.batch_size)
        short = of_contender(one.contender.name, job, measurements)
        if short and (one.job.fixed_length or 0) > SOURCE_LENGTH:
            lines.append(
                f"{one.contender.title}: with beam {one.job.beam_size} and batches of {one.job.batch_size}, "
                f"{one.job.fixed_length} tokens take {min(one.seconds) / min(short.seconds):.2f} times as long "
                f"as {SOURCE_LENGTH} tokens."
            )
    return lines


def print_tables(measurements: list[Measurement], console: Console):
    """Prints everything."""
    for title, group in by_title(measurements).items():
        print_table(title, COLUMNS, [row_of(one, group) for one in group], console)
    columns, rows = summary(measurements)
    if rows:
        print_table(DECODERS[OURS].title, columns, rows, console)
    for line in longer_outputs(measurements):
        console.print(line)


def print_table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]], console: Console):
    """Prints one table."""
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify=alignment(column, "left", "right"))
    for row in rows:
        table.add_row(*row)
    console.print(table)


def alignment(column: str, left: str, right: str) -> str:
    """Chooses how a column is aligned: names to the left."""
    return left if column in ("contender", "workload", "times as fast as") else right


def markdown_table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Returns a Markdown table."""
    rules = [alignment(column, "---", "---:") for column in columns]
    return "\n".join("| " + " | ".join(row) + " |" for row in [columns, rules, *rows])


def markdown_section(shape: Shape, measurements: list[Measurement], command: str) -> str:
    """Returns the whole section of the page: what, where, when and the tables."""
    parts = [f"## Decoding\n\n{shape.describe_model()}, float32 unless a contender says otherwise.", NOTES]
    columns, rows = summary(measurements)
    if rows:
        parts.append(f"### {DECODERS[OURS].title}, against each peer\n\n{markdown_table(columns, rows)}")
    parts += longer_outputs(measurements)
    for title, group in by_title(measurements).items():
        parts.append(f"### Decoding: {title}\n\n{markdown_table(COLUMNS, [row_of(one, group) for one in group])}")
    contenders = {one.contender.name: one.contender for one in measurements}.values()
    parts.append(f"Measured on {datetime.date.today()}, {machine()}, {versions(contenders)}, with\n\n    {command}")
    return "\n\n".join(parts)
