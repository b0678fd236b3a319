"""Kernels that several threads multiply by at the same time.

A product of few rows takes as long as its kernel takes to be read, and a thread by itself does not read as fast as memory can
give. A batch of sentences is divided among threads; a single sentence cannot be, but its products can: each thread reads a
part of the kernel.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from keras_transformer.layers.spaced_kernel import is_plain_dense, parts_of

SMALLEST = 2**17  # Numbers in a part: half a MiB. A smaller one is read sooner than another thread has woken up.


@dataclass
class DividedKernel:
    """A linear map whose kernel is taken apart into groups of rows: `x W = x_1 W_1 + x_2 W_2`.

    Attributes:
        parts: Float tensors `(M / n, units)`.
        bias: `keras.Variable` `(units,)`, or `None`.
        activation: What is applied to the sums, or `None`.
    """

    parts: list
    bias: Any
    activation: Any

    @property
    def weights(self) -> list:
        """What is read in each product, but for the parts."""
        return [self.bias]

    def __call__(self, x):
        """Maps `(B, T, M)` to rows `(B * T, units)`."""
        columns = ops.split(ops.reshape(x, (-1, x.shape[-1])), len(self.parts), axis=1)
        y = functools.reduce(ops.add, map(ops.matmul, columns, self.parts))
        if self.bias is not None:
            y = ops.add(y, self.bias)
        return y if self.activation is None else self.activation(y)


@dataclass
class DividedEntries:
    """Scores of the entries of a vocabulary, by the embeddings of a part of them at a time: `[x E_1^T, x E_2^T] + b`.

    Attributes:
        parts: Float tensors `(V_i, M)`.
        bias: `keras.Variable` `(V,)`, or `None`.
    """

    parts: list
    bias: Any

    @property
    def weights(self) -> list:
        """What is read in each product, but for the parts."""
        return [self.bias]

    def __call__(self, x):
        """Maps `(B, T, M)` to rows `(B * T, V)`."""
        rows = ops.reshape(x, (-1, x.shape[-1]))
        y = ops.concatenate([ops.matmul(rows, ops.transpose(part)) for part in self.parts], axis=1)
        return y if self.bias is None else ops.add(y, self.bias)


def divided_kernels(layers: Iterable[keras.layers.Layer], count: int) -> dict[int, DividedKernel | DividedEntries]:
    """Divides the large kernels of layers and of all their parts.

    Args:
        layers: Layers that have been built. What is neither `keras.layers.Dense` itself nor says by a method `divided_kernel`
            how it is divided stays as it is.
        count: Into how many parts at most.

    Returns:
        A dictionary from the identity of a layer to its kernel, for `use_kernels`.
    """
    found = {}
    for layer in parts_of(layers):
        if is_plain_dense(layer):
            parts = groups_of_rows(layer.kernel, even_number(layer.kernel, count))
            found[id(layer)] = DividedKernel(parts, layer.bias if layer.use_bias else None, layer.activation)
        elif hasattr(layer, "divided_kernel"):
            found[id(layer)] = layer.divided_kernel(count)
    return {layer: kernel for layer, kernel in found.items() if len(kernel.parts) > 1}


def even_number(kernel, count: int) -> int:
    """Returns how many groups of equally many rows a kernel is worth dividing into."""
    return next(number for number in range(most_parts(kernel, count), 0, -1) if kernel.shape[0] % number == 0)


def most_parts(kernel, count: int) -> int:
    """Returns how many parts of a kernel are large enough, at most `count` and at least one."""
    return max(min(count, kernel.shape[0] * kernel.shape[1] // SMALLEST), 1)


def groups_of_rows(kernel, number: int) -> list:
    """Takes the rows of a kernel apart, the last group with those that are left over. (TensorFlow copies nothing for it.)"""
    rows, size = ops.convert_to_tensor(kernel), kernel.shape[0] // number
    starts = [size * place for place in range(number)]
    return [rows[start:stop] for start, stop in zip(starts, [*starts[1:], kernel.shape[0]], strict=True)]
