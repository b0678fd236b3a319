"""Regularizers and constraints of attention, feed-forward network and blocks."""

import keras
import numpy as np
import pytest

from keras_transformer.layers import DecoderBlock, EncoderBlock, FeedForward, MultiHeadAttention
from tests.gradients import numpy_of

M = 8
MADE = {
    MultiHeadAttention: {"num_heads": 2, "key_dim": 4},
    FeedForward: {"feed_forward_dim": 12},
    EncoderBlock: {"feed_forward_dim": 12, "num_heads": 2, "dropout": 0.0},
    DecoderBlock: {"feed_forward_dim": 12, "num_heads": 2, "dropout": 0.0, "cross_attention": False},
}
each_layer = pytest.mark.parametrize("cls", MADE)


def kernels_and_biases(layer):
    """The weights of linear maps, without those of normalizations."""
    return [[v for v in layer.weights if v.path.endswith(name)] for name in ("/kernel", "/bias")]


def updated(cls, learning_rate=1.0, **options):
    """A layer after one step of training whose only loss is what the layer itself adds, and its weights before."""
    inputs = keras.Input((3, M))
    layer = cls(**MADE[cls], **options)
    model = keras.Model(inputs, layer(inputs))
    before = {v.path: numpy_of(v).copy() for v in layer.weights}
    model.compile(keras.optimizers.SGD(learning_rate), loss=lambda y, output: keras.ops.mean(0 * output), jit_compile=False)
    x = np.ones((2, 3, M), "float32")
    model.fit(x, x, verbose=0)
    return layer, before


@each_layer
def test_regularizers_add_to_the_loss(cls):
    layer = cls(**MADE[cls], kernel_regularizer=keras.regularizers.L2(0.1), bias_regularizer="l1", bias_initializer="ones")
    layer(np.ones((2, 3, M), "float32"))
    kernels, biases = kernels_and_biases(layer)
    expected = sum(0.1 * (numpy_of(v) ** 2).sum() for v in kernels) + sum(0.01 * np.abs(numpy_of(v)).sum() for v in biases)
    assert len(layer.losses) == len(kernels) + len(biases)
    np.testing.assert_allclose(sum(float(numpy_of(loss)) for loss in layer.losses), expected, rtol=1e-5)


@each_layer
def test_regularizers_are_trained_on(cls):
    layer, before = updated(cls, learning_rate=0.5, kernel_regularizer=keras.regularizers.L2(0.1))
    for variable in kernels_and_biases(layer)[0]:
        np.testing.assert_allclose(numpy_of(variable), 0.9 * before[variable.path], rtol=1e-5)  # 1 - 0.5 * 2 * 0.1


@each_layer
def test_constraints_hold_after_an_update(cls):
    layer, before = updated(cls, kernel_constraint="non_neg", bias_constraint="non_neg", bias_initializer="random_normal")
    for variable in [v for variables in kernels_and_biases(layer) for v in variables]:
        np.testing.assert_allclose(numpy_of(variable), np.maximum(before[variable.path], 0))


@each_layer
def test_an_activity_regularizer_sees_the_output(cls):
    layer = cls(**MADE[cls], activity_regularizer=keras.regularizers.L2(0.1))
    output = numpy_of(layer(np.random.default_rng(0).normal(size=(2, 3, M)).astype("float32")))
    np.testing.assert_allclose([numpy_of(loss) for loss in layer.losses], [0.1 * (output**2).sum() / 2], rtol=1e-5)


@each_layer
def test_config_round_trip(cls):
    options = {
        "use_bias": False,
        "kernel_initializer": keras.initializers.GlorotUniform(seed=3),
        "kernel_regularizer": keras.regularizers.L1L2(0.1, 0.2),
        "bias_regularizer": "l2",
        "activity_regularizer": "l1",
        "kernel_constraint": keras.constraints.MaxNorm(2.0),
        "bias_constraint": "non_neg",
    }
    layer = cls(**MADE[cls], **options)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert again.get_config() == layer.get_config()
    assert again.kernel_regularizer.l2 == 0.2 and again.kernel_constraint.max_value == 2.0


def test_options_that_are_unset_need_not_be_known_to_an_attention_class_of_the_users_own():
    class Mean(keras.layers.Layer):
        def __init__(self, num_heads, key_dim, value_dim, dropout, use_bias, kernel_initializer, bias_initializer, **kwargs):
            super().__init__(**kwargs)

        def call(self, query, key_mask=None):
            return keras.ops.zeros_like(query) + keras.ops.mean(query, axis=1, keepdims=True)

    class Block(EncoderBlock):
        def make_self_attention(self, model_dim):
            return self.make_attention(model_dim, Mean, name="self_attention")

    x = np.ones((2, 3, M), "float32")
    assert tuple(Block(12, 2)(x).shape) == (2, 3, M)
    with pytest.raises(ValueError, match="kernel_regularizer"):
        Block(12, 2, kernel_regularizer="l2")(x)
