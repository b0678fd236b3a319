"""What encoder and decoder blocks have in common."""

import keras

from keras_transformer.layers.changes import QuantizedParts
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.initializers import initializer_for
from keras_transformer.layers.lean_norm import normalize
from keras_transformer.layers.multi_head_attention import MultiHeadAttention


class TransformerBlock(QuantizedParts, keras.layers.Layer):
    """The options of a block, the methods that make its parts, and the residual connection around each sublayer.

        post-norm: LayerNorm(x + Dropout(Sublayer(x)))                             (sections 3.1 and 5.4)
        pre-norm:  x + Dropout(Sublayer(LayerNorm(x)))

    Parts are made in `build`, when the constructor of a subclass has run and the width of the input is known. Override a
    `make_` method to put a part of your own in its place. `EncoderBlock` and `DecoderBlock` share these arguments.

    Args:
        feed_forward_dim: Width of the feed-forward network (the paper's d_ff).
        num_heads: Number of attention heads.
        key_dim: Width of each head's queries and keys. Defaults to M / N.
        value_dim: Width of each head's values. Defaults to M / N.
        norm: `"post"`, normalization after the residual connection as in the paper, or `"pre"`, before the sublayer. A stack of
            pre-norm blocks wants a last normalization behind it, which `Transformer` adds.
        activation: Activation of the feed-forward network.
        dropout: Rate of dropout on the output of each sublayer.
        attention_dropout: Rate of dropout on the attention weights.
        activation_dropout: Rate of dropout within the feed-forward network.
        use_bias: Whether attention and feed-forward projections have biases.
        layer_norm_epsilon: Epsilon of the normalizations.
        kernel_initializer: Initializer of the kernels; each gets a clone of its own.
        bias_initializer: Initializer of the biases.
        **kwargs: `name`, `dtype`, `trainable` of every Keras layer.
    """

    def __init__(
        self,
        feed_forward_dim: int,
        num_heads: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        norm: str = "post",
        activation="relu",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        use_bias: bool = True,
        layer_norm_epsilon: float = 1e-6,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if norm not in ("post", "pre"):
            raise ValueError(f'`norm` must be "post" or "pre". Received: norm={norm!r}')
        self.feed_forward_dim = feed_forward_dim
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.norm = norm
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation_dropout = activation_dropout
        self.use_bias = use_bias
        self.layer_norm_epsilon = layer_norm_epsilon
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.supports_masking = True

    def make_self_attention(self, model_dim: int) -> keras.layers.Layer:
        """Makes the attention of the input to itself."""
        return self.make_attention(model_dim, MultiHeadAttention, name="self_attention")

    def make_attention(self, model_dim: int, attention_class: type, name: str, **options) -> keras.layers.Layer:
        """Makes an attention layer of the given class with this block's options, and any others the class takes."""
        if (self.key_dim is None or self.value_dim is None) and model_dim % self.num_heads:
            raise ValueError(
                f"The input's width must be divisible by the number of heads, or `key_dim` and `value_dim` be given. "
                f"Received: an input of width {model_dim}, num_heads={self.num_heads}"
            )
        return attention_class(
            num_heads=self.num_heads,
            key_dim=self.key_dim or model_dim // self.num_heads,
            value_dim=self.value_dim or model_dim // self.num_heads,
            dropout=self.attention_dropout,
            use_bias=self.use_bias,
            kernel_initializer=initializer_for(self.kernel_initializer, name),
            bias_initializer=initializer_for(self.bias_initializer, name),
            dtype=self.dtype_policy,
            name=name,
            **options,
        )

    def make_feed_forward(self, model_dim: int) -> keras.layers.Layer:
        """Makes the feed-forward network."""
        return FeedForward(
            self.feed_forward_dim,
            activation=self.activation,
            dropout=self.activation_dropout,
            use_bias=self.use_bias,
            kernel_initializer=initializer_for(self.kernel_initializer, "feed_forward"),
            bias_initializer=initializer_for(self.bias_initializer, "feed_forward"),
            dtype=self.dtype_policy,
            name="feed_forward",
        )

    def make_norm(self, name: str) -> keras.layers.Layer:
        """Makes the normalization of one sublayer."""
        return keras.layers.LayerNormalization(epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=name)

    def make_dropout(self, name: str) -> keras.layers.Layer:
        """Makes the dropout on the output of one sublayer."""
        return keras.layers.Dropout(self.dropout, dtype=self.dtype_policy, name=name)

    def enter(self, x, norm):
        """Returns what a sublayer gets to see of `x`."""
        return normalize(norm, x) if self.norm == "pre" else x

    def leave(self, x, sublayer_output, norm, dropout, training=None):
        """Adds the output of a sublayer to its input `x`."""
        x = x + dropout(sublayer_output, training=training)
        return normalize(norm, x) if self.norm == "post" else x

    def get_config(self):
        return {
            **super().get_config(),
            "feed_forward_dim": self.feed_forward_dim,
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "norm": self.norm,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation_dropout": self.activation_dropout,
            "use_bias": self.use_bias,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }
