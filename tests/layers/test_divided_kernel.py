"""Kernels that are taken apart: the same products."""

import keras
import numpy as np
import pytest

from keras_transformer.layers import DecoderBlock, TiedLogits, TokenEmbedding, divided_kernel
from keras_transformer.layers.divided_kernel import divided_kernels
from keras_transformer.layers.rows import on_rows
from keras_transformer.layers.spaced_kernel import use_kernels


def built(layer, width: int):
    layer.build((2, 3, width))
    return layer


def rows_of(random, width: int):
    return keras.ops.convert_to_tensor(random.normal(size=(2, 3, width)).astype("float32"))


def check_same(found, expected):
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), keras.ops.convert_to_numpy(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"use_bias": False}, {"activation": "relu"}])
def test_groups_of_rows(settings, random):
    dense, x = built(keras.layers.Dense(1024, bias_initializer="random_normal", **settings), 512), rows_of(random, 512)
    kernels = divided_kernels([dense], 4)
    assert [part.shape for part in kernels[id(dense)].parts] == [(128, 1024)] * 4
    with use_kernels(kernels):
        found = on_rows(dense, x)
    assert found.shape == (2, 3, 1024)
    check_same(found, dense(x))


@pytest.mark.parametrize("use_bias", [True, False])
def test_entries_of_a_vocabulary(use_bias, random, monkeypatch):
    monkeypatch.setattr(divided_kernel, "SMALLEST", 100)
    embedding = TokenEmbedding(101, 8)
    logits, x = built(TiedLogits(embedding, use_bias, bias_initializer="random_normal"), 8), rows_of(random, 8)
    kernels = divided_kernels([logits], 4)
    assert [part.shape[0] for part in kernels[id(logits)].parts] == [25, 25, 25, 26]
    with use_kernels(kernels):
        found = logits(x)
    assert found.shape == (2, 3, 101)
    check_same(found, logits(x))


def test_as_many_parts_as_are_large_enough():
    small, large, odd = (built(keras.layers.Dense(units), rows) for units, rows in ((512, 256), (512, 512), (1024, 513)))
    kernels = divided_kernels([small, large, odd], 16)
    assert set(kernels) == {id(large), id(odd)}
    assert len(kernels[id(large)].parts) == 2
    assert len(kernels[id(odd)].parts) == 3  # Four would not be equally large.
    assert divided_kernels([large], 1) == {}


def test_parts_of_parts_are_found_and_what_is_other_is_left_alone():
    class Other(keras.layers.Dense):
        """Not known to be a plain product."""

    block = built(DecoderBlock(num_heads=4, feed_forward_dim=2048), 128)
    feed_forward = block.feed_forward
    assert set(divided_kernels([block], 2)) == {id(feed_forward.hidden_dense), id(feed_forward.output_dense)}
    for dense in (Other(512), keras.layers.Dense(512, dtype="mixed_bfloat16")):
        assert divided_kernels([built(dense, 512)], 2) == {}
