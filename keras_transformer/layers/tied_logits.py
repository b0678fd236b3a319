"""The output projection that shares the embedding's matrix (section 3.4 of the paper)."""

import keras
from keras import ops

from keras_transformer.layers.divided_kernel import DividedEntries, groups_of_rows, most_parts
from keras_transformer.layers.rows import on_rows
from keras_transformer.layers.spaced_kernel import SpacedKernel, gap_for, with_gap
from keras_transformer.layers.token_embedding import TokenEmbedding


@keras.saving.register_keras_serializable(package="keras_transformer")
class TiedLogits(keras.layers.Layer):
    """Scores every entry of the vocabulary with the transpose of an embedding's matrix.

        logits = x E^T + b, E the matrix of `embedding`                            (section 3.4)

    The layer is made with `dtype="float32"` in the model, so that logits are float32 under every dtype policy. A quantized
    matrix is multiplied as floats: `quantize` saves memory here, and rounds nothing but the matrix.

    Args:
        embedding: The `TokenEmbedding` whose matrix is used. It stays the owner of its weights. A copy of this layer that is
            made from its config, as by `keras.models.clone_model`, uses the one of this name that its input comes from.
        use_bias: Whether a bias is added (the paper has none).
        bias_initializer: Initializer of the bias.
        **kwargs: `name`, `dtype`, `trainable` of every Keras layer.

    Call arguments:
        inputs: Float tensor `(B, T, M)`.

    Returns:
        A float tensor `(B, T, V)`.

    Masking:
        A mask attached to the input is passed on.

    Example:

    >>> embedding = TokenEmbedding(8000, 512)
    >>> embedded = embedding(keras.ops.ones((2, 10), dtype="int32"))
    >>> TiedLogits(embedding)(embedded).shape
    (2, 10, 8000)
    """

    def __init__(self, embedding: TokenEmbedding, use_bias: bool = False, bias_initializer="zeros", **kwargs):
        super().__init__(**kwargs)
        self.embedding = embedding
        self.use_bias = use_bias
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.supports_masking = True

    def __call__(self, inputs, *args, **kwargs):
        above = None if self.embedding.built else embedding_above(inputs, self.embedding.name)
        if above is not None:
            self._tracker.untrack(self.embedding)
            self.embedding = above
        return super().__call__(inputs, *args, **kwargs)

    def build(self, input_shape):
        if not self.embedding.built:
            self.embedding.build()
        if self.use_bias:
            self.bias = self.add_weight(shape=(self.embedding.vocabulary_size,), initializer=self.bias_initializer, name="bias")

    def call(self, inputs):
        return on_rows(self.project, inputs)  # (B, T, V)

    def project(self, rows):
        """Multiplies rows `(..., M)` by the transposed embeddings: `(..., V)`."""
        logits = ops.matmul(rows, ops.transpose(ops.cast(self.embedding.float_matrix(), self.compute_dtype)))
        return logits + self.bias if self.use_bias else logits

    def spaced_kernel(self) -> SpacedKernel:
        """Returns the transposed embeddings in a layout for products of few rows; see `layers.spaced_kernel`."""
        kernel = with_gap(ops.transpose(self.embedding.float_matrix()))
        bias = ops.pad(self.bias, [[0, gap_for(self.embedding.vocabulary_size)]]) if self.use_bias else None
        return SpacedKernel(kernel, bias, None, self.embedding.vocabulary_size)

    def divided_kernel(self, count: int) -> DividedEntries:
        """Returns the embeddings in at most `count` parts; see `layers.divided_kernel`."""
        matrix = self.embedding.float_matrix()
        return DividedEntries(groups_of_rows(matrix, most_parts(matrix, count)), self.bias if self.use_bias else None)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.embedding.vocabulary_size)

    def get_config(self):
        return {
            **super().get_config(),
            "embedding": keras.saving.serialize_keras_object(self.embedding),
            "use_bias": self.use_bias,
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }

    @classmethod
    def from_config(cls, config):
        # Not built: whoever makes a copy of the graph has made a copy of the embedding already.
        embedding = keras.saving.deserialize_keras_object({**config["embedding"], "build_config": None})
        return cls(**{**config, "embedding": embedding})


def embedding_above(x, name: str) -> TokenEmbedding | None:
    """Returns the embedding of this name among the layers that a symbolic tensor was computed by, if there is one."""
    waiting, seen = [x], set()
    while waiting:
        operation, call, _ = getattr(waiting.pop(), "_keras_history", (None, None, None))
        if isinstance(operation, TokenEmbedding) and operation.name == name:
            return operation
        if operation is not None and (id(operation), call) not in seen:
            seen.add((id(operation), call))
            waiting.extend(operation._inbound_nodes[call].input_tensors)
    return None
