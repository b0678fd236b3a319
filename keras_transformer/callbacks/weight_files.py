"""Files of weights that come and go during a training."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import keras

from keras_transformer.callbacks.arrays import named_arrays, replace_arrays
from keras_transformer.callbacks.processes import is_writer, pass_over, wait_for_each_other
from keras_transformer.callbacks.training_state import final_weights


class WeightFiles:
    """Writes the weights of a model into files and removes those that nobody needs any more.

    A file is needed as long as its owner, or the newest checkpoint, speaks of it: a training that goes on from a checkpoint
    finds what it had then. What a killed process wrote after its last checkpoint is removed, and written again in time.
    Of several processes that train together, the first one writes and removes, and all of them read.

    Args:
        directory: Where the files are; `None` for a temporary directory.
        prefix: What their names begin with.
    """

    def __init__(self, directory: str | os.PathLike | None, prefix: str):
        self._temporary = tempfile.TemporaryDirectory(prefix="keras_transformer-") if directory is None else None
        self.directory = Path(self._temporary.name if directory is None else directory)
        self.prefix = prefix
        self._in_checkpoint: set[str] = set()

    def write(self, model: keras.Model, number: int) -> str:
        """Writes the weights that `fit` would end with now; returns the name of the file."""
        name = f"{self.prefix}-{number:08d}.npz"
        with final_weights(model):
            arrays = named_arrays("weights", model.weights)
            if is_writer():
                self.directory.mkdir(parents=True, exist_ok=True)
                replace_arrays(self.directory / name, arrays)
            else:
                pass_over(arrays)
        return name

    def remove_all_but(self, names: Iterable[str]):
        """Removes all files that are neither in a list nor in the newest checkpoint."""
        needed = {*names, *self._in_checkpoint}
        for path in self.directory.glob(f"{self.prefix}-*.npz") if is_writer() else ():
            if path.name not in needed:
                path.unlink()

    def note(self, names: Iterable[str]):
        """Says which files a checkpoint speaks of that is about to be written."""
        self._in_checkpoint = set(names)

    def recall(self, names: Iterable[str], owner: str):
        """Says which files the checkpoint speaks of that a training goes on from."""
        self.note(names)
        if names and self._temporary is not None:
            raise ValueError(f"The weights that {owner} kept went with their process. To go on, give it a `directory`")

    def paths(self, names: Iterable[str]) -> list[Path]:
        """Returns the paths of files, which are complete by then."""
        wait_for_each_other(f"{self.prefix} written")
        return [self.directory / name for name in names]
