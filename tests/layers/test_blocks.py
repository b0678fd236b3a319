import keras
import numpy as np
import pytest

from keras_transformer.layers import DecoderBlock, EncoderBlock
from tests.gradients import numpy_of

B, S, T, M = 2, 6, 5, 8


def normal(random, *shape):
    return random.normal(size=shape).astype("float32")


def layer_norm(x, epsilon=1e-6):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_encoder_block_is_two_residual_sublayers(random, norm):
    block = EncoderBlock(16, 2, norm=norm)
    x = normal(random, B, S, M)
    output = numpy_of(block(x))
    if norm == "post":
        x = layer_norm(x + numpy_of(block.self_attention(x)))
        x = layer_norm(x + numpy_of(block.feed_forward(x.astype("float32"))))
    else:
        x = x + numpy_of(block.self_attention(layer_norm(x)))
        x = x + numpy_of(block.feed_forward(layer_norm(x).astype("float32")))
    np.testing.assert_allclose(output, x, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_decoder_block_is_three_residual_sublayers(random, norm):
    block = DecoderBlock(16, 2, norm=norm)
    x, encoded = normal(random, B, T, M), normal(random, B, S, M)
    output = numpy_of(block(x, encoded))
    if norm == "post":
        x = layer_norm(x + numpy_of(block.self_attention(x, use_causal_mask=True)))
        x = layer_norm(x + numpy_of(block.cross_attention(x.astype("float32"), encoded)))
        x = layer_norm(x + numpy_of(block.feed_forward(x.astype("float32"))))
    else:
        x = x + numpy_of(block.self_attention(layer_norm(x), use_causal_mask=True))
        x = x + numpy_of(block.cross_attention(layer_norm(x).astype("float32"), encoded))
        x = x + numpy_of(block.feed_forward(layer_norm(x).astype("float32")))
    np.testing.assert_allclose(output, x, atol=1e-5)


def test_encoder_block_hides_padding(random):
    block = EncoderBlock(16, 2)
    x, mask = normal(random, B, S, M), np.arange(S) < np.array([[3], [5]])
    other = np.where(mask[:, :, None], x, normal(random, B, S, M))
    first, second = numpy_of(block(x, mask=mask)), numpy_of(block(other, mask=mask))
    assert np.array_equal(first[mask], second[mask])
    assert not np.array_equal(first[~mask], second[~mask])


def test_encoder_block_takes_the_mask_that_keras_attached(random):
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, EncoderBlock(16, 2)(keras.layers.Embedding(20, M, mask_zero=True)(ids)))
    short, padded = np.array([[5, 6, 7]]), np.array([[5, 6, 7, 0, 0]])
    np.testing.assert_allclose(numpy_of(model(padded))[:, :3], numpy_of(model(short)), atol=1e-6)


def test_decoder_block_hides_padding_of_the_source(random):
    block = DecoderBlock(16, 2)
    x, encoded, mask = normal(random, B, T, M), normal(random, B, S, M), np.arange(S) < np.array([[3], [5]])
    other = np.where(mask[:, :, None], encoded, normal(random, B, S, M))
    assert np.array_equal(numpy_of(block(x, encoded, encoded_mask=mask)), numpy_of(block(x, other, encoded_mask=mask)))
    assert not np.array_equal(numpy_of(block(x, encoded)), numpy_of(block(x, other)))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_decoder_block_with_a_cache_equals_a_full_pass(random, norm):
    block = DecoderBlock(16, 2, norm=norm)
    x, encoded, mask = normal(random, B, T, M), normal(random, B, S, M), np.arange(S) < np.array([[3], [5]])
    full = numpy_of(block(x, encoded, encoded_mask=mask))
    cache = block.make_cache(encoded, length=T)
    for t in range(T):
        step, cache = block(x[:, t : t + 1], encoded_mask=mask, positions=np.array([t]), cache=cache)
        np.testing.assert_allclose(numpy_of(step), full[:, t : t + 1], atol=1e-5)


def test_symbolic_cached_step():
    block = DecoderBlock(16, 2)
    block.build((None, None, M), (None, None, M))
    cache = {
        "self_attention": {name: keras.KerasTensor((None, 2, 9, 4)) for name in ("key", "value")},
        "cross_attention": {name: keras.KerasTensor((None, 2, S, 4)) for name in ("fixed_key", "fixed_value")},
    }
    output, after = block(keras.KerasTensor((None, 1, M)), positions=keras.KerasTensor((1,), dtype="int32"), cache=cache)
    assert output.shape == (None, 1, M)
    assert after["self_attention"]["key"].shape == (None, 2, 9, 4)


def test_each_dropout_has_its_own_rate(random):
    x = normal(random, B, S, M)
    for rate in ("dropout", "attention_dropout", "activation_dropout"):
        block = EncoderBlock(16, 2, **{"dropout": 0.0, rate: 0.5})
        assert not np.array_equal(numpy_of(block(x, training=True)), numpy_of(block(x, training=True))), rate
    block = EncoderBlock(16, 2, dropout=0.0)
    assert np.array_equal(numpy_of(block(x, training=True)), numpy_of(block(x)))


def test_variable_paths_are_readable():
    block = DecoderBlock(16, 2, name="decoder_block_3")
    block.build((None, None, M), (None, None, M))
    paths = [v.path for v in block.weights]
    assert "decoder_block_3/cross_attention/query/kernel" in paths
    assert "decoder_block_3/feed_forward_norm/gamma" in paths
    assert len(set(paths)) == len(paths)


def test_a_user_can_replace_any_part(random):
    class Quiet(EncoderBlock):
        def make_feed_forward(self, model_dim):
            return keras.layers.Dense(model_dim, kernel_initializer="zeros", name="feed_forward")

        def call(self, inputs, mask=None, training=None):
            return super().call(inputs, mask=mask) * 0 + self.feed_forward(inputs)

    x = normal(random, B, S, M)
    assert (numpy_of(Quiet(16, 2)(x)) == 0).all()


def test_impossible_options_are_refused():
    with pytest.raises(ValueError, match="norm='sideways'"):
        EncoderBlock(16, 2, norm="sideways")
    with pytest.raises(ValueError, match="width 8, num_heads=3"):
        EncoderBlock(16, 3)(np.zeros((1, 2, 8), "float32"))
