"""How a dataset is handed to `fit` so that Keras keeps its order.

By itself, Keras shuffles the batches of a dataset once more with Python's `random`, counts epochs only for callbacks, and on
TensorFlow takes the lengths of the first two batches for those of all if they happen to agree.
"""

import keras
import numpy as np

from keras_transformer.data.accumulation import check_accumulation, check_steps


def fit_arguments(dataset, arguments: dict) -> dict:
    """Returns the arguments of `fit` as they should be when a dataset is its `x`.

    Args:
        dataset: A `ParallelDataset`.
        arguments: What the user called `fit` with, by name.

    Returns:
        Arguments with which epoch i of `fit` is epoch i of the dataset, batch for batch. Callbacks with a method `set_dataset`
        have been told the dataset.
    """
    check_steps(arguments.get("steps_per_epoch"), dataset.batches_per_update)
    callbacks = arguments.get("callbacks") or []
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks.append(EpochSetter(dataset))
    else:
        callbacks = [*(callbacks if isinstance(callbacks, list | tuple) else [callbacks]), EpochSetter(dataset)]
    for callback in getattr(callbacks, "callbacks", callbacks):
        if hasattr(callback, "set_dataset"):
            callback.set_dataset(dataset)
    return {**arguments, "x": fit_input(dataset), "shuffle": False, "callbacks": callbacks}


def fit_input(dataset):
    """Returns what Keras is to iterate over: the batches of whatever epoch is current when an iteration begins."""
    return tensorflow_batches(dataset) if keras.backend.backend() == "tensorflow" else OrderedBatches(dataset)


def tensorflow_batches(dataset):
    """Returns a `tf.data.Dataset` of the batches, whose lengths are open."""
    import tensorflow as tf  # noqa: TID251

    ids = tf.TensorSpec((None, None), tf.int32)
    signature = ({"source_ids": ids, "target_ids": ids}, ids)
    if dataset.batches_per_update > 1:
        signature = (*signature, tf.TensorSpec((None, None), tf.float32))
    batches = tf.data.Dataset.from_generator(dataset.batches, output_signature=signature)
    return batches.apply(tf.data.experimental.assert_cardinality(len(dataset))).prefetch(2)


def unlike(batch, other):
    """Returns a batch with a row or a column of padding more wherever it would have the size of the other one."""

    def padded(array, size):
        return np.pad(array, [(0, int(mine == its)) for mine, its in zip(array.shape, size.shape, strict=True)])

    return keras.tree.map_structure(padded, batch, other)


class OrderedBatches(keras.utils.PyDataset):
    """The batches of a dataset's current epoch, each under its own number.

    Args:
        dataset: The `ParallelDataset`.
    """

    def __init__(self, dataset):
        super().__init__()
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, step: int):
        return self.dataset.batch(self.dataset.epoch, self.dataset.first_step + step)


class EpochSetter(keras.callbacks.Callback):
    """Tells a dataset which epoch `fit` is in.

    Args:
        dataset: The `ParallelDataset`.
    """

    def __init__(self, dataset):
        super().__init__()
        self.dataset = dataset

    def on_train_begin(self, logs=None):
        """Is called by Keras at the beginning of `fit`."""
        check_accumulation(self.model, self.dataset.batches_per_update)

    def on_epoch_begin(self, epoch, logs=None):
        """Is called by Keras before the first batch of an epoch is asked for."""
        self.dataset.set_epoch(epoch)
