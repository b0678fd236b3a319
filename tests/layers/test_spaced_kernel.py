"""Kernels with unused columns, and kernels side by side: the same products."""

import keras
import numpy as np
import pytest

from keras_transformer.layers import DecoderBlock, EncoderBlock, FeedForward, MultiHeadAttention, TiedLogits, TokenEmbedding
from keras_transformer.layers.rows import on_rows
from keras_transformer.layers.spaced_kernel import GAP, SpacedKernel, spaced_kernels, use_kernels


def built(layer, *shape):
    layer.build(shape)
    return layer


def rows_of(random, width: int):
    return keras.ops.convert_to_tensor(random.normal(size=(2, 3, width)).astype("float32"))


@pytest.mark.parametrize("settings", [{}, {"use_bias": False}, {"activation": "relu"}])
def test_the_same_product(settings, random):
    dense = built(keras.layers.Dense(512, bias_initializer="random_normal", **settings), 2, 3, 8)
    kernels, x = spaced_kernels([dense]), rows_of(random, 8)
    assert kernels[id(dense)].kernel.shape == (8, 512 + GAP)
    with use_kernels(kernels):
        found = on_rows(dense, x)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), keras.ops.convert_to_numpy(dense(x)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("vocabulary_size", [500, 512])
def test_logits_of_transposed_embeddings(vocabulary_size, random):
    logits = built(TiedLogits(TokenEmbedding(vocabulary_size, 8), use_bias=True, bias_initializer="random_normal"), 2, 3, 8)
    x = rows_of(random, 8)
    with use_kernels(spaced_kernels([logits])):
        found = logits(x)
    assert found.shape == (2, 3, vocabulary_size)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), keras.ops.convert_to_numpy(logits(x)), rtol=1e-5, atol=1e-6)


def test_the_kernel_in_use_is_what_counts_and_only_while_it_is():
    dense = built(keras.layers.Dense(512), 2, 3, 8)
    kernels, ones = spaced_kernels([dense]), keras.ops.ones((1, 1, 8))
    dense.kernel.assign(keras.ops.zeros((8, 512)))
    with use_kernels(kernels):
        assert float(keras.ops.max(on_rows(dense, ones))) > 0
    assert float(keras.ops.max(on_rows(dense, ones))) == 0


def test_parts_of_parts_are_found_and_what_is_small_or_other_is_left_alone():
    class Other(keras.layers.Dense):
        """Not known to be a plain product."""

    block = built(EncoderBlock(num_heads=4, feed_forward_dim=512), 2, 3, 128)
    feed_forward = block.feed_forward
    # The others have 128 columns.
    assert list(spaced_kernels([block])) == [id(feed_forward.hidden_dense), id(feed_forward.output_dense)]
    softmax = keras.layers.Dense(512, activation="softmax")  # Unused columns would take their share.
    for dense in (keras.layers.Dense(513), Other(512), keras.layers.Dense(512, dtype="mixed_bfloat16"), softmax):
        assert spaced_kernels([built(dense, 2, 3, 8)]) == {}


def test_a_kernel_with_few_columns_and_many_rows_is_large_too():
    assert spaced_kernels([built(keras.layers.Dense(256), 2, 3, 512)]) == {}
    assert len(spaced_kernels([built(keras.layers.Dense(256), 2, 3, 1024)])) == 1


@pytest.mark.parametrize(("activation", "use_bias"), [("relu", True), ("sigmoid", True), ("gelu", False)])
@pytest.mark.parametrize("model_dim", [8, 512])
def test_what_one_map_leaves_unused_the_next_one_multiplies_by_zeros(activation, use_bias, model_dim, random):
    settings = {"activation": activation, "use_bias": use_bias, "bias_initializer": "random_normal"}
    feed_forward = built(FeedForward(512, **settings), 2, 3, model_dim)
    kernels, x = spaced_kernels([feed_forward]), rows_of(random, model_dim)
    columns = model_dim + (GAP if model_dim == 512 else 0)
    assert kernels[id(feed_forward.output_dense)].kernel.shape == (512 + GAP, columns)
    with use_kernels(kernels):
        hidden, found = on_rows(feed_forward.hidden_dense, x), feed_forward(x)
    assert hidden.shape == (2, 3, 512 + GAP)
    assert found.shape == (2, 3, model_dim)
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(found), keras.ops.convert_to_numpy(feed_forward(x)), rtol=1e-4, atol=1e-5
    )


def test_a_network_that_looks_between_its_maps_sees_what_it_knows(random):
    class Gated(FeedForward):
        """Uses what is between its maps."""

        def call(self, inputs, training=None):
            hidden = on_rows(self.hidden_dense, inputs)
            return on_rows(self.output_dense, hidden / keras.ops.max(hidden, axis=-1, keepdims=True))

    gated, x = built(Gated(512, activation="sigmoid"), 2, 3, 8), rows_of(random, 8)
    with use_kernels(spaced_kernels([gated])):
        found = gated(x)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), keras.ops.convert_to_numpy(gated(x)), rtol=1e-4, atol=1e-5)


def test_queries_keys_and_values_are_columns_of_one_product(random):
    block = built(
        DecoderBlock(num_heads=4, feed_forward_dim=64, key_dim=8, value_dim=5, bias_initializer="random_normal"), 2, 3, 32
    )
    attention = block.self_attention
    layers = [attention.query_dense, attention.key_dense, attention.value_dense]
    kernels, x, other = spaced_kernels([block]), rows_of(random, 32), rows_of(random, 32)
    assert {id(kernels[id(layer)].spaced) for layer in layers} == {id(kernels[id(layers[0])].spaced)}
    assert kernels[id(layers[0])].spaced.kernel.shape == (32, 32 + 32 + 20)
    with use_kernels(kernels):
        found = [on_rows(layer, inputs) for inputs in (x, other) for layer in layers]
    expected = [layer(inputs) for inputs in (x, other) for layer in layers]
    for one, same in zip(found, expected, strict=True):
        np.testing.assert_allclose(keras.ops.convert_to_numpy(one), keras.ops.convert_to_numpy(same), rtol=1e-5, atol=1e-6)


def test_one_product_is_computed_once(random, monkeypatch):
    block, x = built(DecoderBlock(num_heads=4, feed_forward_dim=64), 2, 3, 32), rows_of(random, 32)
    attention, computed = block.self_attention, []
    product = SpacedKernel.all_columns
    monkeypatch.setattr(SpacedKernel, "all_columns", lambda self, x: computed.append(x) or product(self, x))
    with use_kernels(spaced_kernels([block])):
        for layer in (attention.query_dense, attention.key_dense, attention.value_dense):
            on_rows(layer, x)
    assert len(computed) == 1


def test_what_is_no_plain_product_is_not_joined():
    class Attention(MultiHeadAttention):
        """Has keys that are more than a product."""

        def make_projection(self, name, units):
            settings = {"activation": "tanh"} if name == "key" else {}
            return keras.layers.Dense(units, use_bias=self.use_bias, name=name, **settings)

    class Block(DecoderBlock):
        """Has such an attention."""

        def make_self_attention(self, model_dim):
            return self.make_attention(model_dim, Attention, name="self_attention")

    assert spaced_kernels([built(Block(num_heads=4, feed_forward_dim=64), 2, 3, 32)]) == {}
    assert spaced_kernels([built(DecoderBlock(num_heads=4, feed_forward_dim=64, dtype="mixed_bfloat16"), 2, 3, 32)]) == {}
