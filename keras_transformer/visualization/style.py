"""What all pictures share: matplotlib when it is needed, colours, and labels."""

import importlib

# Told apart with every kind of colour vision, and in grey.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#555555"
HEAD_COLORS = (BLUE, ORANGE, "#00805C", "#B8478F", "#B47B00", "#3A9AD9", "#6B4FBB", GREY)
WEIGHTS = "Blues"  # From 0, light, to the largest weight, dark: one hue, so that lightness alone tells.
SIGNED = "PuOr"  # From -1 to 1.
MOST_LABELS = 80  # Beyond it, tokens are too many to be named.


def new_figure(width: float, height: float):
    """Makes a figure.

    Args:
        width, height: In inches.

    Returns:
        A matplotlib `Figure` that belongs to nobody else: no window opens, and nothing has to be closed.
    """
    try:
        figure = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise ImportError(
            'Pictures need matplotlib, which is not installed. Install it with: pip install "keras3-transformer[plots]"'
        ) from error
    return figure.Figure(figsize=(width, height), dpi=120, layout="constrained")


def label_axes(axes, queries: list[str], keys: list[str], size: float = 9):
    """Names the rows and the columns of a heat map, the columns above it."""
    axes.xaxis.tick_top()
    for set_ticks, labels, options in (
        (axes.set_yticks, queries, {}),
        (axes.set_xticks, keys, {"rotation": 90 if any(len(label) > 3 for label in keys) else 0}),
    ):
        if len(labels) <= MOST_LABELS:
            # Tokens are text: a dollar sign begins no formula.
            set_ticks(range(len(labels)), labels, fontsize=size, parse_math=False, **options)
        else:
            set_ticks([])
    axes.tick_params(length=0)


def hide_ticks(axes):
    """Takes the ticks off a small panel."""
    axes.set_xticks([])
    axes.set_yticks([])


def tidy(axes):
    """Gives a chart a light grid and only the two lines that it needs."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
