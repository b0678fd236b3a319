"""Layer normalization in fewer passes: the same numbers."""

import keras
import numpy as np
import pytest

from keras_transformer.layers import DecoderBlock, EncoderBlock
from keras_transformer.layers.lean_norm import lean_norms, normalize
from keras_transformer.layers.spaced_kernel import use_kernels


def built(norm, width: int = 8):
    norm.build((None, None, width))
    return norm


def norm_with_weights(random, **settings):
    norm = built(keras.layers.LayerNormalization(**settings))
    norm.set_weights([random.normal(size=8).astype("float32") for _ in norm.weights])
    return norm


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e4])
def test_the_same_as_keras(scale, random):
    norm = norm_with_weights(random, epsilon=1e-6)
    x = keras.ops.convert_to_tensor((scale * random.normal(size=(2, 3, 8)) + 5 * scale).astype("float32"))
    with use_kernels(lean_norms([norm])):
        found = normalize(norm, x)
    assert found.shape == (2, 3, 8)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), keras.ops.convert_to_numpy(norm(x)), rtol=2e-4, atol=1e-4)


def test_worked_out_by_hand():
    norm = built(keras.layers.LayerNormalization(epsilon=0.0), 4)
    norm.set_weights([np.array([1.0, 2.0, 1.0, 1.0], "float32"), np.array([0.0, 0.0, 0.0, 10.0], "float32")])
    with use_kernels(lean_norms([norm])):
        found = normalize(
            norm, keras.ops.convert_to_tensor(np.array([[[1.0, 3.0, 1.0, 3.0]]], "float32"))
        )  # mean 2, deviation 1
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), [[[-1.0, 2.0, -1.0, 11.0]]], rtol=1e-6)


def test_equal_numbers_become_the_shift(random):
    norm = norm_with_weights(random, epsilon=1e-6)
    with use_kernels(lean_norms([norm])):
        found = keras.ops.convert_to_numpy(normalize(norm, keras.ops.full((1, 2, 8), 3.0)))
    np.testing.assert_allclose(found, np.broadcast_to(keras.ops.convert_to_numpy(norm.beta), (1, 2, 8)), atol=1e-6)


def test_half_precision_is_normalized_in_float32(random):
    norm = norm_with_weights(random, epsilon=1e-6, dtype="mixed_float16")
    x = keras.ops.convert_to_tensor((1000 + random.normal(size=(1, 2, 8))).astype("float16"))  # Squares are beyond float16.
    with use_kernels(lean_norms([norm])):
        found = normalize(norm, x)
    assert keras.backend.standardize_dtype(found.dtype) == "float16"
    expected = keras.ops.convert_to_numpy(norm(x)).astype("float32")
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found).astype("float32"), expected, rtol=5e-3, atol=5e-3)


def test_blocks_use_it_and_only_while_they_are_told(random, monkeypatch):
    x = keras.ops.convert_to_tensor(random.normal(size=(2, 3, 8)).astype("float32"))
    for block_class, inputs in ((EncoderBlock, (x,)), (DecoderBlock, (x, x))):
        for norm in ("pre", "post"):
            block = block_class(num_heads=2, feed_forward_dim=16, norm=norm)
            expected = block(*inputs)
            norms = lean_norms([block])
            assert len(norms) == (2 if block_class is EncoderBlock else 3)
            with use_kernels(norms), monkeypatch.context() as patch:
                patch.setattr(keras.layers.LayerNormalization, "call", None)  # Nobody calls it.
                found = block(*inputs)
            np.testing.assert_allclose(
                keras.ops.convert_to_numpy(found), keras.ops.convert_to_numpy(expected), rtol=1e-4, atol=1e-5
            )


def test_what_is_not_plain_is_left_alone():
    class Other(keras.layers.LayerNormalization):
        """Not known to be a plain normalization."""

    others = [
        Other(),
        keras.layers.LayerNormalization(center=False),
        keras.layers.LayerNormalization(scale=False),
        keras.layers.LayerNormalization(axis=[1]),
        keras.layers.RMSNormalization(),
    ]
    for norm in others:
        norm.build((2, 8, 8))
    assert lean_norms(others) == {}
