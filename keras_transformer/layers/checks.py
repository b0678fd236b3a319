"""Checks of what layers are given. They look at sizes that are known, and add nothing to a graph."""

import numbers

import keras


def check_sizes(optional: bool = False, **sizes):
    """Raises a `ValueError` for a size that is not a positive integer, or `None` where it is optional."""
    for name, size in sizes.items():
        if not (isinstance(size, numbers.Integral) and size >= 1) and not (optional and size is None):
            raise ValueError(f"`{name}` must be a positive integer{' or None' * optional}. Received: {name}={size!r}")


def check_built(layer: keras.layers.Layer, method: str):
    """Raises a `ValueError` if a layer has not been built yet."""
    if not layer.built:
        raise ValueError(
            f"`{method}` needs what `build` makes. Call the layer on an input first, or its `build` with the shape of one. "
            f"Received: a {type(layer).__name__} that is not built"
        )


def check_shape(name: str, tensor, *shapes: tuple):
    """Raises a `ValueError` if a tensor, unless it is `None`, has none of these shapes. `None` is a size that nobody knows.

    Masks, whose names end in "mask", may have sizes of 1 instead.
    """
    if tensor is None:
        return
    known, free = tuple(tensor.shape), (None, 1) if name.endswith("mask") else (None,)
    ranks = {len(shape): shape for shape in shapes}
    expected = ranks.get(len(known))
    if expected is None or any(b is not None and a not in (*free, b) for a, b in zip(known, expected, strict=True)):
        allowed = " or ".join(str(shape).replace("None", "any") for shape in shapes)
        raise ValueError(f"`{name}` must have the shape {allowed} to fit the other inputs. Received: {name} of shape {known}")
