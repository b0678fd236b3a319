"""Heat maps of attention weights."""

import numpy as np

from keras_transformer.attention import Attention
from keras_transformer.visualization.selection import NAMES, select, side_labels, title_of
from keras_transformer.visualization.style import ORANGE, WEIGHTS, hide_ticks, label_axes, new_figure

CELL = 0.3  # Inches.


def plot_head(attention: Attention, kind: str = "encoder_self", layer: int = -1, head: int | None = None, join: bool = False):
    """Draws where a head looks: a row for each word that looks, a column for each word that is looked at.

    Args:
        attention: What `Translator.attend` returned.
        kind: `"encoder_self"`, `"decoder_self"` or `"cross"`.
        layer: Number of the layer, from 0; -1 is the last.
        head: Number of the head, from 0, or `None` for the average over the heads.
        join: Whether to join the pieces of words.

    Returns:
        A matplotlib `Figure`.
    """
    attention = attention.words() if join else attention
    weights = select(attention, kind, layer, head)
    figure = new_figure(*map_size(weights))
    draw_map(figure, figure.subplots(), weights, *side_labels(attention, kind))
    figure.suptitle(title_of(attention, kind, layer, head), fontsize=11)
    return figure


def plot_alignment(attention: Attention, layer: int | None = None, head: int | None = None, join: bool = True):
    """Draws which source word each word of the translation looks at, with the largest weight of each row marked.

    Args:
        attention: What `Translator.attend` returned.
        layer: Number of the layer, from 0, or `None` for the average over all layers.
        head: Number of the head, from 0, or `None` for the average over the heads.
        join: Whether to join the pieces of words.

    Returns:
        A matplotlib `Figure`.
    """
    attention = attention.words() if join else attention
    layers = range(attention.cross.shape[0]) if layer is None else [layer]
    weights = np.mean([select(attention, "cross", one, head) for one in layers], axis=0)
    figure = new_figure(*map_size(weights))
    axes = figure.subplots()
    draw_map(figure, axes, weights, *side_labels(attention, "cross"))
    axes.scatter(weights.argmax(axis=1), np.arange(len(weights)), s=26, facecolors="none", edgecolors=ORANGE, linewidths=1.6)
    which = "mean of all layers and heads" if layer is None and head is None else title_of(attention, "cross", layers[-1], head)
    figure.suptitle(f"Alignment: {which}\nO: largest weight of the row", fontsize=10)
    return figure


def plot_heads(attention: Attention, kind: str = "encoder_self", join: bool = False):
    """Draws all heads of a kind: a row for each layer, a column for each head, on one scale.

    Args:
        attention: What `Translator.attend` returned.
        kind: `"encoder_self"`, `"decoder_self"` or `"cross"`.
        join: Whether to join the pieces of words.

    Returns:
        A matplotlib `Figure`.
    """
    attention = attention.words() if join else attention
    weights = attention[kind]
    num_layers, num_heads, num_queries, num_keys = weights.shape
    side = 1.9 if num_heads > 4 else 2.6
    figure = new_figure(side * num_heads + 1.2, side * num_layers * min(1.6, max(0.6, num_queries / num_keys)) + 0.7)
    panels = figure.subplots(num_layers, num_heads, squeeze=False)
    queries, keys = side_labels(attention, kind)
    size = min(8, 72 * side * 0.8 / max(num_queries, num_keys))
    for layer, head in np.ndindex(num_layers, num_heads):
        axes = panels[layer, head]
        image = axes.imshow(weights[layer, head], cmap=WEIGHTS, vmin=0, vmax=1)
        axes.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=8)
        hide_ticks(axes)
        if size >= 4 and head == 0:
            axes.set_yticks(range(num_queries), queries, fontsize=size, parse_math=False)
        if size >= 4 and layer == num_layers - 1:
            axes.set_xticks(range(num_keys), keys, fontsize=size, rotation=90, parse_math=False)
        axes.tick_params(length=0)
    figure.colorbar(image, ax=panels, shrink=0.6, label="weight")
    figure.suptitle(NAMES[kind], fontsize=11)
    return figure


def map_size(weights: np.ndarray) -> tuple[float, float]:
    """Returns the size of a figure, in inches, in which the cells of a heat map are large enough to be read."""
    cell = max(0.12, min(CELL, 18 / max(weights.shape)))
    return cell * weights.shape[1] + 2.2, cell * weights.shape[0] + 1.6


def draw_map(figure, axes, weights: np.ndarray, queries: list[str], keys: list[str]):
    """Draws one heat map with its labels and its scale."""
    image = axes.imshow(weights, cmap=WEIGHTS, vmin=0, vmax=max(float(weights.max()), 1e-6))
    label_axes(axes, queries, keys, size=9 if max(weights.shape) <= 40 else 6)
    figure.colorbar(image, ax=axes, shrink=0.7, label="weight")
