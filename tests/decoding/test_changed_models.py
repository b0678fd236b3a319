"""Models that change after they were used: answers are those of the model as it is now."""

import numpy as np
import pytest

import keras_transformer as kt

TEXTS = ["eins zwei drei", "Haus Baum"]


@pytest.fixture
def translator(random):
    tokenizer = kt.Tokenizer.train(iter([*TEXTS, "Straße müde breit"] * 9), vocabulary_size=290)
    sizes = {"model_dim": 16, "feed_forward_dim": 32, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    model = kt.Transformer(kt.TransformerConfig(vocabulary_size=tokenizer.vocabulary_size, **sizes))
    give_weights(model.weights, random)
    return kt.Translator(model, tokenizer, kt.SearchOptions(beam_size=1, max_length=4))


def give_weights(variables, random):
    for variable in variables:
        variable.assign(random.normal(size=variable.shape) * 0.5)


def low_rank_updates(model, random):
    model.enable_lora(rank=2)
    give_weights(model.trainable_variables, random)


def eight_bits(model, random):
    model.quantize("int8")


def answers(translator) -> list:
    found = translator.translate(TEXTS, return_scores=True)
    return [*(one.score for one in found), *translator.score(TEXTS, TEXTS[::-1])]


@pytest.mark.parametrize("change", [low_rank_updates, eight_bits])
def test_answers_are_those_of_the_changed_model(translator, random, change):
    before = answers(translator)
    change(translator.model, random)
    after = answers(translator)
    np.testing.assert_allclose(after, answers(kt.Translator(translator.model, translator.tokenizer, translator.options)))
    assert np.abs(np.subtract(after, before)).min() > 1e-4
    for variable in translator.model.trainable_variables:
        variable.assign(variable * 1.5)
    assert np.abs(np.subtract(answers(translator), after)).min() > 1e-4, "Newer weights are used as well"
