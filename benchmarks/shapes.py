"""The model shapes that are measured, and the work one training step of them is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A Transformer with as many encoder as decoder layers, and the batch it is trained on."""

    name: str
    num_layers: int
    model_dim: int
    feed_forward_dim: int
    num_heads: int
    vocabulary_size: int
    batch_size: int
    length: int
    dropout: float = 0.1

    @property
    def target_tokens(self) -> int:
        """Number of target tokens in a batch; there are as many source tokens."""
        return self.batch_size * self.length

    def describe(self) -> str:
        """Says the shape in a line."""
        return f"{self.describe_model()}, {self.batch_size} x {self.length} tokens a side"

    def describe_model(self) -> str:
        """Says the shape of the model in a line."""
        return (
            f"{self.num_layers}+{self.num_layers} layers, {self.model_dim} wide, {self.feed_forward_dim} feed-forward, "
            f"{self.num_heads} heads, vocabulary {self.vocabulary_size}"
        )


SHAPES = {
    "base": Shape("base", 6, 512, 2048, 8, vocabulary_size=8000, batch_size=32, length=32),
    "tiny": Shape("tiny", 4, 128, 256, 4, vocabulary_size=10000, batch_size=128, length=20),
}

FLOPS_FORMULA = "3 x (2 x matmul parameters x tokens that pass through them + attention products)"


def matmul_flops(shape: Shape) -> int:
    """Counts the floating-point operations of the matrix products of one training step.

    A product with a kernel of P parameters costs 2P for each token, forward; the backward pass costs twice the forward pass.
    The attention products QK^T and (weights)V cost 2 x 2 x T x M a query. Sums, normalization, dropout, softmax and Adam count
    for nothing.
    """
    m, f = shape.model_dim, shape.feed_forward_dim
    encoder_layer = 4 * m * m + 2 * m * f
    decoder_layer = 8 * m * m + 2 * m * f  # Source and target are equally long: cross-attention has four kernels as well.
    kernels = shape.num_layers * (encoder_layer + decoder_layer) + m * shape.vocabulary_size
    attention = shape.num_layers * 3 * (2 * 2 * shape.length * m)
    return 3 * shape.target_tokens * (2 * kernels + attention)
