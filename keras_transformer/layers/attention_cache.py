"""Writing keys and values into a cache."""

import keras
import numpy as np
from keras import ops, tree


def grows(cache) -> bool:
    """Tells a cache that self-attention writes into from one that cross-attention only reads, and from none."""
    return cache is not None and "key" in cache


def write_at(cache, new, positions):
    """Writes keys or values into a cache.

    Args:
        cache: Float tensor `(B, N, L, H)`.
        new: Float tensor `(B, T, N, H)`.
        positions: Integer tensor `(T,)` or `(B, T)`, where to write.

    Returns:
        The cache `(B, N, L, H)` with `new` in it.
    """
    rows = rows_of(cache, positions)  # (B * T * N,)
    return ops.reshape(ops.scatter_update(as_rows(cache), rows[:, None], as_rows(new)), ops.shape(cache))


def check_positions(positions, count: int | None, length: int | None):
    """Raises a `ValueError` if a cache has no room for what is to be written, as far as that is known.

    Args:
        positions: Integer tensor, where to write. While a function is compiled, nobody knows its values.
        count: The number of positions.
        length: That of the cache.
    """
    values = known_values(positions)
    outside = values is not None and length is not None and bool(((values < 0) | (values >= length)).any())
    if outside or (count or 0) > (length or count or 0):
        raise ValueError(
            f"The cache has room for positions from 0 to {length - 1}. Make one of a larger `length`, or take fewer steps. "
            f"Received: {count} of them, positions={'unknown' if values is None else values.tolist()}"
        )


def write_from(cache, new, slot, slot_rows=None):
    """Writes keys or values into a cache, all sentences in the same places.

    Args:
        cache: Float tensor `(B, N, L, H)`. In a TensorFlow graph it must be nobody else's (see `own_buffers`).
        new: Float tensor `(B, T, N, H)`.
        slot: Integer scalar, the first place to write to.
        slot_rows: What `rows_from` returned for this slot and caches of this size, if it is known already.

    Returns:
        The cache `(B, N, L, H)` with `new` in it.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.slice_update(cache, (0, 0, slot, 0), ops.transpose(new, (0, 2, 1, 3)))
    # On TensorFlow, Keras' update of a slice is an operation that XLA has to compile.
    if not in_tensorflow_graph():
        return write_at(cache, new, slot + ops.arange(ops.shape(new)[1]))
    import tensorflow as tf  # noqa: TID251

    # A scatter copies the whole cache in every step. This one writes where the cache is: every step needs the token that the
    # one before has found with the cache as it was, so nobody can still be reading it.
    rows = rows_from(cache, slot, ops.shape(new)[1]) if slot_rows is None else slot_rows
    return tf.reshape(tf.raw_ops.InplaceUpdate(x=as_rows(cache), i=rows, v=as_rows(new)), tf.shape(cache))


def rows_from(cache, slot, count):
    """Finds the rows that `write_from` writes to, for all caches of one size.

    Args:
        cache: Float tensor `(B, N, L, H)`.
        slot: Integer scalar, the first place to write to.
        count: The number of places (T).

    Returns:
        An integer tensor `(B * T * N,)`, or `None` where `write_from` needs none.
    """
    if not (keras.backend.backend() == "tensorflow" and in_tensorflow_graph()):
        return None
    return rows_of(cache, slot + ops.arange(count))


def rows_of(cache, positions):
    """Returns which rows of `as_rows(cache)` new keys `(B, T, N, H)` at positions `(T,)` or `(B, T)` become, `(B * T * N,)`."""
    batch_size, num_heads, length = tuple(ops.shape(cache))[:3]
    heads = ops.reshape(ops.arange(batch_size * num_heads), (batch_size, 1, num_heads))
    rows = heads * length + ops.cast(positions, heads.dtype)[..., None]  # (B, T, N)
    return ops.reshape(rows, (-1,))


def as_rows(x):
    """Returns a tensor whose last axis is H as rows, `(-1, H)`."""
    return ops.reshape(x, (-1, x.shape[-1]))


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


def known_values(x) -> np.ndarray | None:
    """Returns the values of a tensor; `None` while a function is being compiled, or when only shapes are computed."""
    if keras.backend.backend() == "tensorflow":
        return x.numpy() if hasattr(x, "numpy") else None
    if keras.backend.backend() == "jax":
        import jax  # noqa: TID251

        return None if isinstance(x, jax.core.Tracer) else np.asarray(x)
    import torch  # noqa: TID251

    return None if torch.compiler.is_compiling() or getattr(x, "is_meta", False) else ops.convert_to_numpy(x)


def in_tensorflow_graph() -> bool:
    """Tells whether a TensorFlow graph is being made, and not computed step by step."""
    import tensorflow as tf  # noqa: TID251

    return not tf.executing_eagerly()
