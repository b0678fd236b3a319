"""Picking hypotheses and tokens out of batches."""

import keras
from keras import ops


def index_dtype() -> str:
    """Returns the dtype of ids, lengths and places. TensorFlow computes with int32 on the host even where there is a GPU."""
    return "int64" if keras.backend.backend() == "tensorflow" else "int32"


# Keras counts negative places from the end, and knows no gathering within each sentence of a batch: on TensorFlow, that would
# be half a dozen operations or more in place of one.


def take(values, places):
    """Takes entries of the first axis."""
    if keras.backend.backend() != "tensorflow":
        return ops.take(values, places, axis=0)
    import tensorflow as tf  # noqa: TID251

    return tf.gather(values, places)


def take_beams(values, beams):
    """Takes hypotheses: `(B, J)` or `(B, J, L)` with beams `(B, K)` -> `(B, K)` or `(B, K, L)`."""
    beams = ops.cast(beams, index_dtype())
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf  # noqa: TID251

        return tf.gather(values, beams, batch_dims=1)
    first = ops.arange(ops.shape(values)[0], dtype=index_dtype())[:, None] * values.shape[1]  # (B, 1)
    flat = ops.reshape(values, (-1,)) if len(values.shape) == 2 else ops.reshape(values, (-1, ops.shape(values)[2]))
    return ops.take(flat, first + beams, axis=0)


def of_one_token(log_probs, ids):
    """Takes the log-probabilities of one token a sentence: `(B, K, V)` with ids `(B,)` -> `(B, K, 1)`."""
    ids = ops.cast(ids, index_dtype())
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf  # noqa: TID251

        return tf.gather(log_probs, ids[:, None], axis=2, batch_dims=1)
    width, vocabulary_size = log_probs.shape[1:]
    rows = ops.arange(ops.shape(ids)[0] * width, dtype=index_dtype())  # (B * K,)
    places = rows * vocabulary_size + ops.repeat(ids, width)
    return ops.reshape(ops.take(ops.reshape(log_probs, (-1,)), places), (-1, width, 1))


def put(values, position, new):
    """Writes `new` `(B, K)` at a position of `values` `(B, K, L)`."""
    here = ops.arange(ops.shape(values)[-1]) == position
    return ops.where(here, ops.cast(new, values.dtype)[..., None], values)


def add_zeros(x, count, axis: int):
    """Lengthens an axis by zeros. (A GPU cannot pad integers on TensorFlow.)"""
    shape = list(ops.shape(x))
    shape[axis] = count
    return ops.concatenate([x, ops.zeros(shape, dtype=x.dtype)], axis=axis)


def expand_like(flags, values):
    """Gives flags `(B,)` as many axes as `values` has."""
    return ops.reshape(flags, (-1,) + (1,) * (len(values.shape) - 1))


def top_k(values, count: int):
    """Finds the largest entries of the last axis; of equal ones, the first.

    TensorFlow looks at one entry after the other. There, the largest of each group of entries are found first, which goes
    quickly; the largest `count` entries can only be in the `count` groups with the largest of these.

    Args:
        values: Float tensor `(..., V)`.
        count: How many are wanted.

    Returns:
        A tuple: the entries, and their places, `(..., count)`.
    """
    size = values.shape[-1]
    group = next((divisor for divisor in range(64, 7, -1) if size % divisor == 0), 1)
    if keras.backend.backend() != "tensorflow" or size // group <= 4 * count or group == 1:
        best, places = ops.top_k(values, count)
        return best, ops.cast(places, index_dtype())
    leading = tuple(ops.shape(values))[:-1]
    groups = ops.reshape(values, (-1, size // group, group))  # (rows, groups, group)
    _, chosen = ops.top_k(ops.max(groups, axis=-1), count)  # (rows, count)
    chosen = ops.sort(ops.cast(chosen, index_dtype()), axis=-1)  # Among equal entries, order decides.
    candidates = ops.reshape(take_beams(groups, chosen), (-1, count * group))
    best, places = ops.top_k(candidates, count)  # (rows, count)
    places = ops.cast(places, index_dtype())
    places = take_beams(chosen, places // group) * group + places % group
    return ops.reshape(best, (*leading, count)), ops.reshape(places, (*leading, count))
