"""From ids to ids: greedy search, beam search and sampling, with a cache, on every backend."""

from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.search import search

__all__ = ["SearchOptions", "search"]
