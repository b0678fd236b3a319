"""Kernels in a layout with which a CPU multiplies few rows faster.

Rows of 512 or 2,048 numbers begin a power of two of bytes apart. What stands in one column then competes for the same places
of the caches, and a product that reads the kernel in stripes of columns, as TensorFlow's do, waits for memory: with a hundred
rows it takes up to twice as long as with a few unused columns at the end of the kernel. Training has rows enough to make up for
it; a step of a search has not.
"""

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import keras
from keras import ops

GAP = 16  # Unused columns: a line of the cache.
SMALLEST = 512  # A kernel with fewer columns fits into the cache, wherever its rows begin.

_IN_USE = ContextVar("spaced_kernels", default=MappingProxyType({}))


@dataclass
class SpacedKernel:
    """A linear map whose kernel has unused columns at its end.

    Attributes:
        kernel: Float tensor or variable `(M, units + gap)`.
        bias: Float tensor or variable `(units + gap,)`, or `None`.
        activation: What is applied to the sums, or `None`.
        units: Number of columns that count.
    """

    kernel: Any
    bias: Any
    activation: Any
    units: int

    def __call__(self, rows):
        """Maps `(rows, M)` to `(rows, units)`."""
        y = ops.matmul(rows, self.kernel)
        if self.bias is not None:
            y = ops.add(y, self.bias)
        if self.activation is not None:
            y = self.activation(y)
        return y[:, : self.units]


def spaced_kernels(layers: Iterable[keras.layers.Layer]) -> dict[int, SpacedKernel]:
    """Lays out the kernels of layers and of all their parts, where that is worth it.

    Args:
        layers: Layers that have been built. What is neither `keras.layers.Dense` itself nor says by a method
            `spaced_kernel` how it is laid out stays as it is.

    Returns:
        A dictionary from the identity of a layer to its kernel, for `use_spaced_kernels`.
    """
    found = {}
    for layer in parts_of(layers):
        if is_slow_dense(layer):
            found[id(layer)] = spaced_dense(layer)
        elif hasattr(layer, "spaced_kernel"):
            found[id(layer)] = layer.spaced_kernel()
    return found


def have_slow_dense(layers: Iterable[keras.layers.Layer]) -> bool:
    """Tells whether there is a kernel of Keras among layers and their parts that is worth laying out."""
    return any(is_slow_dense(layer) for layer in parts_of(layers))


def is_slow_dense(layer: keras.layers.Layer) -> bool:
    """Tells whether a layer is a plain product of float32 numbers whose kernel is large and badly laid out."""
    return (
        type(layer) is keras.layers.Dense
        and layer.units >= SMALLEST
        and gap_for(layer.units) > 0
        and layer.compute_dtype == "float32"
        and layer.quantization_mode is None
        and not layer.lora_enabled
    )


@contextlib.contextmanager
def use_spaced_kernels(kernels: dict[int, SpacedKernel]) -> Iterator[None]:
    """Lets `on_rows` compute with laid out kernels; those of an outer call stay in use."""
    token = _IN_USE.set({**kernels, **_IN_USE.get()})
    try:
        yield
    finally:
        _IN_USE.reset(token)


def spaced_kernel_of(dense) -> SpacedKernel | None:
    """Returns the kernel in use for a layer, or for the layer of a method; `None` if there is none."""
    return _IN_USE.get().get(id(getattr(dense, "__self__", dense)))


def plain_weights(model: keras.Model) -> list[keras.Variable]:
    """Returns the floating-point weights of a model, but not those of layers for which laid out kernels are in use."""
    spaced = [part for part in parts_of([model]) if type(part) is keras.layers.Dense and spaced_kernel_of(part) is not None]
    replaced = {id(variable) for part in spaced for variable in part.variables}
    return [
        variable
        for variable in model.variables
        if id(variable) not in replaced and keras.backend.is_float_dtype(variable.dtype)
    ]


def spaced_dense(dense: keras.layers.Dense) -> SpacedKernel:
    """Lays out a layer of Keras."""
    bias = ops.pad(dense.bias, [[0, GAP]]) if dense.use_bias else None
    return SpacedKernel(with_gap(dense.kernel), bias, dense.activation, dense.units)


def with_gap(kernel):
    """Puts unused columns behind a kernel `(M, units)` whose rows would be a power of two apart."""
    return ops.pad(kernel, [[0, 0], [0, gap_for(kernel.shape[1])]])


def gap_for(units: int) -> int:
    """Returns how many unused columns a kernel of so many needs."""
    return GAP if units % 128 == 0 else 0


def parts_of(layers: Iterable[keras.layers.Layer]) -> list[keras.layers.Layer]:
    """Returns layers and all that they are made of, each once."""
    return list({id(part): part for layer in layers for part in layer._flatten_layers()}.values())
