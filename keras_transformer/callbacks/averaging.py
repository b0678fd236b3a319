"""The average of the weights at several moments (section 6.1 of the paper)."""

import os
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from keras_transformer.callbacks.arrays import names_of, open_arrays
from keras_transformer.callbacks.moments import Moments
from keras_transformer.callbacks.training_state import keeps_average
from keras_transformer.callbacks.weight_files import WeightFiles


def average_weights(paths: Sequence[str | os.PathLike]) -> list[np.ndarray]:
    """Averages weights, one array at a time, with sums in float64.

    Args:
        paths: Files that `WeightAveraging` wrote, or folders of checkpoints.

    Returns:
        An array for each of `model.weights`: `model.set_weights(average_weights(paths))`. What is no float is the last one's.
    """
    if not paths:
        raise ValueError("There is nothing to average: give at least one file of weights, or one checkpoint")
    with ExitStack() as stack:
        archives = [stack.enter_context(open_arrays(path)) for path in paths]
        names = [names_of(archive, "weights") for archive in archives]
        if len({len(own) for own in names}) > 1 or not names[0]:
            counts = ", ".join(f"{path}: {len(own)}" for path, own in zip(paths, names, strict=True))
            raise ValueError(f"These are not the weights of one model. Number of weights in each: {counts}")
        try:
            return [mean_array(archives, group, paths) for group in zip(*names, strict=True)]
        except (OSError, zipfile.BadZipFile) as error:
            raise ValueError(f"One of these files is damaged: {', '.join(map(str, paths))} ({error})") from error


def mean_array(archives: Sequence, names: Sequence[str], paths: Sequence) -> np.ndarray:
    """Returns the mean of one weight, read from file after file."""
    total = None
    for archive, name, path in zip(archives, names, paths, strict=True):
        array = archive[name]
        if total is not None and total.shape != array.shape:
            raise ValueError(
                f"These are not the weights of one model: {name} has the shape {array.shape} in {path}, and {total.shape} in "
                f"{paths[0]}"
            )
        total = array.astype("float64") if total is None else total + array
    return (total / len(paths)).astype(array.dtype) if np.issubdtype(array.dtype, np.floating) else array


class WeightAveraging(Moments):
    """Ends training with the average of the weights at its last moments.

    The paper averages the last 5 checkpoints (20 for its big model), written every ten minutes. The weights of each moment
    are kept in a file; nothing but one array at a time is averaged in memory. During training the model has its own weights.

    For a moving average instead, `use_ema=True` of the optimizer.

    Args:
        num_checkpoints: How many moments to average.
        directory: Where the files are, a directory of their own. `None` takes a temporary one, which a killed process cannot
            go on with.
        every_steps: Number of steps between two moments. `None`: each epoch's end is one.

    Example:

        model.fit(train, epochs=20, callbacks=[kt.callbacks.WeightAveraging(5)])
    """

    def __init__(self, num_checkpoints: int = 5, directory: str | os.PathLike | None = None, every_steps: int | None = None):
        super().__init__(every_steps, 1 if every_steps is None else None)
        if num_checkpoints < 1:
            raise ValueError(f"`num_checkpoints` must be a positive integer. Received: num_checkpoints={num_checkpoints}")
        self.num_checkpoints = num_checkpoints
        self.files = WeightFiles(directory, "weights")
        self.window: list[str] = []  # Names of files, oldest first.

    def on_train_begin(self, logs=None):
        """Is called by Keras."""
        super().on_train_begin(logs)
        self.step, self.window = 0, []
        if keeps_average(self.model.optimizer):
            raise ValueError("Take `WeightAveraging`, or the optimizer's moving average (`use_ema=True`), not both")

    def on_moment(self, epoch: int, logs: dict | None):
        """Writes the weights, and lets go of the oldest."""
        name = self.files.write(self.model, self.step)
        self.window = [*(other for other in self.window if other != name), name][-self.num_checkpoints :]
        self.files.remove_all_but(self.window)

    def on_train_end(self, logs=None):
        """Is called by Keras: gives the model the average."""
        if self.window:
            self.model.set_weights(average_weights(self.files.paths(self.window)))
            self.files.remove_all_but(self.window)

    def get_state(self) -> dict:
        """Returns what a checkpoint should keep."""
        self.files.note(self.window)
        return {"step": self.step, "window": self.window}

    def set_state(self, state: dict):
        """Restores what `get_state` returned."""
        self.step, self.window = state["step"], state["window"]
        self.files.recall(self.window, "WeightAveraging")
