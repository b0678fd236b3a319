"""Writing keys and values into a cache."""

import keras
from keras import ops, tree


def grows(cache) -> bool:
    """Tells a cache that self-attention writes into from one that cross-attention only reads, and from none."""
    return cache is not None and "key" in cache


def write_at(cache, new, positions):
    """Writes keys or values into a cache.

    Args:
        cache: Float tensor `(B, N, L, H)`.
        new: Float tensor `(B, N, T, H)`.
        positions: Integer tensor `(T,)` or `(B, T)`, where to write.

    Returns:
        The cache `(B, N, L, H)` with `new` in it.
    """
    rows, places, new_rows = as_rows(cache, new, positions)
    return ops.reshape(ops.scatter_update(rows, places[:, None], new_rows), ops.shape(cache))


def write_from(cache, new, slot):
    """Writes keys or values into a cache, all sentences in the same places.

    Args:
        cache: Float tensor `(B, N, L, H)`. In a TensorFlow graph it must be nobody else's (see `own_buffers`).
        new: Float tensor `(B, N, T, H)`.
        slot: Integer scalar, the first place to write to.

    Returns:
        The cache `(B, N, L, H)` with `new` in it.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.slice_update(cache, (0, 0, slot, 0), new)
    # On TensorFlow, Keras' update of a slice is an operation that XLA has to compile.
    places = slot + ops.arange(ops.shape(new)[2])
    if not in_tensorflow_graph():
        return write_at(cache, new, places)
    import tensorflow as tf  # noqa: TID251

    # A scatter copies the whole cache in every step. This one writes where the cache is: every step needs the token that the
    # one before has found with the cache as it was, so nobody can still be reading it.
    rows, places, new_rows = as_rows(cache, new, places)
    return tf.reshape(tf.raw_ops.InplaceUpdate(x=rows, i=places, v=new_rows), tf.shape(cache))


def at_places(bias, slot_positions):
    """Finds what is added to the scores of each place of a cache, given what is added to those of each position.

    Args:
        bias: Float tensor that broadcasts to `(B, N, T, L)`, for keys at positions 0, 1, ..., L-1, or `None`.
        slot_positions: Integer tensor `(B, L)`, the position that each place stands for.

    Returns:
        A float tensor that broadcasts to `(B, N, T, L)`, or `None`.
    """
    if bias is None or bias.shape[-1] == 1:
        return bias
    bias = ops.reshape(bias, (1,) * (4 - len(bias.shape)) + tuple(ops.shape(bias)))
    bias = ops.broadcast_to(bias, (ops.shape(slot_positions)[0], *tuple(ops.shape(bias))[1:]))
    return ops.take_along_axis(bias, slot_positions[:, None, None, :], axis=-1)


def as_rows(cache, new, positions):
    """Returns a cache as rows `(B * N * L, H)`, the rows to write to `(B * N * T,)`, and what to write `(B * N * T, H)`."""
    batch_size, num_heads, length = ops.shape(new)[0], new.shape[1], ops.shape(cache)[2]
    heads = ops.reshape(ops.arange(batch_size * num_heads), (batch_size, num_heads, 1))
    positions = ops.cast(positions, heads.dtype)
    places = heads * length + (positions if len(positions.shape) == 1 else positions[:, None, :])  # (B, N, T)
    return ops.reshape(cache, (-1, cache.shape[-1])), ops.reshape(places, (-1,)), ops.reshape(new, (-1, new.shape[-1]))


def own_buffers(caches: dict) -> dict:
    """Gives each tensor of empty caches memory of its own, to be written to in place.

    A TensorFlow graph makes equal tensors once, and all caches are empty at first.
    """
    if not (keras.backend.backend() == "tensorflow" and in_tensorflow_graph()):
        return caches
    import tensorflow as tf  # noqa: TID251

    return tree.map_structure(
        lambda x: tf.ensure_shape(tf.raw_ops.Empty(shape=tf.shape(x), dtype=x.dtype, init=True), x.shape), caches
    )


def in_tensorflow_graph() -> bool:
    """Tells whether a TensorFlow graph is being made, and not computed step by step."""
    import tensorflow as tf  # noqa: TID251

    return not tf.executing_eagerly()
