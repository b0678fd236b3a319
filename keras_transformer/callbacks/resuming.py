"""`fit` that goes on where a killed process stopped."""

import os
from collections.abc import Iterable

import keras

from keras_transformer.callbacks.checkpoints import Checkpoints
from keras_transformer.callbacks.non_finite import StopOnNonFinite
from keras_transformer.callbacks.position import Position
from keras_transformer.callbacks.training_state import copies, keeps_average, prepare, put_back


def fit(
    model: keras.Model,
    dataset,
    epochs: int,
    checkpoints: Checkpoints | str | os.PathLike,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    **fit_arguments,
) -> keras.callbacks.History:
    """Trains like `model.fit`, writes checkpoints, and goes on from the newest if there is one.

    Run the same program again after it was killed, at whatever moment: no batch is repeated or left out, and it ends with the
    weights of a run that was never killed (bit for bit where the backend computes the same twice, as on a CPU). After a run
    that has finished, it restores the end of it and trains no further; with more `epochs`, it goes on.

    Args:
        model: A compiled model, a `Transformer` or any other, made in the same way each time.
        dataset: What to train on. To go on within an epoch it needs `from_step`, as the datasets of `parallel_dataset` have;
            others go on at the beginning of an epoch. If it has a `fingerprint`, as those have, and the checkpoint has another
            one, a `ValueError` says what has changed.
        epochs: The number of epochs in all.
        checkpoints: `Checkpoints`, or a directory for them.
        callbacks: Other callbacks, in the order in which Keras calls them. Those of this package go on with their own states.
        **fit_arguments: Further arguments of `model.fit`, such as `validation_data` and `verbose`.

    Returns:
        The `History` of all epochs, also of those before.

    Example:

        history = kt.callbacks.fit(model, train, epochs=20, checkpoints="runs/en-de/checkpoints", validation_data=validation)
    """
    checkpoints = checkpoints if isinstance(checkpoints, Checkpoints) else Checkpoints(checkpoints)
    check_arguments(dataset, checkpoints, fit_arguments)
    history = WholeHistory()
    others = [StopOnNonFinite(), *(callback for callback in callbacks if callback is not checkpoints), history]
    checkpoints.watch(others)
    checkpoints.set_dataset(dataset)
    prepare(model)
    build_metrics(model, dataset)
    position = checkpoints.restore(model) or Position()
    run = {"epochs": epochs, **fit_arguments}
    if position.step and not position.stopped and position.epoch < epochs:
        finish_epoch_and_go_on(model, dataset, position, [*others, checkpoints], run)
    else:
        first = epochs if position.stopped else min(position.epoch, epochs)
        at_epoch(dataset, first)
        model.fit(dataset, initial_epoch=first, callbacks=[*others, checkpoints], **run)
    model.history = history
    return history


def check_arguments(dataset, checkpoints: Checkpoints, fit_arguments: dict):
    """Raises a `ValueError` for what cannot be resumed."""
    for name in ("x", "initial_epoch", "steps_per_epoch"):
        if name in fit_arguments:
            raise ValueError(f"Checkpoints say where to go on, in whole epochs of the dataset: leave away `{name}`")
    if checkpoints.every_steps is not None and not hasattr(dataset, "from_step"):
        raise ValueError(
            "To go on within an epoch, a dataset needs a method `from_step`. Take one of `kt.data.parallel_dataset`, or "
            f"checkpoints of whole epochs (`every_steps=None`). Received: {type(dataset).__name__}"
        )


def at_epoch(dataset, epoch: int):
    """Makes an epoch the current one of a dataset that counts them."""
    if hasattr(dataset, "set_epoch"):
        dataset.set_epoch(epoch)


def finish_epoch_and_go_on(model: keras.Model, dataset, position: Position, callbacks: list, run: dict):
    """Trains on what is left of an epoch, then on the other epochs; to the callbacks it is one training."""
    epochs = run.pop("epochs")
    training = OneTraining(callbacks, model, epochs, run.pop("verbose", "auto"))
    at_epoch(dataset, position.epoch)
    check_length(dataset, position)
    rest = dataset.from_step(position.step)
    training.begin_part(len(rest), is_last=False)
    model.fit(rest, initial_epoch=position.epoch, epochs=position.epoch + 1, callbacks=training, **run)
    first = epochs if model.stop_training else position.epoch + 1
    at_epoch(dataset, first)
    training.begin_part(len(dataset), is_last=True)
    model.fit(dataset, initial_epoch=first, epochs=epochs, callbacks=training, **run)


def check_length(dataset, position: Position):
    """Raises a `ValueError` if a dataset is not the one whose epoch was interrupted."""
    if not hasattr(dataset, "from_step"):
        raise ValueError(
            f"The run was stopped {position.step} steps into epoch {position.epoch + 1}. To go on there, its dataset needs a "
            f"method `from_step`. Received: {type(dataset).__name__}"
        )
    if position.batches not in (None, len(dataset)):
        raise ValueError(
            f"The interrupted epoch had {position.batches} batches, those of this dataset have {len(dataset)}. Go on with the "
            "same data, tokenizer and options, or begin a new run in another directory"
        )


def build_metrics(model: keras.Model, dataset):
    """Makes the variables of the metrics, which Keras makes within the first step on TensorFlow, too late to restore them."""
    if keras.backend.backend() == "tensorflow" and hasattr(dataset, "from_step"):
        row = keras.tree.map_structure(lambda array: array[:1], dataset[0])
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(row)
        model.compute_metrics(x, y, model(x, training=False), sample_weight)


class WholeHistory(keras.callbacks.History):
    """A `History` that remembers what came before the checkpoint it goes on from."""

    def __init__(self):
        super().__init__()
        self.epochs: list[list] = []  # Of each epoch, its number and its logs.

    def on_train_begin(self, logs=None):
        """Is called by Keras."""
        super().on_train_begin(logs)
        self.set_state({"epochs": []})

    def on_epoch_end(self, epoch, logs=None):
        """Is called by Keras. An epoch that was stopped in its middle gives way to the whole of it."""
        self.set_state({"epochs": [*(entry for entry in self.epochs if entry[0] != epoch), [epoch, dict(logs or {})]]})
        self.model.history = self

    def get_state(self) -> dict:
        """Returns what a checkpoint should keep."""
        return {"epochs": [[epoch, numbers(logs)] for epoch, logs in self.epochs]}

    def set_state(self, state: dict):
        """Restores what `get_state` returned."""
        self.epochs, self.epoch, self.history = state["epochs"], [], {}
        for epoch, logs in self.epochs:
            self.epoch.append(epoch)
            for name, value in logs.items():
                self.history.setdefault(name, []).append(value)


def numbers(logs: dict) -> dict:
    """Returns those entries of an epoch's logs that are numbers."""
    return {name: value for name, value in logs.items() if isinstance(value, int | float)}


class OneTraining(keras.callbacks.CallbackList):
    """Callbacks to which several calls of `fit` are one training.

    Args:
        callbacks: The callbacks.
        model: The model.
        epochs: The number of epochs in all.
        verbose: As for `fit`.
    """

    def __init__(self, callbacks: list, model: keras.Model, epochs: int, verbose):
        super().__init__(
            callbacks, add_history=True, add_progbar=verbose != 0, model=model, verbose=verbose, epochs=epochs, steps=None
        )
        self.is_last = False
        self._has_begun = False
        self._weights = None

    def begin_part(self, steps: int, is_last: bool):
        """Says how many steps an epoch of the next call of `fit` has, and whether it is the last call."""
        self.set_params({**self.params, "steps": steps})
        self.is_last = is_last

    def append(self, callback: keras.callbacks.Callback):
        """Adds a callback."""
        callback.set_params(self.params)
        callback.set_model(self.model)
        self.callbacks.append(callback)

    def on_train_begin(self, logs=None):
        """Is called by Keras in every `fit`."""
        if not self._has_begun:
            super().on_train_begin(logs)
        self._has_begun = True

    def on_epoch_end(self, epoch, logs=None):
        """Is called by Keras before it replaces the weights by their moving average, if the optimizer keeps one."""
        super().on_epoch_end(epoch, logs)
        if not self.is_last and keeps_average(self.model.optimizer):
            self._weights = copies(self.model.trainable_variables)

    def on_train_end(self, logs=None):
        """Is called by Keras in every `fit`."""
        if self.is_last:
            super().on_train_end(logs)
        elif self._weights is not None:
            put_back(self.model.trainable_variables, self._weights)
            self._weights = None
