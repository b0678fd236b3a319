"""Layer normalization in fewer passes over its input.

A step of a search has some hundred rows, which are read from memory and written back by every operation. Keras' normalization
first makes a matrix of the scale and the deviation of each row, and another one of the shift; here there is none.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import keras
from keras import ops

from keras_transformer.layers.spaced_kernel import kernel_in_use, parts_of


@dataclass(frozen=True)
class LeanNorm:
    """What a `keras.layers.LayerNormalization` computes: `(x - mean) / sqrt(variance + epsilon) * gamma + beta`.

    Attributes:
        layer: The layer. It stays the owner of its weights.
    """

    layer: keras.layers.LayerNormalization

    @property
    def weights(self) -> list:
        """What is read in each call."""
        return [self.layer.gamma, self.layer.beta]

    def __call__(self, x):
        """Normalizes each vector of `(B, T, M)`, in float32 under every dtype policy."""
        rows = ops.cast(ops.reshape(x, (-1, x.shape[-1])), "float32")
        gamma, beta = (ops.cast(weight, "float32") for weight in self.weights)
        centered = rows - ops.mean(rows, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
        y = centered * ops.rsqrt(variance + self.layer.epsilon) * gamma + beta
        return ops.reshape(ops.cast(y, self.layer.compute_dtype), (-1, *tuple(ops.shape(x))[1:]))


def lean_norms(layers: Iterable[keras.layers.Layer]) -> dict[int, LeanNorm]:
    """Finds the normalizations among layers and all their parts.

    Args:
        layers: Layers that have been built. What is not `keras.layers.LayerNormalization` itself, of the last axis and with
            all its weights, stays as it is.

    Returns:
        A dictionary from the identity of a layer to its normalization, for `use_kernels`.
    """
    return {id(layer): LeanNorm(layer) for layer in parts_of(layers) if is_plain_norm(layer)}


def is_plain_norm(layer: keras.layers.Layer) -> bool:
    """Tells whether a layer normalizes vectors, with scale and shift."""
    if type(layer) is not keras.layers.LayerNormalization or layer.axis != [-1]:
        return False
    return layer.gamma is not None and layer.beta is not None


def normalize(norm, x):
    """Applies a normalization to `(B, T, M)`, as `use_kernels` has it or as it is."""
    in_use = kernel_in_use(norm)
    return norm(x) if in_use is None else in_use(x)
