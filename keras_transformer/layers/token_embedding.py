"""Token embedding (section 3.4 of the paper)."""

import keras
from keras import ops

from keras_transformer.layers.initializers import initializer_for


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenEmbedding(keras.layers.Embedding):
    """Looks up a vector for each token id and multiplies it by sqrt(M).

        x = sqrt(d_model) E[id], E initialized with N(0, d_model^-1/2)             (section 3.4)

    The same matrix, transposed, can project the decoder's output back to the vocabulary: see `TiedLogits`. What Keras' own
    `Embedding` can do, this layer can as well: `quantize("int8")` and `"int4"`, `enable_lora`.

    Args:
        vocabulary_size: Number of rows of the matrix.
        model_dim: Width of a vector.
        scale: Whether to multiply by sqrt(M).
        initializer: Initializer of the matrix. Defaults to N(0, M^-1/2), so that scaled vectors have entries of about 1.
        embeddings_regularizer: Regularizer of the matrix.
        embeddings_constraint: Constraint of the matrix.
        **kwargs: `name`, `dtype`, `trainable` of every Keras layer.

    Call arguments:
        ids: Integer tensor `(B, T)`. Floats are cut to integers, and never rounded to a dtype policy first.

    Returns:
        A float tensor `(B, T, M)`.

    Masking:
        None is made: the model computes explicit masks from the ids (`keras_transformer.masks.padding_mask`).

    Example:

    >>> TokenEmbedding(8000, 512)(keras.ops.ones((2, 10), dtype="int32")).shape
    (2, 10, 512)
    """

    def __init__(
        self,
        vocabulary_size: int,
        model_dim: int,
        scale: bool = True,
        initializer=None,
        embeddings_regularizer=None,
        embeddings_constraint=None,
        **kwargs,
    ):
        for name, size in {"vocabulary_size": vocabulary_size, "model_dim": model_dim}.items():
            if size < 1:
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={size}")
        initializer = keras.initializers.get(initializer)
        default = keras.initializers.RandomNormal(stddev=model_dim**-0.5)
        super().__init__(
            vocabulary_size,
            model_dim,
            embeddings_initializer=initializer_for(initializer or default, "embeddings"),
            embeddings_regularizer=embeddings_regularizer,
            embeddings_constraint=embeddings_constraint,
            **kwargs,
        )
        self.vocabulary_size = vocabulary_size
        self.model_dim = model_dim
        self.scale = scale
        self.initializer = initializer

    def call(self, ids):
        return self.scaled(super().call(ids))

    def quantized_call(self, ids):
        return self.scaled(super().quantized_call(ids))

    def scaled(self, vectors):
        """Multiplies rows of the matrix by sqrt(M), if the layer does so."""
        vectors = ops.cast(vectors, self.compute_dtype)  # (B, T, M)
        return vectors * self.model_dim**0.5 if self.scale else vectors

    def float_matrix(self):
        """Returns the matrix `(V, M)` that vectors are rows of, as floats also where it is stored in fewer bits."""
        if self.quantization_mode is None:
            return self.embeddings
        return super().quantized_call(ops.arange(self.vocabulary_size))

    def quantize(self, mode=None, type_check=True, config=None):
        super().quantize(mode, type_check=type_check and type(self) is not TokenEmbedding, config=config)

    def get_config(self):
        config = super().get_config()
        for name in ("input_dim", "output_dim", "embeddings_initializer"):  # They have other names here.
            del config[name]
        for name in ("activity_regularizer", "mask_zero", "quantization_config"):
            if not config[name]:
                del config[name]
        return {
            **config,
            "vocabulary_size": self.vocabulary_size,
            "model_dim": self.model_dim,
            "scale": self.scale,
            "initializer": keras.initializers.serialize(self.initializer) if self.initializer else None,
        }
