"""Tokenizers that many tests share, one of each kind and normalization."""

import functools

import pytest

from keras_transformer.text import Tokenizer
from tests.text.samples import sentences

VOCABULARY_SIZE = 350


@functools.cache
def trained(model: str, normalization: str) -> Tokenizer:
    return Tokenizer.train(iter(sentences(400)), VOCABULARY_SIZE, model=model, normalization=normalization)


@pytest.fixture(params=["bpe", "unigram"])
def model(request):
    return request.param


@pytest.fixture(params=["nfc", "identity", "nfkc", "nfkc_casefold"])
def normalization(request):
    return request.param


@pytest.fixture
def tokenizer(model):
    """A BPE and a unigram tokenizer with the default normalization."""
    return trained(model, "nfc")


@pytest.fixture
def any_tokenizer(model, normalization):
    """A tokenizer of each kind and normalization."""
    return trained(model, normalization)
