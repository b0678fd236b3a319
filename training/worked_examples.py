"""Small examples worked through with numbers, drawn for docs/paper.md."""

import keras
import numpy as np
from keras import ops

from keras_transformer.layers import EncoderBlock
from keras_transformer.layers.scaled_dot_product import attention_weights
from keras_transformer.visualization.style import BLUE, ORANGE, WEIGHTS, hide_ticks, new_figure, tidy

# Three words of four channels, made up: "it" asks for what an animal has to offer.
WORDS = ("animal", "street", "it")
QUERY = np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [2.0, 0.0, 1.0, 0.0]])
KEY = np.array([[2.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
VALUE = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])


def plot_scaled_dot_product():
    """Draws the steps of scaled dot-product attention (section 3.2.1) for three words."""
    products = QUERY @ KEY.T  # (T, S)
    scaled = products / np.sqrt(KEY.shape[1])
    weights = ops.convert_to_numpy(attention_weights(QUERY[None, :, None], KEY[None, :, None]))[0, 0]  # (T, S)
    steps = {
        "Q K^T": (products, WORDS),
        "divided by √d_k = 2": (scaled, WORDS),
        "softmax: the weights": (weights, WORDS),
        "times V: the output": (weights @ VALUE, ("v1", "v2")),
    }
    figure = new_figure(11, 3.1)
    for axes, (title, (numbers, columns)) in zip(figure.subplots(1, 4), steps.items(), strict=True):
        draw_numbers(axes, numbers, columns)
        axes.set_title(title, fontsize=11, parse_math=False)
    return figure


def draw_numbers(axes, numbers: np.ndarray, columns):
    """Draws a small matrix with its numbers written into it."""
    most = np.abs(numbers).max()
    axes.imshow(numbers, cmap=WEIGHTS, vmin=0, vmax=1.2 * most)
    hide_ticks(axes)
    axes.set_yticks(range(len(WORDS)), WORDS)
    axes.set_xticks(range(len(columns)), columns)
    axes.tick_params(length=0)
    for row, column in np.ndindex(*numbers.shape):
        color = "white" if numbers[row, column] > 0.75 * most else "black"
        axes.text(column, row, f"{numbers[row, column]:.2f}", ha="center", va="center", color=color, fontsize=11)


def plot_scaling(num_keys: int = 32, num_queries: int = 100):
    """Draws how large the largest weight is, with and without the division by the root of d_k."""
    random = np.random.default_rng(0)
    widths = 2 ** np.arange(1, 11)
    lines = {"Q K^T": [], "Q K^T / √d_k": []}
    for width in widths:
        query, key = random.normal(size=(num_queries, 1, 1, width)), random.normal(size=(num_queries, num_keys, 1, width))
        lines["Q K^T / √d_k"].append(largest_weight(query, key))
        lines["Q K^T"].append(largest_weight(query * np.sqrt(width), key))
    figure = new_figure(6, 3.4)
    axes = figure.subplots()
    for (name, values), color, mark in zip(lines.items(), (ORANGE, BLUE), ("s--", "o-"), strict=True):
        axes.plot(widths, values, mark, color=color, label=name)
    axes.set_xscale("log", base=2)
    axes.set(xlabel="d_k, the width of a head", ylim=(0, 1.02), title=f"Mean of the largest of {num_keys} weights")
    axes.legend(frameon=False)
    tidy(axes)
    return figure


def largest_weight(query: np.ndarray, key: np.ndarray) -> float:
    """Returns the largest weight of a row, on average."""
    weights = attention_weights(ops.convert_to_tensor(query, "float32"), ops.convert_to_tensor(key, "float32"))
    return float(ops.convert_to_numpy(weights).max(axis=-1).mean())


def plot_norms(num_layers: int = 12, model_dim: int = 128):
    """Draws how the numbers grow through a stack of fresh blocks, with normalization after or before each sublayer."""
    figure = new_figure(6, 3.4)
    axes = figure.subplots()
    for norm, color, mark in (("post", BLUE, "o-"), ("pre", ORANGE, "s--")):
        keras.utils.set_random_seed(0)
        x = keras.random.normal((4, 20, model_dim))
        deviations = [1.0]
        for _ in range(num_layers):
            x = EncoderBlock(feed_forward_dim=4 * model_dim, num_heads=4, norm=norm)(x)
            deviations.append(float(ops.convert_to_numpy(ops.std(x))))
        axes.plot(range(num_layers + 1), deviations, mark, color=color, label=f"{norm}-norm")
    axes.set(xlabel="block", ylim=(0, None), title="Standard deviation of the output of each block")
    axes.legend(frameon=False)
    tidy(axes)
    return figure


# What a made-up model thinks of each next word, after what was written.
NEXT = {
    (): {"der": 0.6, "das": 0.4},
    ("der",): {"Weg": 0.4, "Fluss": 0.35, "Pfad": 0.25},
    ("das",): {"Tier": 0.9, "Meer": 0.1},
}


def search_tree(beam_size: int) -> list[tuple[tuple[str, ...], float]]:
    """Searches the tree above and returns what is kept after each step, best first, with its probability."""
    kept, steps = [((), 1.0)], []
    for _ in range(2):
        longer = [((*words, word), share * chance) for words, share in kept for word, chance in NEXT[words].items()]
        kept = sorted(longer, key=lambda one: -one[1])[:beam_size]
        steps += kept
    return steps


def plot_search():
    """Draws what greedy search and a beam of two keep of a small tree."""
    figure = new_figure(9, 3.6)
    for axes, beam_size in zip(figure.subplots(1, 2), (1, 2), strict=True):
        steps = search_tree(beam_size)
        best = steps[-beam_size]
        draw_tree(axes, {words for words, _ in steps}, best[0])
        name = "Greedy" if beam_size == 1 else f"Beam of {beam_size}"
        axes.set_title(f"{name}: “{' '.join(best[0])}”, {best[1]:.2f}", fontsize=11)
    return figure


def draw_tree(axes, kept: set, best: tuple[str, ...]):
    """Draws all hypotheses; those that are kept are dark, the one that is chosen is bold."""
    places = {(): (0.0, 2.0), ("der",): (1.0, 1.0), ("das",): (1.0, 3.5)}
    places |= {("der", word): (2.0, float(row)) for row, word in enumerate(NEXT[("der",)])}
    places |= {("das", word): (2.0, float(row + 3)) for row, word in enumerate(NEXT[("das",)])}
    for words, (x, y) in places.items():
        is_best, is_kept = words == best[: len(words)], words in kept or not words
        color, weight = BLUE if is_best else "black" if is_kept else "#b5b5b5", "bold" if is_best else "normal"
        axes.text(x, y, words[-1] if words else "<s>", va="center", fontsize=11, weight=weight, color=color)
        if words:
            left, top = places[words[:-1]]
            axes.plot([left + 0.3, x - 0.05], [top, y], color=color, linewidth=2.2 if is_best else 1.2)
            share = f"{NEXT[words[:-1]][words[-1]]:.2f}"
            axes.text(
                (left + x) / 2 + 0.12, (top + y) / 2, share, fontsize=9, va="center", ha="center", backgroundcolor="white"
            )
    axes.set(xlim=(-0.1, 2.6), ylim=(4.6, -0.6))
    axes.axis("off")
