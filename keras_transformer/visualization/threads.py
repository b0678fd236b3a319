"""Lines from a word to the words it looks at."""

from collections.abc import Sequence

import numpy as np

from keras_transformer.attention import Attention
from keras_transformer.visualization.selection import place_of, select, side_labels, title_of
from keras_transformer.visualization.style import BLUE, GREY, new_figure

STEP = 0.27  # Inches from word to word.


def plot_threads(
    attention: Attention | Sequence[Attention],
    word: str | Sequence[str],
    kind: str = "encoder_self",
    layer: int = -1,
    head: int | None = None,
    join: bool = True,
):
    """Draws where a word looks, as lines that are the thicker the larger the weight; several sentences side by side.

    Args:
        attention: What `Translator.attend` returned, or several of them.
        word: The word: of the source in the encoder, of the translation otherwise. The first, if it occurs more than once. Or a
            word for each sentence.
        kind: `"encoder_self"`, `"decoder_self"` or `"cross"`.
        layer: Number of the layer, from 0; -1 is the last.
        head: Number of the head, from 0, or `None` for the average over the heads.
        join: Whether to join the pieces of words.

    Returns:
        A matplotlib `Figure`.
    """
    records = [attention] if isinstance(attention, Attention) else list(attention)
    if not records:
        raise ValueError("`plot_threads` needs at least one record. Received: none")
    records = [record.words() if join else record for record in records]
    words = [word] * len(records) if isinstance(word, str) else list(word)
    if len(words) != len(records):
        raise ValueError(f"`word` must be one word, or one for each of the {len(records)} records. Received: {words}")
    longest = max(len(labels) for record in records for labels in side_labels(record, kind))
    figure = new_figure(4.2 * len(records), STEP * longest + 0.8)
    for axes, record, one in zip(figure.subplots(1, len(records), squeeze=False)[0], records, words, strict=True):
        draw_threads(axes, select(record, kind, layer, head), place_of(record, kind, one), *side_labels(record, kind))
        axes.set_ylim(longest - 0.4, -0.6)
        axes.set_title(f"Where “{one}” looks", fontsize=11, parse_math=False)
    figure.suptitle(title_of(records[0], kind, layer, head), fontsize=10, color=GREY)
    return figure


def draw_threads(axes, weights: np.ndarray, row: int, queries: list[str], keys: list[str]):
    """Draws two columns of words and the lines from one of them."""
    steps = np.linspace(0, 1, 40)
    rise = steps**2 * (3 - 2 * steps)  # Leaves and arrives level.
    for key, weight in enumerate(weights[row]):
        if weight >= 0.005:
            width, alpha = 0.5 + 7 * weight, float(min(1.0, 0.1 + 0.9 * weight))
            axes.plot(steps, row + (key - row) * rise, color=BLUE, linewidth=width, alpha=alpha, solid_capstyle="butt")
            axes.text(1.62, key, f"{weight:.0%}", fontsize=9, va="center", ha="right", color="black" if weight >= 0.1 else GREY)
    strongest = int(weights[row].argmax())
    for place, label in enumerate(queries):
        draw_word(axes, -0.05, place, label, "right", is_bold=place == row, is_faint=place != row)
    for place, label in enumerate(keys):
        draw_word(axes, 1.05, place, label, "left", is_bold=place == strongest, is_faint=weights[row][place] < 0.05)
    axes.set_xlim(-0.6, 1.65)
    axes.axis("off")


def draw_word(axes, x: float, y: float, label: str, align: str, is_bold: bool, is_faint: bool):
    """Writes a word of a column."""
    weight, color = "bold" if is_bold else "normal", GREY if is_faint and not is_bold else "black"
    axes.text(x, y, label, ha=align, va="center", fontsize=10, weight=weight, color=color, parse_math=False)
