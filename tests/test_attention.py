"""Capturing attention: the right numbers, from any model, without touching it."""

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.attention import KINDS, Attention, attention_scores
from keras_transformer.attention.capture import watch
from tests.gradients import numpy_of
from tests.user_blocks import rotary_transformer, small_config
from tests.visualization.by_hand import ByHand

SOURCE = np.array([[5, 6, 7, 9, 2, 0], [9, 2, 0, 0, 0, 0], [11, 12, 13, 14, 15, 2]], "int32")
TARGET = np.array([[1, 8, 9, 4], [1, 5, 0, 0], [1, 6, 6, 20]], "int32")


def randomize(model, seed=3):
    """Gives a model weights with which heads differ, biases and normalizations included."""
    random = np.random.default_rng(seed)
    for variable in model.weights:
        offset = 1.0 if variable.path.endswith("gamma") else 0.0
        scale = 0.3 if len(variable.shape) == 1 else 1.3 * variable.shape[0] ** -0.5
        variable.assign(offset + scale * random.normal(size=variable.shape))
    return model


@pytest.fixture(scope="module")
def translator():
    lines = ["eins zwei drei vier fünf", "the quick brown fox", "Haus Baum Straße müde"] * 9
    tokenizer = kt.Tokenizer.train(iter(lines), vocabulary_size=320)
    sizes = {"num_encoder_layers": 1, "num_decoder_layers": 1, "max_length": 40}
    config = small_config(vocabulary_size=tokenizer.vocabulary_size, **sizes)
    return kt.Translator(randomize(kt.Transformer(config)), tokenizer, kt.SearchOptions(beam_size=3, extra_length=5))


def real_rows(scores, kind):
    """Takes the rows of real tokens, `(rows, layers, N, keys)`; those of padding mean nothing."""
    return np.moveaxis(scores, 3, 1)[(SOURCE if kind == "encoder_self" else TARGET) != 0]


@pytest.mark.proof("Attention rows sum to 1 over real keys, are 0 on masked ones, and equal what numpy makes of the weights")
def test_scores_by_hand(size, seen):
    differences, sums = [], []
    for seed in range(size(1, full=20)):
        model = randomize(kt.Transformer(small_config(num_heads=(4, 2), num_encoder_layers=3)), seed)
        found, wanted = attention_scores(model, SOURCE, TARGET), ByHand(model).scores(SOURCE, TARGET)
        assert found["encoder_self"].shape == (3, 3, 4, 6, 6)
        assert found["decoder_self"].shape == (3, 2, 2, 4, 4)
        assert found["cross"].shape == (3, 2, 2, 4, 6)
        assert all(scores.dtype == np.float32 for scores in found.values())
        differences.append(max(np.abs(real_rows(found[kind], kind) - real_rows(wanted[kind], kind)).max() for kind in KINDS))
        sums.append(max(np.abs(real_rows(found[kind], kind).sum(-1) - 1).max() for kind in KINDS))
        hidden = SOURCE == 0
        assert (np.moveaxis(found["encoder_self"], -1, 1)[hidden] == 0).all()
        assert (np.moveaxis(found["cross"], -1, 1)[hidden] == 0).all()
        assert (found["decoder_self"][..., ~np.tri(4, dtype=bool)] == 0).all()
    seen(f"{len(sums)} models: largest difference {max(differences):.1e}, rows sum to 1 within {max(sums):.1e}")
    assert max(differences) < 1e-5 and max(sums) < 1e-6


@pytest.mark.parametrize("make", [lambda: kt.Transformer(small_config(norm="pre", dropout=0.5)), rotary_transformer])
def test_each_layer_is_what_the_layer_itself_says(make):
    model = make()
    found = attention_scores(model, SOURCE, TARGET)
    x = model.parts.source_positions(model.parts.source_embedding(SOURCE))
    for layer, block in enumerate(model.parts.encoder_blocks):
        inputs = block.enter(x, block.self_attention_norm)
        _, scores = block.self_attention(inputs, key_mask=SOURCE != 0, return_attention_scores=True)
        wanted = real_rows(numpy_of(scores)[:, None], "encoder_self")
        np.testing.assert_allclose(real_rows(found["encoder_self"][:, layer : layer + 1], "encoder_self"), wanted, atol=1e-6)
        x = block(x, mask=SOURCE != 0)


@pytest.mark.proof("The attention of a beam translation is that of the cached steps which wrote it, and of teacher forcing")
def test_steps_and_teacher_forcing_agree(translator, size, seen):
    random = np.random.default_rng(0)
    words = ["eins", "zwei", "Haus", "müde", "fox", "Straße"]
    texts = [" ".join(random.choice(words, random.integers(1, 7))) for _ in range(size(1, full=30))]
    differences = []
    for text in texts:
        attention = translator.attend(text)
        pieces = {
            piece: id for id, piece in enumerate(translator.tokenizer.tokens(range(translator.tokenizer.vocabulary_size)))
        }
        source, target = ([pieces[token] for token in tokens] for tokens in (attention.source_tokens, attention.target_tokens))
        assert attention.output_tokens == translator.translate(text, return_scores=True).tokens
        for kind, weights in cached_steps(translator.model, source, target).items():
            differences.append(np.abs(attention[kind] - weights).max())
    seen(f"{len(texts)} sentences, beam 3: largest difference {max(differences):.1e}")
    assert max(differences) < 1e-5


def cached_steps(model, source, target):
    """Runs the decoder token by token with a cache, and returns its attention, `(layers, N, queries, keys)`."""
    parts, watchers = watch(model)
    source_ids = np.array([source], "int32")
    encoded = parts.encode(source_ids, parts.source_mask(source_ids), training=False)
    cache = model.make_cache(encoded, source_ids != model.config.pad_id, length=32)
    for position, id in enumerate(target):
        _, cache = parts.decode_step(np.array([[id]], "int32"), np.array([position], "int32"), cache)
    found = {"encoder_self": np.stack([numpy_of(watcher.scores())[0] for watcher in watchers["encoder_self"]])}
    for kind in ("decoder_self", "cross"):
        steps = [[numpy_of(step)[0] for step in watcher.calls] for watcher in watchers[kind]]  # layers of (N, 1, keys)
        found[kind] = np.stack([np.concatenate(layer, axis=1) for layer in steps])
    return {**found, "decoder_self": found["decoder_self"][..., : len(target)]}  # The rest of the cache is empty.


def test_a_given_target(translator):
    found = translator.attend("eins zwei", "Haus Baum")
    assert found.source == "eins zwei" and found.target == "Haus Baum"
    assert found.source_tokens[-1] == found.output_tokens[-1] == "</s>" and found.target_tokens[0] == "<s>"
    assert found.target_tokens[1:] == found.output_tokens[:-1]
    best = translator.attend("eins zwei drei")
    assert best.output_tokens == translator.translate("eins zwei drei", return_scores=True).tokens
    again = translator.attend("eins zwei drei", best.target)
    if again.target_tokens == best.target_tokens:
        np.testing.assert_allclose(again.cross, best.cross, atol=1e-6)
    drawing = {"temperature": 2.0, "prefix": "Haus"}
    drawn = [translator.attend("eins zwei", seed=seed, **drawing) for seed in (4, 4, 5)]
    assert all(one.target.startswith("Haus") for one in drawn)
    drawn = [one.output_tokens for one in drawn]
    assert drawn[0] == drawn[1] == translator.translate("eins zwei", seed=4, return_scores=True, **drawing).tokens
    assert drawn[0] != drawn[2]


def test_learned_positions_up_to_the_last():
    model = kt.Transformer(small_config(positions="learned", max_length=7))
    source = np.array([[5, 6, 7, 8, 9, 10, 2]])
    scores = attention_scores(model, source, source)
    assert scores["cross"].shape == (1, 2, 4, 7, 7)
    np.testing.assert_allclose(scores["cross"].sum(-1), 1.0, atol=1e-5)


def test_any_text(translator):
    for text in ("", " \t", "\x00", "漢字🙂", "<s> </s> <pad>", "$a_b$ <script>", b"caf\xe9"):
        found = translator.attend(text, max_length=4)
        for kind in KINDS:
            np.testing.assert_allclose(found[kind].sum(-1), 1.0, atol=1e-5)
        assert found.words().average().cross.shape[:2] == (1, 1)
        if not text.strip():
            assert found.source_tokens == ["</s>"] and found.output_tokens == ["</s>"]


def test_one_text_at_a_time(translator):
    with pytest.raises(ValueError, match=r"`attend` takes one text, and one translation of it. Received: \['a'\]"):
        translator.attend(["a"])
    with pytest.raises(TypeError, match="beams"):
        translator.attend("a", "b", beams=3)


def test_the_model_is_not_touched(translator):
    model = translator.model
    before = numpy_of(model({"source_ids": SOURCE, "target_ids": TARGET}))
    blocks = [*model.parts.encoder_blocks, *model.parts.decoder_blocks]
    attributes = [dict(vars(block)) for block in blocks]
    translator.attend("eins zwei", "Haus")
    for block, names in zip(blocks, attributes, strict=True):
        assert vars(block).keys() == names.keys() and all(vars(block)[name] is value for name, value in names.items())
        assert type(block.self_attention) is kt.layers.MultiHeadAttention
    np.testing.assert_array_equal(numpy_of(model({"source_ids": SOURCE, "target_ids": TARGET})), before)


def test_softmax_in_float32_under_every_policy(policy):
    model = kt.Transformer(small_config(), dtype=policy)
    for kind, scores in attention_scores(model, SOURCE, TARGET).items():
        assert scores.dtype == np.float32
        np.testing.assert_allclose(real_rows(scores, kind).sum(-1), 1.0, atol=1e-5)


# Blocks and attention layers of a user's own.


class KerasAttentionBlock(kt.layers.EncoderBlock):
    """A block with Keras' own attention, which has to be called in another way."""

    def make_self_attention(self, model_dim):
        return keras.layers.MultiHeadAttention(self.num_heads, model_dim // self.num_heads, name="self_attention")

    def build(self, input_shape):
        self.self_attention = self.make_self_attention(input_shape[-1])
        self.self_attention.build(input_shape, input_shape)
        self.self_attention_norm = self.make_norm("self_attention_norm")
        self.self_attention_norm.build(input_shape)

    def call(self, inputs, mask=None, training=None):
        hidden = None if mask is None else mask[:, None, :]
        return self.self_attention_norm(inputs + self.self_attention(inputs, inputs, attention_mask=hidden, training=training))


class BlindAttention(kt.layers.MultiHeadAttention):
    def attend(self, *args, return_scores=False, **kwargs):
        context, _ = super().attend(*args, return_scores=return_scores, **kwargs)
        return context, None


class BlindBlock(kt.layers.EncoderBlock):
    def make_self_attention(self, model_dim):
        return self.make_attention(model_dim, BlindAttention, name="self_attention")


class MutedAttention(keras.layers.Layer):
    def call(self, query, key_mask=None, training=None):
        return query


class MutedBlock(kt.layers.EncoderBlock):
    def make_self_attention(self, model_dim):
        return MutedAttention(name="self_attention")


class TwiceBlock(kt.layers.EncoderBlock):
    def call(self, inputs, mask=None, training=None):
        return super().call(super().call(inputs, mask=mask, training=training), mask=mask, training=training)


class OtherNameBlock(kt.layers.EncoderBlock):
    def build(self, input_shape):
        self.mixing = keras.layers.Dense(input_shape[-1], name="mixing")
        self.mixing.build(input_shape)

    def call(self, inputs, mask=None, training=None):
        return self.mixing(inputs)


class GrowingBlock(kt.layers.EncoderBlock):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{**kwargs, "num_heads": 4 if kwargs["name"].endswith("1") else 2})


def test_attention_of_keras():
    model = kt.Transformer(small_config(), encoder_block=KerasAttentionBlock)
    scores = attention_scores(model, SOURCE, TARGET)["encoder_self"]
    np.testing.assert_allclose(real_rows(scores, "encoder_self").sum(-1), 1.0, atol=1e-5)
    assert np.abs(np.moveaxis(scores, -1, 1)[SOURCE == 0]).max() < 1e-6


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (BlindBlock, r"encoder_block_0/self_attention cannot be seen: BlindAttention was asked for its scores"),
        (MutedBlock, r"MutedAttention.call takes no `return_attention_scores`"),
        (TwiceBlock, r"the block was expected to call it once. Received: 2 calls"),
        (OtherNameBlock, r"OtherNameBlock has no layer `self_attention`"),
        (GrowingBlock, r"the same number of heads to be seen in one array. Received for 'encoder_self': \[2, 4\]"),
    ],
)
def test_what_cannot_be_seen_is_said(block, message):
    model = kt.Transformer(small_config(), encoder_block=block)
    with pytest.raises(ValueError, match=message):
        attention_scores(model, SOURCE, TARGET)


def test_a_tokenizer_without_pieces(translator):
    class Plain:
        """A tokenizer of another kind: it can decode ids, and no more is known."""

        def decode(self, ids):
            return {5: "five"}.get(ids[0], "")

    assert kt.attention.token_names(Plain(), [5, 2]) == ["five", "<2>"]


def test_records_are_records(translator):
    found = translator.attend("eins zwei", "Haus")
    assert isinstance(found, Attention)
    assert f"encoder_self {found.encoder_self.shape}, decoder_self" in repr(found)
