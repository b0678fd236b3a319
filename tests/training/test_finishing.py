"""What a run knows of its languages."""

from pathlib import Path

import pytest

import keras_transformer as kt
from training.corpora import SplitPairs, Splits, find_splits
from training.finishing import languages_of
from training.recipe_tables import DataTable


@pytest.mark.parametrize(
    ("source", "target", "codes"),
    [
        ("train.en", "train.de", ["en", "de"]),
        ("train.en.gz", "train.de.gz", ["en", "de"]),
        ("train.en", "train.en", None),
        ("train.src", "train.tgt", None),
        ("english", "german", None),
        ("pairs.tsv", None, None),
    ],
)
def test_files_are_called_by_their_languages(source, target, codes):
    pairs = SplitPairs("train", [Path(source)], None if target is None else [Path(target)])
    assert languages_of(Splits(pairs, None, {})) == codes


def test_built_in_corpora_know_theirs():
    assert languages_of(find_splits(DataTable(corpus="reverse"))) is None
    corpus = kt.data.pronouns(num_train=4000, num_validation=2, num_test=2)
    assert languages_of(Splits(SplitPairs("train", corpus.train), None, {}, corpus)) == ["en", "de"]
