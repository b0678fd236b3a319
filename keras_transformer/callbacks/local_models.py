"""A model that a process can use by itself, with the weights of one that several processes train."""

import contextlib
from collections.abc import Iterator

import keras

from keras_transformer.callbacks.arrays import to_array
from keras_transformer.callbacks.processes import num_processes


def local_model(model: keras.Model) -> keras.Model:
    """Returns a model that this process can use without the others: the same one if there are no others.

    Args:
        model: A model of any distribution.

    Returns:
        The model, or one like it. Of another one, `copy_weights` sets the weights.
    """
    return model if num_processes() == 1 else undistributed(model)


def undistributed(model: keras.Model) -> keras.Model:
    """Returns a model like another one, on a single device of this process, with weights of its own."""
    with alone():
        return type(model).from_config(model.get_config())


def copy_weights(source: keras.Model, target: keras.Model):
    """Gives a model the weights of another one like it. All processes that train the source have to ask.

    Args:
        source: A model of any distribution.
        target: A model that `local_model` or `undistributed` returned for it.
    """
    if source is not target:
        target.set_weights([to_array(variable) for variable in source.weights])


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Within it nothing is distributed by Keras."""
    distribution = keras.distribution.distribution()
    keras.distribution.set_distribution(None)
    try:
        yield
    finally:
        keras.distribution.set_distribution(distribution)
