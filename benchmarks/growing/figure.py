"""Pictures of curves."""

from pathlib import Path

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from benchmarks.growing.curves import Curve
from keras_transformer.visualization.style import HEAD_COLORS, new_figure, tidy

MARKERS = "osD^vPX*"
LINES = ("-", "--", "-.", ":")
NAMED_SPEEDS = {10: (2, 3, 5, 7), 100: (2, 5)}  # Besides powers of ten, while the axis spans less than this factor.


def draw(curve: Curve):
    """Draws the speed of every contender at every size that it could do, both on logarithmic axes.

    Returns:
        A matplotlib `Figure`.
    """
    figure = new_figure(7.5, 4.8)
    axes = figure.subplots()
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for number, contender in enumerate(curve.contenders):
        sizes = [size for size in curve.sizes if curve.speed(contender, size)]
        speeds = [curve.speed(contender, size) for size in sizes]
        axes.plot(sizes, speeds, label=contender.title, **style_of(number, contender.is_peer))
    axes.set_title(curve.title, fontsize=11)
    axes.set_xlabel(curve.axis)
    axes.set_ylabel(curve.unit)
    axes.set_xticks(curve.sizes, [str(size) for size in curve.sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    name_speeds(axes)
    tidy(axes)
    axes.grid(alpha=0.12, which="minor")
    axes.legend(frameon=False, fontsize=9, handlelength=3.5)
    return figure


def style_of(number: int, is_peer: bool) -> dict:
    """Returns how a contender is drawn: told apart by colour, marker and dashes; ours with the widest line."""
    return {
        "color": HEAD_COLORS[number % len(HEAD_COLORS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": LINES[number % len(LINES)],
        "linewidth": 1.6 if is_peer else 2.4,
        "markersize": 6,
    }


def name_speeds(axes):
    """Writes speeds as plain numbers, and enough of them."""
    low, high = axes.get_ylim()
    plain = FuncFormatter(lambda speed, _: f"{speed:,.0f}")
    axes.yaxis.set_major_formatter(plain)
    axes.yaxis.set_minor_formatter(NullFormatter())
    named = next((steps for span, steps in NAMED_SPEEDS.items() if high / low < span), None)
    if named:
        axes.yaxis.set_minor_locator(LogLocator(subs=named))
        axes.yaxis.set_minor_formatter(plain)


def write(curve: Curve, folder: Path) -> Path:
    """Writes the picture of a curve and returns where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"growth-{curve.name}.png"
    draw(curve).savefig(path)
    return path
