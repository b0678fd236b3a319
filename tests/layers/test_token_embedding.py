import keras
import numpy as np
import pytest

from keras_transformer.layers import TiedLogits, TokenEmbedding
from tests.gradients import numpy_of


def test_rows_are_scaled_by_the_root_of_the_width():
    layer = TokenEmbedding(10, 16)
    vectors = numpy_of(layer(np.array([[3, 7]])))
    np.testing.assert_allclose(vectors[0], 4 * numpy_of(layer.embeddings)[[3, 7]], rtol=1e-6)


def test_scaling_is_an_option():
    layer = TokenEmbedding(10, 16, scale=False)
    np.testing.assert_allclose(numpy_of(layer(np.array([3]))), numpy_of(layer.embeddings)[[3]])


def test_initial_entries_have_the_papers_deviation():
    layer = TokenEmbedding(2000, 64)
    layer.build()
    assert abs(numpy_of(layer.embeddings).std() * 8 - 1) < 0.02


def test_logits_are_products_with_every_embedding(random):
    embedding = TokenEmbedding(10, 16)
    logits = TiedLogits(embedding, use_bias=True, bias_initializer="random_normal")
    x = random.normal(size=(2, 3, 16)).astype("float32")
    expected = np.einsum("btm,vm->btv", x, numpy_of(embedding(np.arange(10))) / 4)
    np.testing.assert_allclose(numpy_of(logits(x)), expected + numpy_of(logits.bias), atol=1e-5)


def test_logits_are_float32_under_half_precision(random):
    with_policy = TokenEmbedding(10, 16, dtype="mixed_bfloat16")
    x = random.normal(size=(1, 2, 16)).astype("float32")
    logits = TiedLogits(with_policy, dtype="float32")(keras.ops.cast(x, "bfloat16"))
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    rounded = numpy_of(keras.ops.cast(keras.ops.cast(x, "bfloat16"), "float32"))
    np.testing.assert_allclose(numpy_of(logits), rounded @ numpy_of(with_policy.embeddings).T, atol=1e-5)


def test_the_matrix_is_shared_and_counted_once():
    embedding = TokenEmbedding(10, 16)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, TiedLogits(embedding)(embedding(ids)))
    assert model.count_params() == 160


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match="vocabulary_size=0"):
        TokenEmbedding(0, 16)
