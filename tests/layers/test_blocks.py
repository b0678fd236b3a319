import keras
import numpy as np
import pytest

from keras_transformer.layers import DecoderBlock, EncoderBlock, SinusoidalPositionalEncoding, TiedLogits, TokenEmbedding
from keras_transformer.models import Transformer
from tests.gradients import numpy_of
from tests.user_blocks import small_config

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
    for sizes in ({"num_heads": 0}, {"feed_forward_dim": 0}, {"key_dim": 0}, {"value_dim": -1}, {"num_heads": 1.5}):
        with pytest.raises(ValueError, match=f"`{next(iter(sizes))}` must be a positive integer"):
            EncoderBlock(**{"feed_forward_dim": 16, "num_heads": 2, **sizes})


def causal(length):
    return np.tri(length, dtype=bool)


def test_encoder_block_with_a_causal_mask_hides_the_future(random):
    block = EncoderBlock(16, 2)
    x = normal(random, B, S, M)
    output = numpy_of(block(x, use_causal_mask=True))
    np.testing.assert_allclose(output, numpy_of(block(x, attention_mask=causal(S))), atol=1e-6)
    assert np.abs(output - numpy_of(block(x))).max() > 1e-3


def test_sentences_side_by_side_in_a_row_are_encoded_as_each_alone(random):
    block = EncoderBlock(16, 2)
    first, second = normal(random, 1, 4, M), normal(random, 1, 2, M)
    sentence = np.array([0, 0, 0, 0, 1, 1])
    packed = numpy_of(block(np.concatenate([first, second], axis=1), attention_mask=(sentence[:, None] == sentence)[None]))
    np.testing.assert_allclose(packed[:, :4], numpy_of(block(first)), atol=1e-5)
    np.testing.assert_allclose(packed[:, 4:], numpy_of(block(second)), atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_attention_mask_joins_the_mask_that_keras_attached(random, norm):
    ids = keras.Input((S,), dtype="int32")
    mask = random.random((S, S)) > 0.3
    embedded = keras.layers.Embedding(20, M, mask_zero=True)(ids)
    block = EncoderBlock(16, 2, norm=norm)
    model = keras.Model(ids, block(embedded, attention_mask=mask, return_attention_scores=True))
    _, scores = model(np.array([[5, 6, 7, 0, 0, 0]]))
    assert ((numpy_of(scores) > 0) == (mask & (np.arange(S) < 3)))[:, :, :3].all()


def test_sentences_side_by_side_in_a_row_are_decoded_as_each_alone(random):
    block = DecoderBlock(16, 2)
    first, second, encoded = normal(random, 1, 4, M), normal(random, 1, 2, M), normal(random, 1, 5, M)
    sentence, positions = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 1, 2, 3, 0, 1])
    together = np.concatenate([first, second], axis=1)
    packed = numpy_of(block(together, encoded, attention_mask=sentence[:, None] == sentence, positions=positions))
    np.testing.assert_allclose(packed[:, :4], numpy_of(block(first, encoded)), atol=1e-5)
    np.testing.assert_allclose(packed[:, 4:], numpy_of(block(second, encoded)), atol=1e-5)


@pytest.mark.parametrize(
    ("block_class", "name"),
    [
        (EncoderBlock, "mask"),
        (EncoderBlock, "attention_mask"),
        (DecoderBlock, "encoded_mask"),
        (DecoderBlock, "attention_mask"),
    ],
)
def test_masks_of_floats_are_refused(block_class, name):
    for tensor in (lambda *shape: np.ones(shape, "float32"), lambda *shape: keras.KerasTensor(shape)):
        inputs = [tensor(B, S, M)] * (1 if block_class is EncoderBlock else 2)
        with pytest.raises(ValueError, match=f"`{name}` must be boolean"):
            block_class(16, 2)(*inputs, **{name: tensor(B, S)})


def test_masks_of_floats_are_refused_by_models():
    model = Transformer(small_config(num_encoder_layers=1, num_decoder_layers=1))
    ids, mask = np.array([[5, 6, 2]]), np.ones((1, 3), "float32")
    with pytest.raises(ValueError, match="`mask` must be boolean"):
        model.encode(ids, mask)
    cache = model.make_cache(model.encode(ids), mask, length=3)
    with pytest.raises(ValueError, match="`encoded_mask` must be boolean"):
        model.decode_step(ids[:, :1], np.array([0]), cache)


def test_inputs_of_another_rank_are_refused():
    with pytest.raises(ValueError, match="expected ndim=3, found ndim=4"):
        EncoderBlock(16, 2)(np.ones((B, 2, S, M), "float32"))
    with pytest.raises(ValueError, match=r"`value` must have the shape \(2, any, 8\)"):
        DecoderBlock(16, 2)(np.ones((B, T, M), "float32"), np.ones((B, 2, S, M), "float32"))


def test_encoder_block_returns_its_scores(random):
    block = EncoderBlock(16, 2)
    x = normal(random, B, S, M)
    output, scores = block(x, return_attention_scores=True)
    np.testing.assert_allclose(numpy_of(output), numpy_of(block(x)), atol=1e-5)
    np.testing.assert_allclose(numpy_of(scores), numpy_of(block.self_attention(x, return_attention_scores=True)[1]), atol=1e-6)
    _, symbolic = block(keras.KerasTensor((None, S, M)), return_attention_scores=True)
    assert symbolic.shape == (None, 2, S, S) and symbolic.dtype == "float32"


def test_decoder_block_returns_its_scores_last(random):
    block = DecoderBlock(16, 2)
    x, encoded = normal(random, B, T, M), normal(random, B, S, M)
    output, own, cross = block(x, encoded, return_attention_scores=True)
    np.testing.assert_allclose(numpy_of(output), numpy_of(block(x, encoded)), atol=1e-5)
    assert tuple(own.shape) == (B, 2, T, T) and tuple(cross.shape) == (B, 2, T, S)
    np.testing.assert_allclose(numpy_of(own), numpy_of(own) * causal(T))
    cache = block.make_cache(encoded, length=T)
    step, cache, own_step, cross_step = block(x[:, :1], positions=np.array([0]), cache=cache, return_attention_scores=True)
    np.testing.assert_allclose(numpy_of(step), numpy_of(output)[:, :1], atol=1e-5)
    np.testing.assert_allclose(numpy_of(own_step), numpy_of(own)[:, :, :1], atol=1e-6)
    np.testing.assert_allclose(numpy_of(cross_step), numpy_of(cross)[:, :, :1], atol=1e-6)


def test_symbolic_shapes_of_the_scores():
    block = DecoderBlock(16, 2)
    x, encoded = keras.KerasTensor((None, T, M)), keras.KerasTensor((None, S, M))
    output, own, cross = block(x, encoded, return_attention_scores=True)
    assert (output.shape, own.shape, cross.shape) == ((None, T, M), (None, 2, T, T), (None, 2, T, S))
    cache = {
        "self_attention": {name: keras.KerasTensor((None, 2, 9, 4)) for name in ("key", "value")},
        "cross_attention": {name: keras.KerasTensor((None, 2, S, 4)) for name in ("fixed_key", "fixed_value")},
    }
    results = block(keras.KerasTensor((None, 1, M)), cache=cache, return_attention_scores=True)
    assert [x.shape for x in results[2:]] == [(None, 2, 1, 9), (None, 2, 1, S)]


@pytest.mark.parametrize("lengths", [(0, S), (T, 0), (0, 0)])
def test_nothing_to_read_or_to_write(lengths):
    target, source = (np.ones((B, length, M), "float32") for length in lengths)
    assert tuple(EncoderBlock(16, 2)(source).shape) == source.shape
    output = numpy_of(DecoderBlock(16, 2)(target, source))
    assert output.shape == target.shape and np.isfinite(output).all()


def test_a_cache_wants_a_built_block():
    with pytest.raises(ValueError, match="`make_cache` needs what `build` makes"):
        DecoderBlock(16, 2).make_cache(np.ones((B, S, M), "float32"), length=3)


# Decoder-only models.


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_decoder_block_without_cross_attention_is_two_residual_sublayers(random, norm):
    block, encoder = DecoderBlock(16, 2, norm=norm, cross_attention=False), EncoderBlock(16, 2, norm=norm)
    x = normal(random, B, T, M)
    output = numpy_of(block(x))
    encoder.build(x.shape)
    assert [v.path.split("/", 1)[1] for v in block.weights] == [v.path.split("/", 1)[1] for v in encoder.weights]
    encoder.set_weights(block.get_weights())
    np.testing.assert_allclose(output, numpy_of(encoder(x, use_causal_mask=True)), atol=1e-5)
    assert DecoderBlock.from_config(block.get_config()).has_cross_attention is False


def test_decoder_block_without_cross_attention_has_a_cache(random):
    block = DecoderBlock(16, 2, cross_attention=False)
    x = normal(random, B, T, M)
    full, own = block(x, return_attention_scores=True)
    cache = block.make_cache(None, length=T, batch_size=B)
    assert set(cache) == {"self_attention"}
    for t in range(T):
        step, cache, scores = block(x[:, t : t + 1], positions=np.array([t]), cache=cache, return_attention_scores=True)
        np.testing.assert_allclose(numpy_of(step), numpy_of(full)[:, t : t + 1], atol=1e-5)
        np.testing.assert_allclose(numpy_of(scores), numpy_of(own)[:, :, t : t + 1], atol=1e-6)
    with pytest.raises(ValueError, match="room for positions from 0 to 4"):
        block(x[:, :1], positions=np.array([T]), cache=cache)
    with pytest.raises(ValueError, match="a cache needs `batch_size`, the number of sentences"):
        block.make_cache(None, length=T)


@pytest.mark.parametrize("tensor", [lambda *shape: np.ones(shape, "float32"), lambda *shape: keras.KerasTensor(shape)])
def test_an_encoders_output_is_given_to_those_that_look_at_it(tensor):
    with pytest.raises(ValueError, match=r"needs `encoded`.* make it with `cross_attention=False`"):
        DecoderBlock(16, 2)(tensor(B, T, M))
    with pytest.raises(ValueError, match=r"Leave `encoded` out.* Received: encoded of shape \(2, 6, 8\)"):
        DecoderBlock(16, 2, cross_attention=False)(tensor(B, T, M), tensor(B, S, M))
    block = DecoderBlock(16, 2)
    block.build((None, None, M), (None, None, M))
    with pytest.raises(ValueError, match="needs `encoded`"):
        block.make_cache(None, length=3, batch_size=B)


def language_model(vocabulary_size, length):
    ids = keras.Input((length,), dtype="int32")
    embedding, positions = TokenEmbedding(vocabulary_size, 16), SinusoidalPositionalEncoding()
    blocks = [DecoderBlock(32, 2, dropout=0.0, cross_attention=False, name=f"block_{i}") for i in range(2)]
    logits = TiedLogits(embedding)
    x = positions(embedding(ids))
    for block in blocks:
        x = block(x)
    return keras.Model(ids, logits(x)), (embedding, positions, blocks, logits)


def continue_by_steps(parts, ids, length):
    """Appends the likeliest tokens to ids (B, T), one cached step at a time."""
    embedding, positions, blocks, logits = parts
    caches = [block.make_cache(None, length, batch_size=len(ids)) for block in blocks]
    steps = []
    for t in range(length - 1):
        x = positions(embedding(ids[:, t : t + 1]), positions=np.array([t]))
        for i, block in enumerate(blocks):
            x, caches[i] = block(x, positions=np.array([t]), cache=caches[i])
        steps.append(numpy_of(logits(x)))
        if t + 1 == ids.shape[1]:
            ids = np.concatenate([ids, steps[-1].argmax(-1)], axis=1)
    return ids, np.concatenate(steps, axis=1)


def test_a_language_model_learns_to_count_and_decodes_with_its_caches_as_without(random):
    vocabulary_size, length = 7, 8
    model, parts = language_model(vocabulary_size, None)
    sequences = (np.arange(length + 1) + np.arange(vocabulary_size)[:, None]) % vocabulary_size  # 0 1 2 ..., 1 2 3 ..., ...
    model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    history = model.fit(sequences[:, :-1], sequences[:, 1:], epochs=40, verbose=0)
    assert history.history["loss"][-1] < 0.1 < history.history["loss"][0]

    prompts = sequences[:, :2]
    written, step_logits = continue_by_steps(parts, prompts, length)
    assert (written == sequences[:, :length]).all()
    np.testing.assert_allclose(step_logits, numpy_of(model(written))[:, :-1], atol=1e-4)
    uncached = np.pad(
        prompts, ((0, 0), (0, length - 2))
    )  # What stands behind the next token is its future: it counts for nothing.
    for t in range(2, length):
        uncached[:, t] = numpy_of(model(uncached))[:, t - 1].argmax(-1)
    assert (uncached == written).all()


def test_a_language_model_is_saved_and_loaded(random, tmp_path):
    model, _ = language_model(7, None)
    ids = random.integers(0, 7, (2, 5))
    model.save(tmp_path / "model.keras")
    np.testing.assert_allclose(
        numpy_of(keras.saving.load_model(tmp_path / "model.keras")(ids)), numpy_of(model(ids)), atol=1e-6
    )
