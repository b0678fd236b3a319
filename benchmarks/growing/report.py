"""Curves as a section of a page: notes, pictures and tables."""

import datetime

from benchmarks.growing.curves import Curve
from benchmarks.page import machine
from benchmarks.report import versions
from benchmarks.shapes import Shape

NOTES = """\
How speed changes as sequences, translations and batches grow, on logarithmic axes. Every contender has a process of its own and
the same number of threads; at each size they take turns in several rounds, so that all see the same noise. Speed is that of the
fastest run. A contender that fails at a size, or does not answer in time or within its share of the memory, is left out from
there on: a dash.

The training step is that of the section "Training step". The number of tokens in a batch stays the same, so that what grows is
attention alone: its cost for a token is proportional to the length.
{modes}

Translations have a fixed length, as in the section "Decoding", and everybody has the same weights. "Batch split" is CTranslate2
with a thread for each part of a batch, which is how ours divides the work."""
FIRST_MODE = "Models are compiled as graphs, or run eagerly; nobody uses XLA, which compiles anew for each length."
ALL_MODES = "Where a contender can be run in several ways, the best one counts."


def table(curve: Curve) -> str:
    """Returns the speeds as a Markdown table, with the ratio of ours to the best peer; a dash for whoever was left out."""
    columns = [curve.axis, *(contender.title for contender in curve.contenders), "times best peer"]
    rules = ["---:"] * len(columns)
    rows = [row_of(curve, size) for size in curve.sizes]
    return "\n".join("| " + " | ".join(row) + " |" for row in [columns, rules, *rows])


def row_of(curve: Curve, size: int) -> list[str]:
    """Formats the cells of one size."""
    speeds = [curve.speed(contender, size) for contender in curve.contenders]
    ratio = curve.ratio(size)
    return [f"{size:,}", *(cell(speed, ",.0f") for speed in speeds), cell(ratio, ".2f")]


def cell(value: float | None, form: str) -> str:
    """Formats a number, or a dash for none."""
    return "-" if value is None else format(value, form)


def part(curve: Curve, folder: str) -> str:
    """Returns the picture and the table of one curve."""
    picture = f"![{curve.title}: {curve.unit} against {curve.axis}]({folder}/growth-{curve.name}.png)"
    return f"### {curve.title}\n\n{picture}\n\nSpeeds are {curve.unit}.\n\n{table(curve)}"


def markdown_section(curves: list[Curve], shape: Shape, folder: str, has_all_modes: bool, command: str) -> str:
    """Returns the whole section of the page.

    Args:
        curves: What was measured.
        shape: The model.
        folder: Where the pictures are, as seen from the page.
        has_all_modes: Whether contenders were run in all their modes.
        command: The command that measured.
    """
    contenders = {one.name: one for curve in curves for one in curve.contenders if curve.speeds.get(one.name)}.values()
    notes = NOTES.format(modes=ALL_MODES if has_all_modes else FIRST_MODE)
    measured = f"Measured on {datetime.date.today()}, {machine()}, {versions(contenders)}, with\n\n    {command}"
    parts = ["## Growing sequences and batches", notes, f"{shape.name}: {shape.describe_model()}."]
    return "\n\n".join([*parts, *(part(curve, folder) for curve in curves), measured])
