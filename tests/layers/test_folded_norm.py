"""Normalizations folded into the kernels around them: the same numbers."""

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.attention import attention_scores
from keras_transformer.layers import DecoderBlock
from keras_transformer.layers.folded_norm import fold_norms
from keras_transformer.layers.spaced_kernel import spaced_kernels, use_kernels
from tests.user_blocks import RotaryDecoderBlock

TARGET_IDS = np.array([[1, 5, 6, 7], [1, 8, 2, 0]])
SOURCE_IDS = np.array([[4, 5, 6, 2], [9, 2, 0, 0]])


def model_with_weights(random, **fields):
    """A small model none of whose weights is 0 or 1, as those of normalizations are at first."""
    config = kt.TransformerConfig(
        **{
            "vocabulary_size": 12,
            "model_dim": 128,
            "feed_forward_dim": 512,
            "num_heads": 2,
            "num_encoder_layers": 1,
            "num_decoder_layers": 2,
            "norm": "pre",
            **fields,
        }
    )
    model = kt.Transformer(config)
    for variable in model.weights:
        variable.assign(keras.ops.cast(variable + 0.2 * random.normal(size=variable.shape), variable.dtype))
    return model


def folded_kernels(model) -> dict:
    return fold_norms(model.parts.decoder_blocks, spaced_kernels(model.parts.decoder_blocks))


def logits_of(model):
    return keras.ops.convert_to_numpy(model({"source_ids": SOURCE_IDS, "target_ids": TARGET_IDS}))


@pytest.mark.parametrize("fields", [{}, {"use_bias": False}, {"positions": "learned", "tie": "none"}, {"activation": "gelu"}])
def test_the_same_logits(fields, random):
    model = model_with_weights(random, **fields)
    expected, before = logits_of(model), [keras.ops.convert_to_numpy(one) for one in model.weights]
    kernels = folded_kernels(model)
    assert all(id(block.feed_forward_norm) in kernels for block in model.parts.decoder_blocks)
    with use_kernels(kernels):
        found = logits_of(model)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())
    for weight, old in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), old)
    np.testing.assert_array_equal(logits_of(model), expected)


def test_the_same_step_by_step(random):
    model = model_with_weights(random)
    expected = logits_of(model)
    with use_kernels(folded_kernels(model)):
        cache = model.make_cache(model.encode(SOURCE_IDS), source_mask=SOURCE_IDS != 0, length=4)
        for position in range(4):
            step, cache = model.decode_step(TARGET_IDS[:, position : position + 1], np.array([position]), cache)
            found = keras.ops.convert_to_numpy(step)[:, 0]
            np.testing.assert_allclose(found, expected[:, position], rtol=2e-4, atol=2e-4 * np.abs(expected).max())


def test_captured_attention_is_the_same(random):
    model = model_with_weights(random)
    expected = attention_scores(model, SOURCE_IDS, TARGET_IDS)
    with use_kernels(folded_kernels(model)):
        found = attention_scores(model, SOURCE_IDS, TARGET_IDS)
    for kind, scores in expected.items():
        np.testing.assert_allclose(found[kind], scores, atol=1e-4, err_msg=kind)


def test_a_mean_that_dwarfs_the_rest_is_taken_away(random):
    block = DecoderBlock(feed_forward_dim=16, num_heads=2, norm="pre")
    block.build((None, None, 8), (None, None, 8))
    x, encoded = (random.normal(size=(1, 3, 8)).astype("float32") for _ in range(2))
    with use_kernels(fold_norms([block], spaced_kernels([block]))):
        found, shifted = (keras.ops.convert_to_numpy(block(x + mean, encoded)) for mean in (0.0, 64.0))
    np.testing.assert_allclose(found.mean(axis=-1), 0.0, atol=1e-5)
    np.testing.assert_allclose(shifted, found, atol=1e-4)


def other_decoder(kind: str):
    """Blocks of which one, or a part of it, is not what folding knows."""
    options = {"feed_forward_dim": 16, "num_heads": 2, "norm": "pre"}
    first = DecoderBlock(**options)
    second = {
        "after the sublayers": lambda: DecoderBlock(**{**options, "norm": "post"}),
        "another attention": lambda: RotaryDecoderBlock(**options),
        "another dtype": lambda: DecoderBlock(**options, dtype="mixed_bfloat16"),
    }[kind]()
    for block in (first, second):
        block.build((None, None, 8), (None, None, 8))
    return [first, second]


@pytest.mark.parametrize("kind", ["after the sublayers", "another attention", "another dtype"])
def test_all_blocks_or_none(kind):
    blocks = other_decoder(kind)
    kernels = spaced_kernels(blocks)
    assert fold_norms(blocks, kernels) == kernels


def test_no_blocks_nothing_to_fold():
    assert fold_norms([], {}) == {}
