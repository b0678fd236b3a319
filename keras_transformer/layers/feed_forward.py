"""The position-wise feed-forward network (section 3.3 of the paper)."""

import keras

from keras_transformer.layers.checks import check_sizes
from keras_transformer.layers.projecting_layer import ProjectingLayer
from keras_transformer.layers.rows import on_rows


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(ProjectingLayer):
    """Two linear maps with an activation between, applied to each position by itself.

        FFN(x) = max(0, x W_1 + b_1) W_2 + b_2                                     (section 3.3)

    W_1 and b_1 are the layer `hidden`, W_2 and b_2 the layer `output`.

    Args:
        feed_forward_dim: Width between the two maps (the paper's d_ff).
        activation: Activation between the two maps.
        dropout: Rate of dropout on the activations (the paper has none).
        output_dim: Width of the output. Defaults to that of the input.
        use_bias, kernel_initializer, kernel_regularizer, kernel_constraint, bias_initializer, bias_regularizer,
            bias_constraint: Options of the two maps, as `keras.layers.Dense` has them.
        **kwargs: `name`, `dtype`, `trainable`, `activity_regularizer` of every Keras layer.

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
        output_dim: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_sizes(feed_forward_dim=feed_forward_dim)
        check_sizes(output_dim=output_dim, optional=True)
        self.feed_forward_dim = feed_forward_dim
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.output_dim = output_dim

    def build(self, input_shape):
        self.hidden_dense = self.make_projection("hidden", self.feed_forward_dim, self.activation)
        self.output_dense = self.make_projection("output", self.output_dim or input_shape[-1], None)
        self.dropout_layer = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy, name="dropout")
        self.hidden_dense.build(input_shape)
        self.output_dense.build((*input_shape[:-1], self.feed_forward_dim))

    def make_projection(self, name: str, units: int, activation) -> keras.layers.Layer:
        """Makes one of the two linear maps, `hidden` (with the activation) or `output`."""
        return keras.layers.Dense(units, activation=activation, **self.part_options(name))

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
            "output_dim": self.output_dim,
        }
