"""Sinusoidal positional encoding (section 3.5 of the paper)."""

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.checks import check_built
from keras_transformer.layers.spaced_kernel import kernel_in_use

DIGIT = 128  # A position is written with three digits of this base: 2,097,152 positions from three tables of 128 rows.


def angle_tables(model_dim: int, max_wavelength: float) -> list[np.ndarray]:
    """Tabulates sine and cosine for each digit of a position, in double precision, rounded once to float32.

    Returns:
        Three arrays `(128, 2, ceil(M / 2))`, for the ones, the 128s and the 16,384s.
    """
    channels = np.arange(0, model_dim, 2, dtype="float64")
    frequencies = max_wavelength ** (-channels / model_dim)
    tables = []
    for place in range(3):
        angles = np.arange(DIGIT)[:, None] * float(DIGIT**place) * frequencies
        tables.append(np.stack([np.sin(angles), np.cos(angles)], axis=1).astype("float32"))
    return tables


@dataclass(frozen=True)
class EncodedPositions:
    """The encodings of the first positions, for `use_kernels`: a search looks one of them up in each step.

    Attributes:
        table: Float32 tensor `(positions, M)`.
    """

    table: Any
    weights = ()

    def __call__(self, positions):
        """Returns the encoding of integer positions of any shape: float32 `(..., M)`."""
        return ops.take(self.table, positions, axis=0)


@keras.saving.register_keras_serializable(package="keras_transformer")
class SinusoidalPositionalEncoding(keras.layers.Layer):
    """Adds to each token sines and cosines of its position, of wavelengths from 2 pi to 10,000 * 2 pi.

        PE(pos, 2i)     = sin(pos / 10000^(2i / d_model))                          (section 3.5)
        PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))

    The product of a large position and a frequency has too few digits left in float32 (an error of 8e-4 at position 10,000), so
    sine and cosine are put together from small exact tables by the addition theorems, one table for each digit of the position.
    The result is within 1e-6 of the true value at any position below 2,097,152, whatever the dtype policy, until it is rounded
    to the compute dtype on the way out.

    Args:
        layout: `"interleaved"`, sine and cosine in turn as in the paper, or `"halves"`, all sines before all cosines.
        max_wavelength: The paper's 10,000.
        **kwargs: `name`, `dtype`, `trainable` of every Keras layer.

    Call arguments:
        inputs: Float tensor `(B, T, M)`.
        positions: Integer tensor `(T,)` or `(B, T)`, where the tokens stand. Defaults to 0, 1, ..., T-1.

    Returns:
        A float tensor `(B, T, M)`, the inputs plus their encoding.

    Masking:
        A mask attached to the input is passed on.

    Example:

    >>> layer = SinusoidalPositionalEncoding()
    >>> layer(keras.random.normal((2, 10, 512))).shape
    (2, 10, 512)
    >>> layer(keras.random.normal((2, 1, 512)), positions=keras.ops.array([10])).shape  # one cached step
    (2, 1, 512)
    """

    def __init__(self, layout: str = "interleaved", max_wavelength: float = 10000.0, **kwargs):
        super().__init__(**kwargs)
        if layout not in ("interleaved", "halves"):
            raise ValueError(f'`layout` must be "interleaved" or "halves". Received: layout={layout!r}')
        self.layout = layout
        self.max_wavelength = max_wavelength
        self.supports_masking = True
        self.autocast = False  # Float positions would be rounded to the dtype policy first.

    def build(self, input_shape):
        self.model_dim = input_shape[-1]
        self.tables = angle_tables(self.model_dim, self.max_wavelength)

    def encode(self, positions):
        """Returns the encoding of integer positions of any shape: float32 `(..., M)`."""
        in_use = kernel_in_use(self)
        if in_use is not None:
            return in_use(positions)
        check_built(self, "encode")
        sine = cosine = None
        rest = ops.cast(positions, "int32")
        for table in self.tables:
            rows = ops.take(table, ops.mod(rest, DIGIT), axis=0)  # (..., 2, M / 2)
            rest = ops.floor_divide(rest, DIGIT)
            s, c = rows[..., 0, :], rows[..., 1, :]
            if sine is None:
                sine, cosine = s, c
            else:
                sine, cosine = sine * c + cosine * s, cosine * c - sine * s
        if self.layout == "halves":
            return ops.concatenate([sine, cosine], axis=-1)[..., : self.model_dim]
        pairs = ops.stack([sine, cosine], axis=-1)  # (..., M / 2, 2)
        return ops.reshape(pairs, (*ops.shape(pairs)[:-2], 2 * pairs.shape[-2]))[..., : self.model_dim]

    def call(self, inputs, positions=None):
        positions = ops.arange(ops.shape(inputs)[1]) if positions is None else positions
        return ops.cast(inputs, self.compute_dtype) + ops.cast(self.encode(positions), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def get_config(self):
        return {**super().get_config(), "layout": self.layout, "max_wavelength": self.max_wavelength}
