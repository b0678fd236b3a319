"""Beam search: equal to the plainest search there is, alone and in batches, with and without a cache, on every backend."""

import itertools

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.decoding import Search, SearchOptions, compile_search
from tests.decoding import reference
from tests.decoding.models import END, hypotheses_of, inputs_of, make_model, random_sources, randomize
from tests.user_blocks import rotary_transformer

SETTINGS = [
    SearchOptions(beam_size=2),
    SearchOptions(beam_size=4, num_hypotheses=4, min_length=2),
    SearchOptions(beam_size=3, length_penalty=1.0, penalty="power", stopping="heuristic"),
    SearchOptions(beam_size=3, num_hypotheses=2, length_penalty=-0.5, banned_ids=(5, 7)),
    SearchOptions(beam_size=4, num_hypotheses=2, length_penalty=0.0, stopping="first", min_length=1),
]


def assert_same(found, expected, tolerance=1e-4):
    """Compares hypotheses; another order or another one is accepted only where scores differ by less than the tolerance."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[0] == pytest.approx(theirs[0], abs=tolerance)
        if ours[2] != theirs[2]:
            twins = [other for other in expected if abs(other[0] - ours[0]) < tolerance]
            assert len(twins) > 1, (ours, theirs)
        else:
            assert ours[1] == pytest.approx(theirs[1], abs=tolerance)


@pytest.mark.proof("Beam search equals a plain Python beam search, ids and scores, on random models")
def test_equals_a_plain_search(size, seen):
    model, events, compared = make_model(), {}, 0
    settings = SETTINGS[: size(3, full=len(SETTINGS))]
    searches = [compile_search(model, options) for options in settings]
    for seed in range(size(24, full=200)):
        randomize(model, seed)
        plain = reference.PlainTransformer(model)
        options, search = settings[seed % len(settings)], searches[seed % len(settings)]
        rows, source_ids = random_sources(seed, (5, 2, 7), model.config.source_vocabulary_size)
        found = search(inputs_of(source_ids, [6, 4, 9]))
        for number, (row, max_length) in enumerate(zip(rows, [6, 4, 9], strict=True)):
            follow = plain.next_log_probabilities(row)
            expected = reference.beam_search(follow, options, max_length, END, events)[: options.num_hypotheses]
            assert_same(hypotheses_of(found, number), expected)
            compared += 1
    assert set(events) == {"a later hypothesis won", "near tie", "minimum length bit"}
    seen(f"{compared} sentences of {seed + 1} models; " + ", ".join(f"{name}: {count}" for name, count in events.items()))


@pytest.mark.proof("Beam search equals exhaustive enumeration where the beam is wide enough")
def test_equals_exhaustive_search(size, seen):
    model = make_model(vocabulary_size=6)
    options = SearchOptions(beam_size=40, length_penalty=0.8)
    search = compile_search(model, options)
    count = size(5, full=50)
    for seed in range(count):
        randomize(model, 1000 + seed)
        rows, source_ids = random_sources(seed, (3,), 6)
        follow = reference.PlainTransformer(model).next_log_probabilities(rows[0])
        best = reference.exhaustive_search(follow, options, 3, END)
        assert_same(hypotheses_of(search(inputs_of(source_ids, 3)), 0), [best])
    seen(f"{count} models, all {6**3} and more translations of up to 3 of 6 tokens")


@pytest.mark.proof(
    "A sentence gets the same hypotheses alone, in a batch of mixed lengths, with extra padding, and without a cache"
)
def test_alone_equals_in_a_batch(size, seen):
    count = size(24, full=500)
    options = SearchOptions(beam_size=4, num_hypotheses=2)
    model = make_model(vocabulary_size=30, feed_forward_dim=512)  # Wide enough for the layout that TensorFlow has for batches.
    randomize(model, 3)
    search = compile_search(model, options)
    lengths = np.random.default_rng(0).integers(1, 15, count)
    rows, source_ids = random_sources(1, lengths, 30, extra_padding=3)
    batched = [
        hypotheses
        for start in range(0, count, 64)
        for found in [search(inputs_of(source_ids[start : start + 64], lengths[start : start + 64] + 20))]
        for hypotheses in (hypotheses_of(found, row) for row in range(len(found["scores"])))
    ]
    plain = reference.PlainTransformer(model)
    close = 0
    for number, row in enumerate(rows):
        expected = reference.beam_search(plain.next_log_probabilities(row), options, int(lengths[number]) + 20, END)
        close += len(expected) > 1 and expected[0][0] - expected[1][0] < 0.01
        assert_same(batched[number], expected[:2])
        if number < size(2, full=40):
            alone = search(inputs_of(np.array([row], "int32"), int(lengths[number]) + 20))
            assert_same(hypotheses_of(alone, 0), batched[number])
    seen(f"{count} sentences in batches of 64 against an uncached float64 search; {close} with runners-up within 0.01")


def uncached_log_probabilities(model, source_ids, hypotheses) -> list[float]:
    """Returns the log-probabilities of hypotheses, computed in one pass without any cache."""
    longest = max(len(tokens) for _, _, tokens in hypotheses)
    labels = np.array([[*tokens, *[0] * (longest - len(tokens))] for _, _, tokens in hypotheses], "int32")
    target_ids = np.concatenate([np.full((len(labels), 1), model.config.start_id, "int32"), labels[:, :-1]], axis=1)
    logits = model({"source_ids": np.array([source_ids] * len(labels), "int32"), "target_ids": target_ids})
    log_probabilities = keras.ops.convert_to_numpy(keras.ops.log_softmax(logits))
    return [
        float(rows[np.arange(len(tokens)), tokens].sum())
        for rows, (_, _, tokens) in zip(log_probabilities, hypotheses, strict=True)
    ]


class OwnCacheAttention(kt.layers.MultiHeadAttention):
    """Attention that writes its cache in a way of its own, so that nothing is known of it."""

    def write_cache(self, cache, key, value, positions):
        return super().write_cache(cache, key, value, positions)


class OwnCacheBlock(kt.layers.DecoderBlock):
    def make_self_attention(self, model_dim):
        return self.make_attention(model_dim, OwnCacheAttention, name="self_attention")


class RelativeAttention(kt.layers.MultiHeadAttention):
    """Attention that favours what is near."""

    def score_bias(self, query_positions, key_positions):
        distance = keras.ops.cast(query_positions[:, None] - key_positions[None, :], "float32")
        return -0.3 * keras.ops.abs(distance)[None, None]


class RelativeBlock(kt.layers.DecoderBlock):
    def make_self_attention(self, model_dim):
        return self.make_attention(model_dim, RelativeAttention, name="self_attention")


@pytest.mark.proof("A user's rotary or relative attention, or one with a cache of its own, decodes as it does without a cache")
@pytest.mark.parametrize("kind", ["rotary", "relative", "own cache"])
def test_attention_of_the_users_own(kind, seen):
    config = make_model(vocabulary_size=9).config
    blocks = {"relative": RelativeBlock, "own cache": OwnCacheBlock}
    model = rotary_transformer(vocabulary_size=9) if kind == "rotary" else kt.Transformer(config, decoder_block=blocks[kind])
    options = SearchOptions(beam_size=3, num_hypotheses=3)
    rows, source_ids = random_sources(5, (4, 2), 9)
    found = compile_search(model, options)(inputs_of(source_ids, [20, 5]))
    assert Search(model, options).decoder.can_grow == (kind != "own cache")
    for number, row in enumerate(rows):
        hypotheses = hypotheses_of(found, number)
        assert len(hypotheses) == 3
        expected = uncached_log_probabilities(model, row, hypotheses)
        assert [log_probability for _, log_probability, _ in hypotheses] == pytest.approx(expected, abs=1e-4)
    seen(f"{kind}: the log-probabilities of 6 hypotheses of up to {max(found['lengths'].ravel())} tokens")


def test_new_weights_are_used_at_once():
    model = make_model()
    search = compile_search(model, SearchOptions(beam_size=2))
    _, source_ids = random_sources(0, (4,), 11)
    results = []
    for seed in (1, 2):
        randomize(model, seed)
        results.append(search(inputs_of(source_ids, 5))["log_probs"][0, 0])
    assert results[0] != results[1]


def test_the_log_probabilities_of_the_tokens_add_up():
    model = make_model()
    randomize(model, 4)
    _, source_ids = random_sources(0, (4, 6), 11)
    for beam_size in (1, 3):
        found = compile_search(model, SearchOptions(beam_size=beam_size))(inputs_of(source_ids, 40))
        for row in range(2):
            length = found["lengths"][row, 0]
            assert found["token_log_probs"][row, 0, :length].sum() == pytest.approx(found["log_probs"][row, 0], abs=1e-4)
            assert found["tokens"][row, 0, length - 1] == END


def test_a_prefix_is_kept():
    model = make_model()
    randomize(model, 4)
    _, source_ids = random_sources(0, (4, 6), 11)
    for beam_size in (1, 3):
        search = compile_search(model, SearchOptions(beam_size=beam_size))
        inputs = {
            **inputs_of(source_ids, 8),
            "prefix_ids": np.array([[7, 9, 4], [6, 0, 0]], "int32"),
            "prefix_lengths": np.array([3, 1], "int32"),
        }
        found = search(inputs)
        assert found["tokens"][0, 0, :3].tolist() == [7, 9, 4]
        assert found["tokens"][1, 0, 0] == 6


@pytest.mark.parametrize("beam_size", [1, 2])
def test_maximum_lengths(beam_size):
    """Around the places where caches grow, for a model that never ends by itself."""
    model = make_model()
    randomize(model, 5)
    bias = next(variable for variable in model.weights if variable.path.endswith("logits/bias"))
    bias.assign(keras.ops.convert_to_numpy(bias) - 30.0 * (np.arange(11) == END))
    max_lengths = np.array([0, 1, 3, 4, 15, 16, 17, 33, 61], "int32")
    rows, source_ids = random_sources(0, (4,) * len(max_lengths), 11)
    options = SearchOptions(beam_size=beam_size)
    found = compile_search(model, options)(inputs_of(source_ids, max_lengths))
    assert found["lengths"][:, 0].tolist() == (max_lengths + 1).tolist()
    plain = reference.PlainTransformer(model)
    for number in (7, 8):  # The two longest, whose caches have grown many times.
        expected = reference.beam_search(plain.next_log_probabilities(rows[number]), options, int(max_lengths[number]), END)
        assert_same(hypotheses_of(found, number), expected[:1])


def test_greedy_takes_the_best_token_each_time():
    model = make_model()
    search = compile_search(model, SearchOptions(beam_size=1))
    for seed in range(5):
        randomize(model, seed)
        rows, source_ids = random_sources(seed, (5,), 11)
        follow = reference.PlainTransformer(model).next_log_probabilities(rows[0])
        expected = reference.greedy_search(follow, SearchOptions(beam_size=1), 9, END)
        assert_same(hypotheses_of(search(inputs_of(source_ids, 9)), 0), expected)


# Sampling.


def expected_distribution(model, row, options):
    """Returns what the first token is drawn from."""
    log_probabilities = reference.PlainTransformer(model).next_log_probabilities(row)(())
    probabilities = np.exp(log_probabilities / options.temperature)
    probabilities /= probabilities.sum()
    order = np.argsort(-probabilities)
    kept = order[: options.top_k or len(order)]
    if options.top_p is not None:
        reached = np.cumsum(probabilities[kept]) - probabilities[kept]
        kept = kept[reached < options.top_p]
    limited = np.zeros_like(probabilities)
    limited[kept] = probabilities[kept]
    return limited / limited.sum()


@pytest.mark.proof("Sampled tokens occur as often as their probabilities say (chi-square)")
@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(temperature=1.0),
        SearchOptions(temperature=0.7, top_k=4),
        SearchOptions(temperature=1.3, top_p=0.8),
    ],
    ids=["plain", "top_k", "top_p"],
)
def test_frequencies_of_sampling(options, size, seen):
    draws = size(2_000, full=20_000)
    model = make_model()
    randomize(model, 8)
    rows, source_ids = random_sources(0, (5,), 11)
    search = compile_search(model, options)
    chances = np.random.default_rng(0).random((draws, 2), "float32")
    counts = np.zeros(11)
    for start in range(0, draws, 500):
        inputs = {**inputs_of(np.repeat(source_ids, 500, 0), 1), "chances": chances[start : start + 500]}
        counts += np.bincount(search(inputs)["tokens"][:, 0, 0], minlength=11)
    expected = draws * expected_distribution(model, rows[0], options)
    assert counts[expected == 0].sum() == 0
    real = expected > 0
    statistic = ((counts[real] - expected[real]) ** 2 / expected[real]).sum()
    degrees = real.sum() - 1
    limit = degrees + 4 * np.sqrt(2 * degrees) + 3  # Far beyond what chance would do.
    seen(f"{draws} draws, chi-square {statistic:.1f} with {degrees} degrees of freedom")
    assert statistic < limit


def test_every_setting_is_compared():
    """All stopping rules and both penalties are among the settings."""
    assert {options.stopping for options in SETTINGS} == {"bound", "heuristic", "first"}
    assert {options.penalty for options in SETTINGS} == {"google", "power"}
    assert all(a != b for a, b in itertools.combinations(SETTINGS, 2))
