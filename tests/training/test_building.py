"""What a recipe is turned into: batches that its model can take."""

import pytest

from training.building import training_set, validation_set
from training.corpora import find_splits, make_tokenizer
from training.devices import Devices
from training.recipe import read_recipe


@pytest.fixture
def parts(recipe):
    """The pairs of a recipe, its tokenizer, and the most positions that one of its sentences takes."""
    table = read_recipe(recipe)
    splits = find_splits(table.data)
    tokenizer = make_tokenizer(splits.train, table.tokenizer)
    pairs = splits.train.pairs()
    return splits, tokenizer, 1 + max(len(tokenizer.encode(line)) for line in [*pairs.source, *pairs.target])


def test_batches_that_are_longer_than_learned_positions(recipe, parts):
    splits, tokenizer, longest = parts
    short = read_recipe(recipe, [f"model.max_length={longest - 1}"])
    message = rf"up to {longest} positions, and the model learns {longest - 1}. Raise model.max_length to {longest}, or lower"
    with pytest.raises(ValueError, match=message):
        training_set(short, splits.train, tokenizer, Devices())
    with pytest.raises(ValueError, match=r"Raise model.max_length to"):
        validation_set(read_recipe(recipe, ["model.max_length=3"]), splits.validation, tokenizer, Devices())


@pytest.mark.parametrize("setting", ["model.max_length={0}", "data.max_length={2}", "positions=sinusoidal"])
def test_what_the_message_advises_helps(recipe, parts, setting):
    splits, tokenizer, longest = parts
    setting = setting.format(longest, longest - 1, longest - 2)
    mended = read_recipe(recipe, [f"model.max_length={longest - 1}", setting])
    assert len(training_set(mended, splits.train, tokenizer, Devices())) > 0
