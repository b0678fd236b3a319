"""What layers made of linear maps have in common."""

import keras

from keras_transformer.layers.changes import QuantizedParts
from keras_transformer.layers.initializers import initializer_for


class ProjectingLayer(QuantizedParts, keras.layers.Layer):
    """The options of a layer's linear maps, which `MultiHeadAttention`, `FeedForward` and the blocks hand down to their parts.

    Args:
        use_bias: Whether the linear maps have biases.
        kernel_initializer, bias_initializer: Initializers of kernels and biases; each map gets clones of its own.
        kernel_regularizer, bias_regularizer: What kernels and biases add to the loss, e.g. `"l2"`.
        kernel_constraint, bias_constraint: What kernels and biases are subject to after each update, e.g. `"non_neg"`.
        **kwargs: `name`, `dtype`, `trainable`, `activity_regularizer` of every Keras layer.
    """

    def __init__(
        self,
        use_bias: bool = True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.supports_masking = True

    def part_options(self, name: str) -> dict:
        """Returns the options that the part `name` shares with this layer. A user's own class need not know those unset."""
        optional = ("kernel_regularizer", "bias_regularizer", "kernel_constraint", "bias_constraint")
        return {
            "use_bias": self.use_bias,
            "kernel_initializer": initializer_for(self.kernel_initializer, name),
            "bias_initializer": initializer_for(self.bias_initializer, name),
            **{option: getattr(self, option) for option in optional if getattr(self, option) is not None},
            "dtype": self.dtype_policy,
            "name": name,
        }

    def get_config(self):
        return {
            **super().get_config(),
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "kernel_constraint": keras.constraints.serialize(self.kernel_constraint),
            "bias_constraint": keras.constraints.serialize(self.bias_constraint),
        }
