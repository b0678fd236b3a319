"""A picture of a dataset: lengths, the shapes of its batches, what was dropped. Needs matplotlib."""

from collections.abc import Iterator

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from keras_transformer.data import ParallelDataset, Statistics
from keras_transformer.data.plan import length_histogram
from keras_transformer.data.statistics import REASONS

# Told apart with every kind of colour vision, and in grey.
SOURCE_COLOR, TARGET_COLOR, SHAPE_COLOR, DROPPED_COLOR = "#0072B2", "#E69F00", "#D55E00", "#666666"
COUNT_COLORS = ListedColormap(colormaps["Blues"](np.linspace(0.2, 1, 256)))  # A single pair is to be seen, too.
MOST_BOXES = 64


def draw(dataset: ParallelDataset, title: str) -> Figure:
    """Draws a dataset.

    Args:
        dataset: The dataset.
        title: What to call it.

    Returns:
        A figure, to be saved or shown.
    """
    dropped = any(dataset.statistics.dropped.values())
    figure = Figure(figsize=(13, 6), dpi=120, layout="constrained")
    rows = [["lengths", "plane"], ["dropped", "plane"]] if dropped else [["lengths", "plane"]]
    axes = figure.subplot_mosaic(rows, width_ratios=[1, 1.15], height_ratios=[4, 1] if dropped else None)
    figure.suptitle(shortened(title), fontsize=13)
    draw_lengths(axes["lengths"], dataset.statistics)
    draw_plane(axes["plane"], dataset)
    if dropped:
        draw_dropped(axes["dropped"], dataset.statistics)
    return figure


def draw_lengths(axes: Axes, statistics: Statistics):
    """Draws how many sentences have which length, on both sides."""
    for side, color in {"source": SOURCE_COLOR, "target": TARGET_COLOR}.items():
        lengths = getattr(statistics, f"{side}_lengths")
        counts = np.zeros(max(lengths) + 2)
        counts[list(lengths)] = list(lengths.values())
        mean = statistics.tokens(side) / statistics.kept
        label = f"{side}: mean {mean:.1f}, {statistics.tokens_per_word(side):.2f} tokens a word"
        edges = np.arange(len(counts) + 1) - 0.5
        axes.stairs(counts, edges, fill=True, color=color, alpha=0.25)
        axes.stairs(counts, edges, color=color, linewidth=1.5, linestyle="-" if side == "source" else "--", label=label)
    axes.set(xlabel="tokens of a sentence, without start and end", ylabel="sentences", xlim=(0, None))
    axes.set_title(f"Lengths of {statistics.kept:,} pairs")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.margins(y=0.2)  # Room for the legend above the highest bars.
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def draw_plane(axes: Axes, dataset: ParallelDataset):
    """Draws how many pairs have which two lengths, and the shapes that they are padded to."""
    planner = dataset.planner
    histogram = length_histogram(planner.source_lengths, planner.target_lengths)
    colors = axes.pcolormesh(
        np.arange(histogram.shape[0] + 1) - 0.5,
        np.arange(histogram.shape[1] + 1) - 0.5,
        np.ma.masked_equal(histogram.T, 0),
        norm=LogNorm(1, max(2, histogram.max())),
        cmap=COUNT_COLORS,
        rasterized=True,
    )
    axes.figure.colorbar(colors, ax=axes, label="pairs")
    draw_shapes(axes, dataset)
    axes.set(xlabel="source tokens, with the end", ylabel="target tokens, with the end")
    axes.set_xlim(0, histogram.shape[0] + 1)
    axes.set_ylim(0, histogram.shape[1] + 1)
    plan = dataset.plan(0)
    axes.set_title(f"{len(plan):,} batches in {len(set(plan.shapes))} shapes, {dataset.padding_share():.1%} padding")


def draw_shapes(axes: Axes, dataset: ParallelDataset):
    """Draws a box around the lengths that are padded to the same shape, or only its corner where each batch has its own."""
    if dataset.planner.num_shapes is not None:
        for corner, width, height in shape_boxes(dataset):
            axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=SHAPE_COLOR, linewidth=1.1))
    shapes = dataset.shapes()
    sources, targets = ([getattr(shape, f"{side}_length") + 0.5 for shape in shapes] for side in ("source", "target"))
    label = "batch shape, at the corner of its box" if len(shapes) <= MOST_BOXES else f"{len(shapes)} batch shapes"
    axes.plot(sources, targets, ".", color=SHAPE_COLOR, markersize=7 if len(shapes) <= MOST_BOXES else 3, label=label)
    axes.legend(frameon=False, loc="lower right")


def shape_boxes(dataset: ParallelDataset) -> Iterator[tuple[tuple[float, float], float, float]]:
    """Yields lower left corner, width and height of the lengths of each shape that batches have."""
    table, used = dataset.planner.table, set(dataset.shapes())
    for number, shape in enumerate(table.shapes):
        cells = np.argwhere(table.shape_of == number)
        if shape in used and len(cells):
            first, last = cells.min(0) - 0.5, cells.max(0) + 0.5
            yield tuple(first), *(last - first)


def draw_dropped(axes: Axes, statistics: Statistics):
    """Draws how many pairs were dropped, a bar a reason."""
    dropped = {REASONS[reason]: count for reason, count in statistics.dropped.items() if count}
    bars = axes.barh(list(dropped), list(dropped.values()), color=DROPPED_COLOR)
    axes.bar_label(bars, [f"{count:,}  {reason}" for reason, count in dropped.items()], padding=4)
    axes.set_title(f"{sum(dropped.values()):,} of {statistics.read:,} pairs dropped")
    axes.set_xlim(0, 2.5 * max(dropped.values()))  # Room for the words beside the bars.
    axes.invert_yaxis()
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(bottom=False, labelbottom=False, left=False, labelleft=False)


def shortened(title: str, length: int = 120) -> str:
    """Keeps the end of a title that is too long for a line: of paths it says most."""
    return title if len(title) <= length else f"... {title[-length:]}"
