"""From ids to ids: greedy search, beam search and sampling, with a cache, on every backend."""

from keras_transformer.decoding.compiled import compile_scoring, compile_search
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.search import Search
from keras_transformer.threads import parallel_sentences

__all__ = ["Search", "SearchOptions", "compile_scoring", "compile_search", "parallel_sentences"]
