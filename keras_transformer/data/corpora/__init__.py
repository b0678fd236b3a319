"""Corpora to train and test on: generated, downloaded, or read from a folder."""

from keras_transformer.data.corpora.corpus import Corpus, Pairs
from keras_transformer.data.corpora.download import Checksum
from keras_transformer.data.corpora.multi30k import multi30k
from keras_transformer.data.corpora.pronoun_scores import exact_match, minimal_pair_accuracy, pronoun_accuracy
from keras_transformer.data.corpora.pronouns import PronounCorpus, PronounExample, pronouns
from keras_transformer.data.corpora.reverse import reverse

__all__ = [
    "Checksum",
    "Corpus",
    "Pairs",
    "PronounCorpus",
    "PronounExample",
    "exact_match",
    "minimal_pair_accuracy",
    "multi30k",
    "pronoun_accuracy",
    "pronouns",
    "reverse",
]
