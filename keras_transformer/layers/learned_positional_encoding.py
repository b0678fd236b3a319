"""Learned positional encoding (section 3.5 and row E of table 3 of the paper)."""

import keras
from keras import ops

from keras_transformer.layers.attention_cache import known_values
from keras_transformer.layers.initializers import initializer_for


@keras.saving.register_keras_serializable(package="keras_transformer")
class LearnedPositionalEncoding(keras.layers.Layer):
    """Adds to each token a trained vector of its position.

        PE(pos) = P[pos], P a trained matrix of `max_length` rows                  (section 3.5; table 3, row E)

    Args:
        max_length: Number of positions. Longer input and positions from here on are errors: there is nothing learned to add.
            Only in a compiled function are values not known: there TensorFlow fails by itself, and JAX takes the last position.
        initializer: Initializer of the matrix. Defaults to N(0, M^-1/2), the scale of the token embedding.
        **kwargs: `name`, `dtype`, `trainable` of every Keras layer.

    Call arguments:
        inputs: Float tensor `(B, T, M)`.
        positions: Integer tensor `(T,)` or `(B, T)`, where the tokens stand. Defaults to 0, 1, ..., T-1.

    Returns:
        A float tensor `(B, T, M)`, the inputs plus their encoding.

    Masking:
        A mask attached to the input is passed on.

    Example:

    >>> LearnedPositionalEncoding(max_length=64)(keras.random.normal((2, 10, 512))).shape
    (2, 10, 512)
    """

    def __init__(self, max_length: int, initializer=None, **kwargs):
        super().__init__(**kwargs)
        if max_length < 1:
            raise ValueError(f"`max_length` must be a positive integer. Received: max_length={max_length}")
        self.max_length = max_length
        self.initializer = keras.initializers.get(initializer)
        self.supports_masking = True
        self.autocast = False  # Float positions would be rounded to the dtype policy first.

    def build(self, input_shape):
        model_dim = input_shape[-1]
        initializer = self.initializer or keras.initializers.RandomNormal(stddev=model_dim**-0.5)
        self.embeddings = self.add_weight(
            shape=(self.max_length, model_dim),
            initializer=initializer_for(initializer, "embeddings"),
            name="embeddings",
        )

    def call(self, inputs, positions=None):
        inputs = ops.cast(inputs, self.compute_dtype)
        if positions is None:
            self.check_length(inputs.shape[1])
            rows = self.embeddings[: ops.shape(inputs)[1]]
        else:
            rows = ops.take(self.embeddings, self.learned(positions), axis=0)
        return inputs + ops.cast(rows, self.compute_dtype)

    def check_length(self, length: int | None):
        """Raises a `ValueError` if a known length has no learned positions."""
        if length is not None and length > self.max_length:
            raise ValueError(
                f"The input has {length} positions, but only {self.max_length} were learned. Cut the input, or build the layer "
                f"with a larger `max_length`. Received: inputs of length {length}, max_length={self.max_length}"
            )

    def learned(self, positions):
        """Returns positions that all have a row of the matrix; raises a `ValueError` if they are known and one has none."""
        positions = positions if keras.backend.is_int_dtype(positions.dtype) else ops.cast(positions, "int32")
        known = known_values(positions)
        if known is None:
            return ops.clip(positions, 0, self.max_length - 1) if keras.backend.backend() == "jax" else positions
        if known.size and not 0 <= known.min() <= known.max() < self.max_length:
            raise ValueError(
                f"Positions 0 to {self.max_length - 1} were learned. Cut the input, or build the layer with a larger "
                f"`max_length`. Received: positions from {known.min()} to {known.max()}, max_length={self.max_length}"
            )
        return positions

    def compute_output_shape(self, input_shape):
        self.check_length(input_shape[1])
        return tuple(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "max_length": self.max_length,
            "initializer": keras.initializers.serialize(self.initializer) if self.initializer else None,
        }
