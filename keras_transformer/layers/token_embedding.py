"""Token embedding (section 3.4 of the paper)."""

import keras
from keras import ops

from keras_transformer.layers.initializers import initializer_for


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenEmbedding(keras.layers.Layer):
    """Looks up a vector for each token id and multiplies it by sqrt(M).

        x = sqrt(d_model) E[id], E initialized with N(0, d_model^-1/2)             (section 3.4)

    The same matrix, transposed, can project the decoder's output back to the vocabulary: see `TiedLogits`.

    Args:
        vocabulary_size: Number of rows of the matrix.
        model_dim: Width of a vector.
        scale: Whether to multiply by sqrt(M).
        initializer: Initializer of the matrix. Defaults to N(0, M^-1/2), so that scaled vectors have entries of about 1.
        **kwargs: `name`, `dtype`, `trainable` of every Keras layer.

    Call arguments:
        ids: Integer tensor `(B, T)`.

    Returns:
        A float tensor `(B, T, M)`.

    Masking:
        None is made: the model computes explicit masks from the ids (`keras_transformer.masks.padding_mask`).

    Example:

    >>> TokenEmbedding(8000, 512)(keras.ops.ones((2, 10), dtype="int32")).shape
    (2, 10, 512)
    """

    def __init__(self, vocabulary_size: int, model_dim: int, scale: bool = True, initializer=None, **kwargs):
        super().__init__(**kwargs)
        for name, size in {"vocabulary_size": vocabulary_size, "model_dim": model_dim}.items():
            if size < 1:
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={size}")
        self.vocabulary_size = vocabulary_size
        self.model_dim = model_dim
        self.scale = scale
        self.initializer = keras.initializers.get(initializer)

    def build(self, ids_shape=None):
        initializer = self.initializer or keras.initializers.RandomNormal(stddev=self.model_dim**-0.5)
        self.embeddings = self.add_weight(
            shape=(self.vocabulary_size, self.model_dim),
            initializer=initializer_for(initializer, "embeddings"),
            name="embeddings",
        )

    def call(self, ids):
        ids = ids if keras.backend.standardize_dtype(ids.dtype) == "int64" else ops.cast(ids, "int32")
        vectors = ops.take(self.embeddings, ids, axis=0)  # (B, T, M)
        vectors = ops.cast(vectors, self.compute_dtype)
        return vectors * self.model_dim**0.5 if self.scale else vectors

    def compute_output_shape(self, ids_shape):
        return (*ids_shape, self.model_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "model_dim": self.model_dim,
            "scale": self.scale,
            "initializer": keras.initializers.serialize(self.initializer) if self.initializer else None,
        }
