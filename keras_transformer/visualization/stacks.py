"""Figure 1 of the paper: encoder and decoder, with the names that their parts have here."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

import keras

from keras_transformer.layers import LearnedPositionalEncoding, SinusoidalPositionalEncoding, TiedLogits
from keras_transformer.models import TransformerConfig
from keras_transformer.visualization.style import BLUE, GREEN, GREY, ORANGE, new_figure

PURPLE = "#6B4FBB"
COLORS = {
    "MultiHeadAttention": ORANGE,
    "FeedForward": BLUE,
    "TokenEmbedding": PURPLE,
    "SinusoidalPositionalEncoding": PURPLE,
    "LearnedPositionalEncoding": PURPLE,
}
WIDTH, HEIGHT, GAP = 4.5, 0.62, 0.34
ENCODER, DECODER = 0.0, 7.2  # Where the middle of each stack is.
SIDE = WIDTH / 2 + 0.45  # From there to the line of a residual connection.


@dataclass(frozen=True)
class Part:
    """A box of the figure.

    Args:
        label: The name of a class, or of an operation.
        note: What the part does there, in smaller letters.
        begins_residual: Whether a residual connection leaves the line below this box.
        ends_residual: Whether it is added in this box.
    """

    label: str
    note: str = ""
    begins_residual: bool = False
    ends_residual: bool = False


def plot_stacks(config: TransformerConfig | None = None):
    """Draws the encoder and the decoder of a model (figure 1 of the paper) with the names of our classes.

    Args:
        config: The model's config. Defaults to the paper's base model.

    Returns:
        A matplotlib `Figure`.
    """
    config = config or TransformerConfig(vocabulary_size=37_000)
    figure = new_figure(8.6, 9)
    axes = figure.subplots()
    encoder, decoder = block_parts(config.norm, ["self"]), block_parts(config.norm, ["causal self", "cross"])
    top, _ = draw_stack(axes, ENCODER, "source_ids", config, encoder, ("EncoderBlock", config.num_encoder_layers))
    end, places = draw_stack(axes, DECODER, "target_ids", config, decoder, ("DecoderBlock", config.num_decoder_layers))
    draw_encoded(axes, top, places[next(number for number, part in enumerate(decoder) if part.note == "cross-attention")])
    logits = keras.layers.Dense if config.tie == "none" else TiedLogits
    for label in (logits.__name__, "softmax"):
        draw_arrow(axes, (DECODER, end), (DECODER, end + GAP))
        draw_box(axes, DECODER, end + GAP, Part(label))
        end += GAP + HEIGHT
    draw_arrow(axes, (DECODER, end), (DECODER, end + GAP))
    axes.text(DECODER, end + GAP + 0.1, "probability of each next token", ha="center", va="bottom", color=GREY)
    axes.set(xlim=(ENCODER - SIDE - 0.8, DECODER + SIDE + 0.8), ylim=(-0.7, end + GAP + 0.7))
    axes.set_axis_off()
    return figure


def block_parts(norm: str, attentions: Sequence[str]) -> list[Part]:
    """Returns the boxes of a block, the lowest first."""
    sublayers = [("MultiHeadAttention", f"{kind}-attention") for kind in attentions] + [("FeedForward", "")]
    parts = []
    for label, note in sublayers:
        if norm == "post":
            parts += [Part(label, note, begins_residual=True), Part("add, LayerNormalization", ends_residual=True)]
        else:
            parts += [Part("LayerNormalization", begins_residual=True), Part(label, note), Part("add", ends_residual=True)]
    return parts


def draw_stack(
    axes, middle: float, ids: str, config: TransformerConfig, parts: Sequence[Part], block: tuple[str, int]
) -> tuple[float, list[float]]:
    """Draws ids, embedding, positions and the blocks of one side, and returns its upper end and where the block's boxes are."""
    learned = config.positions == "learned"
    positions = LearnedPositionalEncoding if learned else SinusoidalPositionalEncoding
    axes.text(middle, -0.1, ids, ha="center", va="top", family="monospace")
    y = 0.0
    for part in (Part("TokenEmbedding", "times √M" if config.embedding_scale else ""), Part(positions.__name__, "added")):
        y = draw_on_top(axes, middle, y, part)[1]
    axes.plot([middle, middle], [y, y + GAP], color=GREY, linewidth=1)
    y += GAP
    bottom, places, residual = y, [], y
    for part in parts:
        residual = y + GAP / 2 if part.begins_residual else residual
        place, y = draw_on_top(axes, middle, y, part)
        places.append(place)
        if part.ends_residual:
            draw_residual(axes, middle, residual, place + HEIGHT / 2)
    draw_frame(axes, middle, bottom + 0.08, y + 0.2, f"{block[1]} times {block[0]}")
    y += 0.2
    return (draw_on_top(axes, middle, y, Part("LayerNormalization"))[1] if config.norm == "pre" else y), places


def draw_on_top(axes, middle: float, y: float, part: Part) -> tuple[float, float]:
    """Draws an arrow up from `y` and a box above it; returns the lower and the upper end of the box."""
    draw_arrow(axes, (middle, y), (middle, y + GAP))
    draw_box(axes, middle, y + GAP, part)
    return y + GAP, y + GAP + HEIGHT


def draw_box(axes, middle: float, y: float, part: Part):
    """Draws a box with its label."""
    patches = importlib.import_module("matplotlib.patches")
    color = COLORS.get(part.label, GREY)
    options = {"boxstyle": "round,pad=0,rounding_size=0.1", "facecolor": (*hex_to_rgb(color), 0.14), "edgecolor": color}
    axes.add_patch(patches.FancyBboxPatch((middle - WIDTH / 2, y), WIDTH, HEIGHT, **options))
    label = f"{part.label}  ({part.note})" if part.note else part.label
    axes.text(middle, y + HEIGHT / 2, label, ha="center", va="center", fontsize=8.5)


def draw_frame(axes, middle: float, bottom: float, top: float, label: str):
    """Draws the frame of a block that is repeated."""
    patches = importlib.import_module("matplotlib.patches")
    options = {"boxstyle": "round,pad=0,rounding_size=0.2", "facecolor": "none", "edgecolor": GREY, "linestyle": "--"}
    axes.add_patch(patches.FancyBboxPatch((middle - SIDE - 0.15, bottom), 2 * SIDE + 0.3, top - bottom, **options))
    outside = -1 if middle == ENCODER else 1
    side, rotation = middle + outside * (SIDE + 0.45), 90 if outside < 0 else 270
    axes.text(side, (bottom + top) / 2, label, ha="center", va="center", rotation=rotation, weight="bold")


def draw_residual(axes, middle: float, start: float, end: float):
    """Draws the way around a sublayer, to the side that the other stack is not on."""
    outside = -1 if middle == ENCODER else 1
    side, edge = middle + outside * SIDE, middle + outside * WIDTH / 2
    axes.plot([middle, side, side], [start, start, end], color=GREY, linewidth=1, solid_joinstyle="round")
    draw_arrow(axes, (side, end), (edge, end))


def draw_encoded(axes, top: float, place: float):
    """Draws the encoder's output on its way to the cross-attention whose box begins at `place`."""
    between = (ENCODER + DECODER) / 2
    axes.plot([ENCODER, ENCODER, between, between], [top, top + GAP, top + GAP, place + HEIGHT / 2], color=GREEN, linewidth=1.6)
    draw_arrow(axes, (between, place + HEIGHT / 2), (DECODER - WIDTH / 2, place + HEIGHT / 2), GREEN)
    axes.text(ENCODER + 0.15, top + GAP + 0.08, "encoded: keys and values", va="bottom", color=GREEN, fontsize=9)


def draw_arrow(axes, start: tuple[float, float], end: tuple[float, float], color: str = GREY):
    """Draws an arrow."""
    options = {"arrowstyle": "-|>", "color": color, "shrinkA": 0, "shrinkB": 0, "linewidth": 1}
    axes.annotate("", xy=end, xytext=start, arrowprops=options)


def hex_to_rgb(color: str) -> tuple[float, float, float]:
    """Returns the three parts of a colour such as #0072B2, from 0 to 1."""
    return tuple(int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
