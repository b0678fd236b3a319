"""Banned tokens never occur, however few others are left, in any kind of search; what is forced against a ban is defined."""

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.decoding import Search, SearchOptions, compile_search
from tests.decoding import reference
from tests.decoding.models import END, hypotheses_of, inputs_of, make_model, random_sources, randomize
from tests.decoding.test_beam import assert_same

SIZE = 11
MAX_LENGTHS = [4, 6]
BUT_THE_END = [id for id in range(SIZE) if id != END]
KINDS = {
    "greedy": SearchOptions(beam_size=1),
    "beam": SearchOptions(beam_size=3, num_hypotheses=2),
    "first": SearchOptions(beam_size=3, num_hypotheses=3, stopping="first"),
    "sampling": SearchOptions(temperature=2.0),
    "rescaled": SearchOptions(beam_size=3, num_hypotheses=2, rescale=True),
    "mixed": SearchOptions(beam_size=3, num_hypotheses=3),
}


@pytest.fixture(scope="module")
def model():
    model = make_model(SIZE)
    randomize(model, 3)
    return model


def inputs_for(kind: str, source_ids, max_lengths=MAX_LENGTHS) -> dict:
    inputs = inputs_of(source_ids, max_lengths)
    if kind == "sampling":
        inputs["chances"] = np.random.default_rng(0).random((len(source_ids), 10), "float32")
    if kind == "mixed":  # The first sentence is searched greedily.
        inputs |= {"beam_sizes": np.array([1, 3], "int32"), "length_penalties": np.array([0.0, 0.6], "float32")}
    return inputs


def expected_hypotheses(kind: str, options: SearchOptions, model, row: list[int], number: int) -> list:
    follow, is_greedy = reference.PlainTransformer(model).next_log_probabilities(row), kind == "greedy"
    if kind == "mixed":
        options, is_greedy = options.override(length_penalty=[0.0, 0.6][number]), number == 0
    search = reference.greedy_search if is_greedy else reference.beam_search
    return search(follow, options, MAX_LENGTHS[number], END)[: options.num_hypotheses]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [(END,), (END, 5, 7)], ids=["the end", "two more"])
def test_the_tokens_that_are_left(model, kind, left):
    options = KINDS[kind].override(banned_ids=[id for id in range(SIZE) if id not in left])
    rows, source_ids = random_sources(0, (5, 2), SIZE)
    found = compile_search(model, options)(inputs_for(kind, source_ids))
    for number, row in enumerate(rows):
        hypotheses = hypotheses_of(found, number)
        assert hypotheses and {token for _, _, tokens in hypotheses for token in tokens} <= set(left)
        if left == (END,):
            assert [tokens for _, _, tokens in hypotheses] == [(END,)]
        if kind not in ("sampling", "rescaled"):
            assert_same(hypotheses, expected_hypotheses(kind, options, model, row, number))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"banned_ids": range(SIZE)}, "The end of translations cannot be banned"),
        ({"banned_ids": [5, END]}, "The end of translations cannot be banned"),
        ({"banned_ids": [5, 40, SIZE]}, r"`banned_ids` must be ids of the vocabulary.*from 0 to 10\..*\[11, 40\]"),
        ({"banned_ids": BUT_THE_END, "min_length": 1}, "leaves a translation no token but its end.*min_length=1"),
    ],
)
def test_bans_that_cannot_be_kept(model, options, message):
    for kind in KINDS.values():
        with pytest.raises(ValueError, match=message):
            Search(model, kind.override(**options))


@pytest.mark.parametrize("kind", ["greedy", "beam", "mixed"])
@pytest.mark.parametrize("rescale", [False, True], ids=["plain", "rescale"])
def test_what_is_forced_against_a_ban(model, kind, rescale):
    """An end at a limit below the minimum length; a prefix of a banned token. Where all is rescaled, they are certain."""
    options = KINDS[kind].override(banned_ids=[5], min_length=4, rescale=rescale, num_hypotheses=1)
    rows, source_ids = random_sources(0, (5, 2), SIZE)
    prefix = {"prefix_ids": np.array([[5], [7]], "int32"), "prefix_lengths": np.array([1, 1], "int32")}
    found = compile_search(model, options)({**inputs_for(kind, source_ids, [2, 1]), **prefix})
    for number, (row, prefix) in enumerate(zip(rows, (5, 7), strict=True)):
        ((_, log_probability, tokens),) = hypotheses_of(found, number)
        assert len(tokens) == [3, 2][number] and tokens[0] == prefix and tokens[-1] == END
        costs = found["token_log_probs"][number, 0, : len(tokens)]
        assert costs.sum() == pytest.approx(log_probability, abs=1e-4)
        if rescale:
            assert costs[-1] == 0.0 and (costs[0] == 0.0) == (prefix == 5)
        else:
            follow = reference.PlainTransformer(model).next_log_probabilities(row)
            expected = [follow(tokens[:place])[token] for place, token in enumerate(tokens)]
            assert costs.tolist() == pytest.approx(expected, abs=1e-4)


def test_cold_sampling_keeps_bans():
    """Where what is allowed has no chance beside what is banned, temperature divides numbers as low as those of bans."""
    model = make_model(SIZE)
    randomize(model, 3)
    bias = next(variable for variable in model.weights if variable.path.endswith("logits/bias"))
    bias.assign(keras.ops.convert_to_numpy(bias) + 3000.0 * np.isin(np.arange(SIZE), [0, 4]))
    _, source_ids = random_sources(0, (5, 2), SIZE)
    greedy = compile_search(model, SearchOptions(beam_size=1, banned_ids=[0, 4]))(inputs_of(source_ids, MAX_LENGTHS))
    for options in ({"temperature": 1e-6}, {"temperature": 1e6, "top_p": 1e-6}):
        drawn = compile_search(model, SearchOptions(banned_ids=[0, 4], **options))(inputs_for("sampling", source_ids))
        for number in range(2):
            assert hypotheses_of(drawn, number)[0][2] == hypotheses_of(greedy, number)[0][2]


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="exports compute on TensorFlow")
def test_a_served_translator_keeps_bans():
    import tensorflow as tf

    from keras_transformer.serving.signatures import ServedTranslator, served_limits

    tokenizer = kt.Tokenizer.train(iter(["eins zwei drei vier"] * 9), vocabulary_size=270)
    size = tokenizer.vocabulary_size
    model = make_model(size, max_length=12)
    randomize(model, 3)
    left = [END, *range(size - 9, size)]
    options = SearchOptions(extra_length=2, banned_ids=[id for id in range(size) if id not in left])
    translator = kt.Translator(model, tokenizer, options)
    expected = [
        *translator.translate(["eins zwei"], beam_size=1, return_scores=True),
        *translator.translate(["drei", ""], return_scores=True),
    ]
    assert {token for one in expected for token in one.tokens} <= set(tokenizer.tokens(left))
    served = ServedTranslator(translator, served_limits(translator), "cpu")
    given = tf.constant([1, 4, 9]), tf.constant([0.6] * 3), tf.constant([0] * 3)
    found = served.translate_with_options(tf.constant(["eins zwei", "drei", ""]), *given)
    assert [text.decode() for text in found["translation"].numpy()] == [one.text for one in expected]
    assert found["score"].numpy().tolist() == pytest.approx([one.score for one in expected], abs=1e-3)
