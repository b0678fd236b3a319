"""Pictures: attention, and what the paper's parts look like.

Every function returns a matplotlib `Figure`, to be saved with `figure.savefig("picture.png")`. Matplotlib is imported when the
first picture is drawn; install it with `pip install "keras3-transformer[plots]"`. The interactive page needs nothing:
`attention.save_html("attention.html")`.
"""

from keras_transformer.visualization.heat_maps import plot_alignment, plot_head, plot_heads
from keras_transformer.visualization.paper import plot_masks, plot_positions, plot_schedule
from keras_transformer.visualization.stacks import plot_stacks
from keras_transformer.visualization.threads import plot_threads
from keras_transformer.visualization.training_curves import plot_training

__all__ = [
    "plot_alignment",
    "plot_head",
    "plot_heads",
    "plot_masks",
    "plot_positions",
    "plot_schedule",
    "plot_stacks",
    "plot_threads",
    "plot_training",
]
