import keras
import numpy as np
import pytest

from keras_transformer.layers import PaddingMask, TiedLogits, TokenEmbedding
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


LARGE_IDS = np.array([[257, 1001, 3333]])  # bfloat16 has none of them, float16 not the last one.


def test_float_ids_find_the_rows_of_integer_ids(policy):
    layer = TokenEmbedding(4000, 8)
    for ids in (LARGE_IDS.astype("float32"), LARGE_IDS + 0.5):
        assert np.array_equal(numpy_of(keras.ops.cast(layer(ids) - layer(LARGE_IDS), "float32")), np.zeros((1, 3, 8)))


def test_float_inputs_of_a_functional_model_find_them_too(policy):
    layer = TokenEmbedding(4000, 8)
    ids = keras.Input((None,))
    model = keras.Model(ids, [layer(ids), PaddingMask(pad_id=3328)(ids)])  # In bfloat16, 3333 is 3328.
    vectors, mask = model(LARGE_IDS.astype("float32"))
    assert np.array_equal(numpy_of(keras.ops.cast(vectors - layer(LARGE_IDS), "float32")), np.zeros((1, 3, 8)))
    assert numpy_of(mask).all()


def test_no_ids_give_no_vectors():
    ids = np.zeros((2, 0), "int32")
    assert tuple(TokenEmbedding(10, 8)(ids).shape) == (2, 0, 8)
    assert tuple(PaddingMask()(ids).shape) == (2, 0)


def test_regularizer_and_constraint_of_the_matrix():
    layer = TokenEmbedding(10, 8, embeddings_regularizer=keras.regularizers.L2(0.5), embeddings_constraint="non_neg")
    layer(LARGE_IDS % 10)
    np.testing.assert_allclose(numpy_of(sum(layer.losses)), 0.5 * np.square(numpy_of(layer.embeddings)).sum(), rtol=1e-5)
    assert numpy_of(layer.embeddings.constraint(layer.embeddings)).min() == 0
    again = TokenEmbedding.from_config(layer.get_config())
    assert again.embeddings_regularizer.l2 == 0.5 and isinstance(again.embeddings_constraint, keras.constraints.NonNeg)


@pytest.mark.parametrize("mode, error", [("int8", 0.01), ("int4", 0.2)])
def test_a_quantized_matrix_serves_both_ends(mode, error, random):
    embedding = TokenEmbedding(30, 16)
    logits = TiedLogits(embedding, use_bias=True, bias_initializer="random_normal")
    ids, x = np.arange(30), random.normal(size=(2, 3, 16)).astype("float32")
    before = [numpy_of(embedding(ids)), numpy_of(logits(x))]
    embedding.quantize(mode)
    assert keras.backend.standardize_dtype(embedding.weights[0].dtype) == "int8"
    after = [numpy_of(embedding(ids)), numpy_of(logits(x))]
    for old, new in zip(before, after, strict=True):
        assert 0 < np.abs(new - old).max() < error * np.abs(old).max()
    np.testing.assert_allclose(after[1], x @ after[0].T / 4 + numpy_of(logits.bias), atol=1e-5)
    for kernel in (logits.spaced_kernel(), logits.divided_kernel(1)):
        np.testing.assert_allclose(numpy_of(kernel(keras.ops.convert_to_tensor(x))), after[1].reshape(6, 30), atol=1e-5)


def test_lora_of_the_matrix_serves_both_ends(random):
    embedding = TokenEmbedding(10, 16)
    logits = TiedLogits(embedding)
    x = random.normal(size=(1, 3, 16)).astype("float32")
    logits(x)
    embedding.enable_lora(2)
    embedding.lora_embeddings_b.assign(np.ones((2, 16)))
    np.testing.assert_allclose(numpy_of(logits(x)), x @ numpy_of(embedding(np.arange(10))).T / 4, atol=1e-4)


def test_subclasses_are_not_quantized_unasked():
    class Mine(TokenEmbedding):
        pass

    layer = Mine(10, 8)
    layer.build()
    with pytest.raises(NotImplementedError, match="Mine"):
        layer.quantize("int8")
