"""Linear maps of sequences."""

from keras import ops

from keras_transformer.layers.spaced_kernel import kernel_in_use


def on_rows(dense, x):
    """Applies a linear map to the last axis of `(B, T, M)` as one product of two matrices.

    The other axes are rows of the first one. TensorFlow merges such a product with the bias and the activation that follow;
    from three axes it would make the matrix itself, with the shapes computed anew in each step.

    Args:
        dense: A layer from `(rows, M)` to `(rows, units)`, or such a method of a layer.
        x: Float tensor `(B, T, M)`; one of another rank is handed to the layer as it is.

    Returns:
        A float tensor `(B, T, units)`.
    """
    if len(x.shape) != 3:
        return dense(x)
    length = ops.shape(x)[1]
    kernel = kernel_in_use(dense)
    y = dense(ops.reshape(x, (-1, x.shape[-1]))) if kernel is None else kernel(x)
    return ops.reshape(y, (size_of_batch(x), length, y.shape[-1]))


def size_of_batch(x):
    """Returns what to reshape `(B, T, ...)` to in place of B: -1, which costs nothing in a graph, unless T is known to be 0."""
    return ops.shape(x)[0] if x.shape[1] == 0 else -1
