"""A picture of a training run: loss, perplexity, learning rate, BLEU."""

from collections.abc import Callable, Sequence

import numpy as np

from keras_transformer.visualization.style import BLUE, GREEN, GREY, ORANGE, new_figure, tidy

TRAIN = {"color": BLUE, "marker": "o", "markersize": 4, "linewidth": 1.6}
VALIDATION = {"color": ORANGE, "marker": "s", "markersize": 4, "linewidth": 1.6, "linestyle": "--"}
CHRF = {"color": GREEN, "marker": "^", "markersize": 4, "linewidth": 1.6, "linestyle": ":"}
MOST_MARKERS = 30
NEAR_ONE = 1.02  # Below this largest value, a perplexity is drawn on a plain scale.


def plot_training(
    history,
    title: str = "Training",
    rate: Callable[[np.ndarray], np.ndarray] | None = None,
    parts: Sequence[dict] = (),
):
    """Draws the course of a run.

    Args:
        history: What `fit` returned; or one dictionary for each epoch: `updates`, `loss`, `perplexity`, and what was measured
            on the validation set, as in a run's `history.csv`. A value may be missing.
        title: What to call the run.
        rate: The learning rate of updates, counted from 1. Without it, the `learning_rate` of the rows is drawn.
        parts: Rows of parts of epochs: `updates`, `loss` and `perplexity` of the training set, as in a run's `steps.csv`.

    Returns:
        A matplotlib `Figure`.
    """
    rows, unit = rows_of(history)
    figure = new_figure(12, 7.5)
    figure.suptitle(title, fontsize=14)
    axes = figure.subplot_mosaic([["loss", "perplexity"], ["rate", "scores"]], sharex=True)
    draw_pair(axes["loss"], parts or rows, rows, "loss", "Loss, label smoothing included")
    draw_pair(axes["perplexity"], parts or rows, rows, "perplexity", "Perplexity of a token")
    draw_rate(axes["rate"], rows, rate)
    draw_scores(axes["scores"], rows)
    for name in ("rate", "scores"):
        axes[name].set_xlabel(unit)
    for one in axes.values():
        one.set_xlim(left=0)
        one.xaxis.set_major_formatter("{x:,.0f}")
        tidy(one)
    return figure


def rows_of(history) -> tuple[list[dict], str]:
    """Returns a row for each epoch, and what is counted: updates, or epochs for what `fit` returned."""
    if not hasattr(history, "history"):
        return list(history), "updates"
    columns = history.history
    rows = [{name: values[place] for name, values in columns.items()} for place in range(len(history.epoch))]
    return [{"updates": epoch + 1, **row} for epoch, row in zip(history.epoch, rows, strict=True)], "epochs"


def points(rows: Sequence[dict], name: str) -> tuple[list[int], list[float]]:
    """Returns the updates at which something was measured, and the measurements."""
    found = [(row["updates"], row[name]) for row in rows if row.get(name) is not None]
    return [updates for updates, _ in found], [value for _, value in found]


def draw_line(axes, rows: Sequence[dict], name: str, label: str, style: dict):
    """Draws one measurement, its last value in the legend."""
    updates, values = points(rows, name)
    if values:
        axes.plot(updates, values, label=f"{label}: {values[-1]:.4g}", **style)


def draw_pair(axes, training: Sequence[dict], rows: Sequence[dict], name: str, title: str):
    """Draws a measurement on the training set beside that on the validation set, on a scale on which both can be read."""
    is_dense = len(training) > MOST_MARKERS
    draw_line(axes, training, name, "training", {**TRAIN, "marker": ""} if is_dense else TRAIN)
    draw_line(axes, rows, f"val_{name}", "validation", VALIDATION)
    values = points(training, name)[1] + points(rows, f"val_{name}")[1]
    if name == "perplexity" and values and max(values) > NEAR_ONE:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:,.3g}")
        axes.yaxis.set_minor_formatter("{x:,.3g}" if max(values) / min(values) < 10 else "")
    finish(axes, title, "best")


def draw_rate(axes, rows: Sequence[dict], rate: Callable[[np.ndarray], np.ndarray] | None):
    """Draws the learning rate."""
    if rate is not None and rows:
        updates = np.unique(np.linspace(1, max(1, rows[-1]["updates"]), 500).round())
        axes.plot(updates, rate(updates), color=GREY, linewidth=1.8)
    else:
        draw_line(axes, rows, "learning_rate", "rate", {"color": GREY, "linewidth": 1.8, "marker": "o", "markersize": 4})
    if not axes.lines:
        not_measured(axes)
    axes.set_ylim(bottom=0)
    finish(axes, "Learning rate", None)


def draw_scores(axes, rows: Sequence[dict]):
    """Draws BLEU and chrF of the validation set."""
    draw_line(axes, rows, "val_bleu", "BLEU", VALIDATION)
    draw_line(axes, rows, "val_chrf", "chrF", CHRF)
    if not axes.lines:
        not_measured(axes)
    axes.set_ylim(0, max([5, *(1.08 * max(line.get_ydata()) for line in axes.lines)]))
    finish(axes, "Translations of the validation set", "lower right")


def not_measured(axes):
    """Says that a panel is empty because there is nothing to show."""
    axes.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes.transAxes, color=GREY)


def finish(axes, title: str, legend: str | None):
    """Gives a panel its title and its legend."""
    axes.set_title(title, fontsize=11)
    if legend and axes.lines:
        axes.legend(frameon=False, loc=legend)
