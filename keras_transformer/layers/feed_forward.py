"""The position-wise feed-forward network (section 3.3 of the paper)."""

import keras

from keras_transformer.layers.changes import QuantizedParts
from keras_transformer.layers.initializers import initializer_for
from keras_transformer.layers.rows import on_rows


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(QuantizedParts, keras.layers.Layer):
    """Two linear maps with an activation between, applied to each position by itself.

        FFN(x) = max(0, x W_1 + b_1) W_2 + b_2                                     (section 3.3)

    W_1 and b_1 are the layer `hidden`, W_2 and b_2 the layer `output`.

    Args:
        feed_forward_dim: Width between the two maps (the paper's d_ff).
        activation: Activation between the two maps.
        dropout: Rate of dropout on the activations (the paper has none).
        use_bias: Whether the two maps have biases.
        output_dim: Width of the output. Defaults to that of the input.
        kernel_initializer: Initializer of the kernels; each gets a clone of its own.
        bias_initializer: Initializer of the biases.
        **kwargs: `name`, `dtype`, `trainable` of every Keras layer.

    Call arguments:
        inputs: Float tensor `(B, T, M)`.
        training: Whether dropout is at work.

    Returns:
        A float tensor `(B, T, M)`.

    Masking:
        Positions don't see each other; a mask attached to the input is passed on.

    Example:

    >>> FeedForward(2048)(keras.random.normal((2, 10, 512))).shape
    (2, 10, 512)
    """

    def __init__(
        self,
        feed_forward_dim: int,
        activation="relu",
        dropout: float = 0.0,
        use_bias: bool = True,
        output_dim: int | None = None,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if feed_forward_dim < 1:
            raise ValueError(f"`feed_forward_dim` must be a positive integer. Received: feed_forward_dim={feed_forward_dim}")
        self.feed_forward_dim = feed_forward_dim
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.use_bias = use_bias
        self.output_dim = output_dim
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        self.hidden_dense = self.make_projection("hidden", self.feed_forward_dim, self.activation)
        self.output_dense = self.make_projection("output", self.output_dim or input_shape[-1], None)
        self.dropout_layer = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy, name="dropout")
        self.hidden_dense.build(input_shape)
        self.output_dense.build((*input_shape[:-1], self.feed_forward_dim))

    def make_projection(self, name: str, units: int, activation) -> keras.layers.Layer:
        """Makes one of the two linear maps, `hidden` (with the activation) or `output`."""
        return keras.layers.Dense(
            units,
            activation=activation,
            use_bias=self.use_bias,
            kernel_initializer=initializer_for(self.kernel_initializer, name),
            bias_initializer=initializer_for(self.bias_initializer, name),
            dtype=self.dtype_policy,
            name=name,
        )

    def call(self, inputs, training=None):
        hidden = on_rows(self.hidden_dense, inputs)  # (B, T, F)
        hidden = self.dropout_layer(hidden, training=training)
        return on_rows(self.output_dense, hidden)  # (B, T, M)

    def chained_projections(self) -> list:
        """Returns the linear map whose output nobody sees but the next one, and that one; see `layers.spaced_kernel`."""
        return [self.hidden_dense, self.output_dense] if type(self).call is FeedForward.call else []

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.output_dim or input_shape[-1])

    def get_config(self):
        return {
            **super().get_config(),
            "feed_forward_dim": self.feed_forward_dim,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "output_dim": self.output_dim,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }
