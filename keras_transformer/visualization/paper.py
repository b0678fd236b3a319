"""Pictures of the paper's parts: positions, masks and the learning rate."""

from collections.abc import Mapping, Sequence

import keras
import numpy as np
from keras import ops

from keras_transformer.layers import SinusoidalPositionalEncoding
from keras_transformer.masks import causal_mask, combine_masks, padding_mask
from keras_transformer.schedules import WarmupSchedule
from keras_transformer.visualization.style import GREY, HEAD_COLORS, SIGNED, WEIGHTS, label_axes, new_figure, tidy

PAPER = {
    "M = 512, 4,000 updates of warm-up (base)": WarmupSchedule(512, 4000),
    "M = 512, 8,000 updates": WarmupSchedule(512, 8000),
    "M = 256, 4,000 updates": WarmupSchedule(256, 4000),
}


def plot_positions(num_positions: int = 60, model_dim: int = 128, layout: str = "interleaved"):
    """Draws the sinusoidal encoding of positions (section 3.5), and how alike two positions are.

    Args:
        num_positions: How many positions.
        model_dim: Width of the model (M).
        layout: `"interleaved"` or `"halves"`.

    Returns:
        A matplotlib `Figure`: the encoding, and the products of each position with a few others.
    """
    layer = SinusoidalPositionalEncoding(layout)
    layer.build((None, None, model_dim))
    encoding = ops.convert_to_numpy(layer.encode(np.arange(num_positions)))  # (T, M)
    figure = new_figure(10, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    image = left.imshow(encoding, cmap=SIGNED, vmin=-1, vmax=1, aspect="auto")
    left.set(xlabel="channel", ylabel="position", title="PE(position, channel)")
    figure.colorbar(image, ax=left, ticks=[-1, 0, 1])
    for number, place in enumerate(np.linspace(0, num_positions - 1, 3).astype(int)):
        right.plot(encoding @ encoding[place] / (model_dim / 2), color=HEAD_COLORS[number], label=f"position {place}")
    right.set(xlabel="position", title="How alike: PE(a) · PE(b), divided by M / 2", ylim=(None, 1.2))
    right.legend(frameon=False, ncols=3, loc="upper center", fontsize=9)
    tidy(right)
    return figure


def plot_masks(source_ids: Sequence[int] = (7, 8, 9, 2, 0, 0), num_targets: int = 5, pad_id: int = 0):
    """Draws the three masks of the model: who may look where.

    Args:
        source_ids: Ids of a source with its padding.
        num_targets: Number of target positions.
        pad_id: The id of padding.

    Returns:
        A matplotlib `Figure`.
    """
    num_sources, targets = len(source_ids), np.arange(num_targets)
    real = padding_mask(np.asarray(source_ids)[None], pad_id)  # (1, S)
    masks = {
        "Encoder: the padding is hidden": combine_masks(real, np.ones((num_sources, num_sources), "bool")),
        "Decoder: the future is hidden": causal_mask(targets, targets),
        "Cross: the source's padding is hidden": combine_masks(real, np.ones((num_targets, num_sources), "bool")),
    }
    sources = ["pad" if id == pad_id else f"s{place + 1}" for place, id in enumerate(source_ids)]
    names = [f"t{place + 1}" for place in range(num_targets)]
    sides = ((sources, sources), (names, names), (names, sources))
    figure = new_figure(11, 3.9)
    for axes, (title, mask), (queries, keys) in zip(figure.subplots(1, 3), masks.items(), sides, strict=True):
        draw_mask(axes, ops.convert_to_numpy(mask), queries, keys)
        axes.set_title(title, fontsize=11)
    figure.supxlabel("a row looks at the columns that are filled", fontsize=9, color=GREY)
    return figure


def draw_mask(axes, mask: np.ndarray, queries: list[str], keys: list[str]):
    """Draws a boolean mask `(T, S)`, True filled."""
    axes.imshow(mask, cmap=WEIGHTS, vmin=0, vmax=1.6)
    label_axes(axes, queries, keys)
    axes.set_xticks(np.arange(mask.shape[1] + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(mask.shape[0] + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)


def plot_schedule(
    schedules: Mapping[str, keras.optimizers.schedules.LearningRateSchedule]
    | keras.optimizers.schedules.LearningRateSchedule
    | None = None,
    updates: int = 20_000,
):
    """Draws learning rates over updates.

    Args:
        schedules: A schedule, or several by name. Defaults to that of the paper and two more (section 5.3).
        updates: Number of updates.

    Returns:
        A matplotlib `Figure`.
    """
    if not isinstance(schedules, Mapping):
        schedules = PAPER if schedules is None else {type(schedules).__name__: schedules}
    figure = new_figure(7, 3.8)
    axes = figure.subplots()
    numbers = np.unique(np.linspace(1, updates, 300).round())
    for number, (name, schedule) in enumerate(schedules.items()):
        rates = [float(ops.convert_to_numpy(schedule(int(update) - 1))) for update in numbers]
        style = ("-", "--", ":", "-.")[number % 4]
        axes.plot(numbers, rates, style, color=HEAD_COLORS[number % len(HEAD_COLORS)], label=name, linewidth=1.8)
    axes.set(
        xlabel="update",
        ylabel="learning rate",
        xlim=(0, updates),
        ylim=(0, None),
        title="Warm-up, then the inverse square root",
    )
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False)
    tidy(axes)
    return figure
