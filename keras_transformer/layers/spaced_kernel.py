"""Kernels in a layout with which a CPU multiplies few rows faster.

Rows of 512 or 2,048 numbers begin a power of two of bytes apart. What stands in one column then competes for the same places
of the caches, and a product that reads the kernel in stripes of columns, as TensorFlow's do, waits for memory: with a hundred
rows it takes up to twice as long as with a few unused columns at the end of the kernel. Training has rows enough to make up for
it; a step of a search has not.

Nor has it rows enough to make up for what each product costs by itself: queries, keys and values of the same rows are computed
as one product, with their kernels side by side. And where a product is only there to be multiplied by the next kernel, unused
columns stay in it, and meet zeros there: to cut them off is to copy the others.
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
SMALLEST = 512  # A kernel with fewer columns fits into the cache, wherever its rows begin,
LARGE = 2**18  # unless it has so many numbers in all.
# Activations of one number at a time, which make a finite one of 0: unused columns do no harm.
ELEMENTWISE = (
    "linear",
    "relu",
    "relu6",
    "leaky_relu",
    "gelu",
    "silu",
    "elu",
    "selu",
    "celu",
    "mish",
    "softplus",
    "tanh",
    "sigmoid",
)

_IN_USE = ContextVar("kernels_in_use", default=MappingProxyType({}))


@dataclass
class SpacedKernel:
    """A linear map whose kernel has unused columns at its end.

    Attributes:
        kernel: Float tensor or `keras.Variable` `(M, units + gap)`.
        bias: Float tensor or `keras.Variable` `(units + gap,)`, or `None`.
        activation: What is applied to the sums, or `None`.
        units: Number of columns that count.
    """

    kernel: Any
    bias: Any
    activation: Any
    units: int

    def __call__(self, x):
        """Maps `(B, T, M)` to rows `(B * T, units)`."""
        y = self.all_columns(x)
        return y if y.shape[1] == self.units else y[:, : self.units]

    @property
    def spaced(self) -> "SpacedKernel":
        """The kernel that is multiplied by: this one."""
        return self

    @property
    def weights(self) -> list:
        """What is read in each product."""
        return [self.kernel, self.bias]

    def all_columns(self, x):
        """Maps `(B, T, M)` to rows `(B * T, units + gap)`."""
        y = ops.matmul(ops.reshape(x, (-1, x.shape[-1])), self.kernel)
        if self.bias is not None:
            y = ops.add(y, self.bias)
        return y if self.activation is None else self.activation(y)


class JointKernel:
    """One of several linear maps of the same input, which are computed as one product.

    Args:
        products: `JointProducts` of all of them, which they share.
        number: Which of them this is.
    """

    def __init__(self, products: "JointProducts", number: int):
        self.products, self.number = products, number

    @property
    def spaced(self) -> SpacedKernel:
        """The kernel that is multiplied by: that of all the maps."""
        return self.products.kernel

    @property
    def weights(self) -> list:
        """What is read in each product."""
        return self.spaced.weights

    def __call__(self, x):
        """Maps `(B, T, M)` to rows `(B * T, units)`."""
        return self.products.of(x)[self.number]


@dataclass
class JointProducts:
    """The products of an input with several kernels, computed as one.

    Attributes:
        kernel: `SpacedKernel` of all of them, side by side.
        sizes: Number of columns of each.
        latest: The latest input, and its products.
    """

    kernel: SpacedKernel
    sizes: list[int]
    latest: tuple = (None, None)

    def of(self, x) -> list:
        """Maps `(B, T, M)` to rows `(B * T, units)`, a tensor for each kernel."""
        if self.latest[0] is not x:
            self.latest = x, columns_of(self.kernel.all_columns(x), self.sizes)
        return self.latest[1]


def spaced_kernels(layers: Iterable[keras.layers.Layer]) -> dict[int, SpacedKernel | JointKernel]:
    """Lays out the kernels of layers and of all their parts, where that is worth it.

    Args:
        layers: Layers that have been built. What is neither `keras.layers.Dense` itself nor says by a method
            `spaced_kernel` how it is laid out stays as it is. A method `joint_projections` says which parts of a layer have the
            same input, a method `chained_projections` which one's output is the next one's input.

    Returns:
        A dictionary from the identity of a layer to its kernel, for `use_kernels`.
    """
    found = {}
    for layer in parts_of(layers):
        if is_slow_dense(layer):
            found[id(layer)] = spaced_dense(layer)
        elif hasattr(layer, "spaced_kernel"):
            found[id(layer)] = layer.spaced_kernel()
    for layer in parts_of(layers):
        found.update(joint_kernels(layer.joint_projections() if hasattr(layer, "joint_projections") else []))
        found.update(chained_kernels(layer.chained_projections() if hasattr(layer, "chained_projections") else []))
    return found


def have_slow_dense(layers: Iterable[keras.layers.Layer]) -> bool:
    """Tells whether there is a kernel of Keras among layers and their parts that is worth laying out."""
    return any(is_slow_dense(layer) for layer in parts_of(layers))


def is_slow_dense(layer: keras.layers.Layer) -> bool:
    """Tells whether a layer is a plain product of float32 numbers whose kernel is large and badly laid out."""
    if not is_plain_dense(layer) or not is_elementwise(layer.activation):
        return False
    return gap_for(layer.units) > 0 and (layer.units >= SMALLEST or layer.kernel.shape[0] * layer.units >= LARGE)


def is_elementwise(activation) -> bool:
    """Tells whether an activation is known to see one number at a time."""
    return activation in [getattr(keras.activations, name) for name in ELEMENTWISE]


def is_plain_dense(layer: keras.layers.Layer) -> bool:
    """Tells whether a layer is a product of float32 numbers and nothing else."""
    return (
        type(layer) is keras.layers.Dense
        and layer.compute_dtype == "float32"
        and layer.quantization_mode is None
        and not layer.lora_enabled
    )


@contextlib.contextmanager
def use_kernels(kernels: dict[int, Any]) -> Iterator[None]:
    """Lets `on_rows` compute with other kernels than those of the layers; those of an outer call stay in use.

    Args:
        kernels: What `spaced_kernels` or `divided_kernels` returned.
    """
    token = _IN_USE.set({**kernels, **_IN_USE.get()})
    try:
        yield
    finally:
        _IN_USE.reset(token)


def kernel_in_use(dense) -> Any:
    """Returns the kernel in use for a layer, or for the layer of a method; `None` if there is none."""
    return _IN_USE.get().get(id(getattr(dense, "__self__", dense)))


def weights_in_use(model: keras.Model) -> list[keras.Variable]:
    """Returns the floating-point weights of a model, with those of laid out kernels in place of what they replace."""
    laid_out = [value for kernel in _IN_USE.get().values() for value in kernel.weights if isinstance(value, keras.Variable)]
    dense = [part for part in parts_of([model]) if type(part) is keras.layers.Dense and kernel_in_use(part) is not None]
    replaced = {id(variable) for part in dense for variable in part.variables}
    own = [one for one in model.variables if id(one) not in replaced and keras.backend.is_float_dtype(one.dtype)]
    return list({id(one): one for one in own + laid_out}.values())


def spaced_dense(dense: keras.layers.Dense) -> SpacedKernel:
    """Lays out a layer of Keras; the kernel gets no unused columns where they would not be worth it."""
    if not is_slow_dense(dense):
        return SpacedKernel(dense.kernel, dense.bias if dense.use_bias else None, dense.activation, dense.units)
    bias = ops.pad(dense.bias, [[0, GAP]]) if dense.use_bias else None
    return SpacedKernel(with_gap(dense.kernel), bias, dense.activation, dense.units)


def joint_kernels(layers: list[keras.layers.Dense]) -> dict[int, JointKernel]:
    """Lays the kernels of layers with the same input side by side; there are none if a layer is something else."""
    alike = {(layer.use_bias, layer.activation) for layer in layers if is_plain_dense(layer)}
    if not all(map(is_plain_dense, layers)) or len(alike) != 1 or not is_elementwise(layers[0].activation):
        return {}
    sizes = [layer.units for layer in layers]
    kernel = with_gap(ops.concatenate([layer.kernel for layer in layers], axis=1))
    gap = kernel.shape[1] - sum(sizes)
    bias = ops.pad(ops.concatenate([layer.bias for layer in layers]), [[0, gap]]) if layers[0].use_bias else None
    products = JointProducts(SpacedKernel(kernel, bias, layers[0].activation, sum(sizes)), sizes)
    return {id(layer): JointKernel(products, number) for number, layer in enumerate(layers)}


def chained_kernels(layers: list[keras.layers.Dense]) -> dict[int, SpacedKernel]:
    """Lays out two layers, the second of which sees all columns of the first; there are none if a layer is something else."""
    if len(layers) != 2 or not is_slow_dense(layers[0]) or not is_plain_dense(layers[1]):
        return {}
    first, second = (spaced_dense(layer) for layer in layers)
    first.units = first.kernel.shape[1]
    second.kernel = ops.pad(second.kernel, [[0, GAP], [0, 0]])
    return {id(layers[0]): first, id(layers[1]): second}


def columns_of(rows, sizes: list[int]) -> list:
    """Takes the columns of `(rows, units + gap)` apart into groups of these sizes; what is left over is dropped."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf  # noqa: TID251

        unused = [rows.shape[1] - sum(sizes)]
        return tf.split(rows, [*sizes, *unused], axis=1)[: len(sizes)]
    return [rows[:, sum(sizes[:number]) :][:, :size] for number, size in enumerate(sizes)]


def with_gap(kernel):
    """Puts unused columns behind a kernel `(M, units)` whose rows would be a power of two apart."""
    return ops.pad(kernel, [[0, 0], [0, gap_for(kernel.shape[1])]])


def gap_for(units: int) -> int:
    """Returns how many unused columns a kernel of so many needs."""
    return GAP if units % 128 == 0 else 0


def parts_of(layers: Iterable[keras.layers.Layer]) -> list[keras.layers.Layer]:
    """Returns layers and all that they are made of, each once."""
    return list({id(part): part for layer in layers for part in layer._flatten_layers()}.values())
