"""From parallel corpora to batches for `model.fit`, and corpora to begin with."""

from keras_transformer.data.corpora import (
    Corpus,
    Pairs,
    exact_match,
    minimal_pair_accuracy,
    multi30k,
    pronoun_accuracy,
    pronouns,
    reverse,
)
from keras_transformer.data.parallel import ParallelDataset, parallel_dataset
from keras_transformer.data.statistics import Statistics

__all__ = [
    "Corpus",
    "Pairs",
    "ParallelDataset",
    "Statistics",
    "exact_match",
    "minimal_pair_accuracy",
    "multi30k",
    "parallel_dataset",
    "pronoun_accuracy",
    "pronouns",
    "reverse",
]
