"""Runs that start from the weights and the vocabulary of another model."""

import numpy as np
import pytest

import keras_transformer as kt
from training.building import config_for, make_model
from training.recipe import read_recipe
from training.run_folder import RunFolder
from training.trainer import own_tokenizer, train


@pytest.fixture
def start(recipe, tmp_path):
    """A translator of the recipe's shape, with a vocabulary that no recipe here would make."""
    tokenizer = kt.Tokenizer.train(["1 2 3", "one two three"], vocabulary_size=272)
    config = config_for(read_recipe(recipe), tokenizer).replace(dropout=0.2)
    translator = kt.Translator(kt.Transformer(config), tokenizer)
    translator.save(tmp_path / "start")
    return translator


def test_a_model_starts_from_weights_and_vocabulary(recipe, start, tmp_path):
    wanted = read_recipe(recipe, ["start_from=start", "epochs=1"])
    run = RunFolder("run")
    train(wanted, run, verbose=False)
    tokenizer = kt.load_tokenizer(run.tokenizer)
    assert tokenizer.vocabulary_size == 272
    model = make_model(wanted, tokenizer)
    assert model.config.dropout == 0.3
    for weights, expected in zip(model.get_weights(), start.model.get_weights(), strict=True):
        np.testing.assert_array_equal(weights, expected)
    trained = kt.Translator.load(run.translator).model.get_weights()
    moved = [np.abs(weights - expected).max() for weights, expected in zip(trained, start.model.get_weights(), strict=True)]
    assert 0 < max(moved) < 0.5  # A few small updates away.


def test_another_shape_is_an_error(recipe, start, tmp_path):
    wanted = read_recipe(recipe, ["start_from=start", "feed_forward_dim=64", "norm=pre"])
    with pytest.raises(ValueError, match=r"Set in the recipe feed_forward_dim = 32, norm = 'post'\. Received: "):
        make_model(wanted, start.tokenizer)


def test_nothing_to_start_from(recipe, tmp_path):
    wanted = read_recipe(recipe, ["start_from=nowhere"])
    with pytest.raises(FileNotFoundError, match=r"There is no translator in .*nowhere"):
        own_tokenizer(RunFolder(tmp_path), wanted, None)
