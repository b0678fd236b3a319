"""Checkpoints from which a training goes on as if it had never stopped."""

import os
import platform
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import keras

from keras_transformer.callbacks import checkpoint_files as files
from keras_transformer.callbacks.arrays import names_of, open_arrays
from keras_transformer.callbacks.moments import Moments
from keras_transformer.callbacks.non_finite import check_loss
from keras_transformer.callbacks.position import Position, check_same_data
from keras_transformer.callbacks.processes import is_writer, pass_over
from keras_transformer.callbacks.training_state import (
    BEFORE_FIT,
    all_arrays,
    assign_group,
    check_layout,
    finite,
    layout,
    prepare,
    set_random_states,
    state_variables,
)
from keras_transformer.version import __version__


class Checkpoints(Moments):
    """Writes all that a training consists of, every few steps and epochs.

    A checkpoint holds the weights, the states of dropout, the optimizer (its moments, number of steps, accumulated gradients
    and averages), the metrics of the epoch so far, the position in the data, and the states of other callbacks. It is a
    folder `step-00000123` that appears when it is complete. Older ones are removed after that. The last epoch's end, and the
    end of a training that a callback stops, are always written. Of several processes that train together (JAX), the first one
    writes, and all of them go on from what it wrote: they need one file system.

    `kt.callbacks.fit` trains with checkpoints and goes on from the newest. In a plain `model.fit`, put this callback last:
    it has to see what the others made of an epoch. `restore` and the dataset's `from_step` then go on by hand.

    A callback takes part if it has `get_state()`, which returns a dictionary for JSON, and `set_state(state)`, which gets
    that dictionary after `on_train_begin`. With `"stopped": True` in it, the training counts as finished.

    Args:
        directory: Where the checkpoints are, a directory of their own.
        every_steps: Number of steps (batches) between two checkpoints; `None` for none within an epoch.
        every_epochs: Number of epochs between two checkpoints; `None` for none at their ends but for the last.
        keep: How many to keep.

    Example:

        checkpoints = kt.callbacks.Checkpoints("runs/en-de/checkpoints", every_steps=1000)
        kt.callbacks.fit(model, train, epochs=20, checkpoints=checkpoints)
    """

    def __init__(
        self,
        directory: str | os.PathLike,
        every_steps: int | None = None,
        every_epochs: int | None = 1,
        keep: int = 2,
    ):
        super().__init__(every_steps, every_epochs)
        if keep < 1:
            raise ValueError(f"`keep` must be a positive integer. Received: keep={keep}")
        self.directory, self.keep = Path(directory), keep
        self.first_step = 0  # Steps of the current epoch that were done before this `fit`.
        self._watched: list = []
        self._restored: Path | None = None  # What of it can be restored only when `fit` has begun.
        self._state: dict = {}
        self._fingerprint: dict | None = None  # Of what is trained on, if it is known.

    def watch(self, callbacks: Iterable[keras.callbacks.Callback]):
        """Says which callbacks' states belong into the checkpoints; those without a state do not matter."""
        self._watched = [callback for callback in callbacks if hasattr(callback, "get_state")]

    def set_dataset(self, dataset):
        """Says what is trained on, so that no training goes on with other data: then a `ValueError` says what has changed.

        `kt.callbacks.fit` and `Transformer.fit` call this; before a plain `fit` of another Keras model, call it yourself.

        Args:
            dataset: The dataset. What it is, its `fingerprint` says, a dictionary for JSON. One without it may be any.
        """
        self._fingerprint = getattr(dataset, "fingerprint", None)
        if self._restored:
            check_same_data(self._state.get("data"), self._fingerprint, self._restored)

    # Reading.

    def latest(self) -> Path | None:
        """Returns the newest whole checkpoint, or `None`. Damaged ones are left out with a warning."""
        for path in reversed(files.checkpoints_in(self.directory)):
            reason = files.damage(path)
            if reason is None:
                return path
            warnings.warn(f"The checkpoint {path} is damaged and left out: {reason}", stacklevel=2)
        return None

    def restore(self, model: keras.Model, path: str | os.PathLike | None = None) -> Position | None:
        """Restores a model and its optimizer; metrics and callbacks follow when `fit` begins.

        Args:
            model: A compiled model, made as the one whose state was written.
            path: The checkpoint; defaults to the newest whole one.

        Returns:
            Where to go on, or `None` if there is no checkpoint.
        """
        path = self._latest_if_any() if path is None else Path(path)
        if path is None:
            return None
        self._state = files.read_state(path)
        check_same_data(self._state.get("data"), self._fingerprint, path)
        prepare(model)
        groups = state_variables(model)
        for group in BEFORE_FIT:
            check_layout(group, self._state["variables"][group], groups[group], path)
        with open_arrays(path) as archive:
            for group in BEFORE_FIT:
                assign_group(archive, group, groups[group])
        self._restored = path
        position = Position(**self._state["position"])
        self.step = position.total_steps
        return position

    def _latest_if_any(self) -> Path | None:
        path, every = self.latest(), files.checkpoints_in(self.directory)
        if every and path is None:
            raise ValueError(
                f"All checkpoints in {self.directory} are damaged: {', '.join(one.name for one in every)}. To begin anew, "
                "remove them"
            )
        return path

    # In `fit`.

    def on_train_begin(self, logs=None):
        """Is called by Keras."""
        super().on_train_begin(logs)
        self._clear_directory()
        for name, callback in self._named_callbacks():
            if self._restored and name in self._state["callbacks"]:
                callback.set_state(self._state["callbacks"][name])

    def _clear_directory(self):
        """Removes what a killed process left, and damaged checkpoints of steps that are still to come."""
        if not is_writer():
            return
        files.remove_leftovers(self.directory)
        later = [path for path in files.checkpoints_in(self.directory) if files.step_of(path) > self.step]
        for path in later:
            if files.damage(path) is None:
                raise ValueError(
                    f"There is a checkpoint of another run, or of steps that are still to come: {path}. To go on from there, "
                    "use `kt.callbacks.fit`; for a new run, take another directory or remove it"
                )
            files.remove_checkpoint(path)

    def on_epoch_begin(self, epoch, logs=None):
        """Is called by Keras after it has reset the metrics."""
        super().on_epoch_begin(epoch, logs)
        position = self._state["position"] if self._restored else {}
        self.first_step = position["step"] if position.get("epoch") == epoch else 0
        if self.first_step:
            self._restore_metrics()
        elif self._restored:
            self._restore_random_states()

    def on_train_batch_begin(self, batch, logs=None):
        """Is called by Keras."""
        if self._restored:
            self._restore_random_states()  # Late, for torch draws a number whenever it begins to iterate over data.
        super().on_train_batch_begin(batch, logs)

    def on_train_end(self, logs=None):
        """Is called by Keras."""
        self._restored = self._fingerprint = None

    def _restore_metrics(self):
        variables = state_variables(self.model)["metrics"]
        try:
            check_layout("metrics", self._state["variables"]["metrics"], variables, self._restored)
        except ValueError as error:
            warnings.warn(f"What is logged of this epoch leaves out its first {self.first_step} steps. {error}", stacklevel=2)
            return
        with open_arrays(self._restored) as archive:
            assign_group(archive, "metrics", variables)

    def _restore_random_states(self):
        with open_arrays(self._restored) as archive:
            set_random_states({name.removeprefix("random/"): archive[name] for name in names_of(archive, "random")})
        self._restored = None

    def _named_callbacks(self) -> Iterator[tuple[str, keras.callbacks.Callback]]:
        """Yields the callbacks that have a state, under the names of their classes; the second of a kind has a number."""
        counts: dict[str, int] = {}
        for callback in self._watched:
            name = type(callback).__name__
            counts[name] = counts.get(name, 0) + 1
            yield (name if counts[name] == 1 else f"{name} {counts[name]}"), callback

    # Writing.

    def is_due(self, epoch: int) -> bool:
        """Tells whether a checkpoint is to be written at the end of an epoch."""
        return super().is_due(epoch) or epoch + 1 >= self.params["epochs"] or self.model.stop_training

    def on_moment(self, epoch: int, logs: dict | None):
        """Writes a checkpoint."""
        model = self.model  # On JAX, its variables have their values from here on.
        when = f"in epoch {epoch + 1}, after {self.first_step + self.steps_in_epoch} steps of it"
        check_loss((model.get_metrics_result() if logs is None else logs).get("loss"), when)
        groups = state_variables(model)
        arrays, state = finite(all_arrays(groups), when), self._state_of(groups, epoch, logs is not None)
        if is_writer():
            self._write(arrays, state)
        else:
            pass_over(arrays)

    def _write(self, arrays: Iterable, state: dict):
        path = files.checkpoint_path(self.directory, self.step)
        try:
            files.write_checkpoint(path, arrays, state)
        except OSError as error:
            raise OSError(error.errno, self._failure(error), str(path)) from error
        for old in files.checkpoints_in(self.directory)[: -self.keep]:
            files.remove_checkpoint(old)

    def _state_of(self, groups: dict[str, list], epoch: int, at_end: bool) -> dict:
        states = {name: callback.get_state() for name, callback in self._named_callbacks()}
        for name, state in states.items():
            files.check_json(name, state)
        return {
            "position": vars(self._position(epoch, at_end, any(state.get("stopped") for state in states.values()))),
            "data": self._fingerprint,
            "callbacks": states,
            "variables": {group: layout(variables) for group, variables in groups.items()},
            "versions": {
                "keras_transformer": __version__,
                "keras": keras.__version__,
                "backend": keras.backend.backend(),
                "python": platform.python_version(),
            },
        }

    def _position(self, epoch: int, at_end: bool, stopped: bool) -> Position:
        planned = self.params.get("steps")
        batches = None if planned is None else self.first_step + planned
        done = self.first_step + self.steps_in_epoch
        whole = at_end and (batches is None or done >= batches)
        place = (epoch + 1, 0) if whole else (epoch, done)
        return Position(*place, total_steps=self.step, batches=batches, stopped=stopped)

    def _failure(self, error: OSError) -> str:
        """Says what to do about a checkpoint that could not be written."""
        reason = error.__cause__ or error
        whole = files.checkpoints_in(self.directory)
        last = f"The last one, {whole[-1].name}, is untouched" if whole else "There is none yet"
        return (
            f"A checkpoint could not be written ({reason.strerror or reason}). {last}. Make room or mend the directory, and "
            "run the same again: it goes on from there"
        )
