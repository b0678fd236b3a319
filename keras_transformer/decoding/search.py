"""From source ids to target ids, on every backend."""

import functools

import keras
import numpy as np
from keras import ops

from keras_transformer.decoding import loop
from keras_transformer.decoding.beam import BeamSearch
from keras_transformer.decoding.limits import Limits
from keras_transformer.decoding.model_cache import make_decoder
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.token_by_token import TokenByToken


def search(model, source_ids, options: SearchOptions, max_lengths=None, prefix=None, chances=None) -> dict:
    """Translates ids; part of a TensorFlow graph, or eagerly.

    Args:
        model: A `Transformer`.
        source_ids: Integer tensor `(B, S)`, padded with the model's `pad_id`.
        options: `SearchOptions`.
        max_lengths: Integer tensor `(B,)`, the most tokens of each translation. Defaults to what the options say.
        prefix: `(ids, lengths)`, integer tensors `(B, P)` and `(B,)`: what each translation begins with.
        chances: Float tensor `(B, steps)` for drawing.

    Returns:
        A dictionary of `tokens` and `token_log_probs` `(B, n, L)`, `scores`, `log_probs` and `lengths` `(B, n)`; lengths count
        the end, and what stands beyond them means nothing.
    """
    if max_lengths is None:
        max_lengths = default_max_lengths(model, source_ids, options)
    limits = Limits(max_lengths, *(prefix or (None, None)))
    beam_size = 1 if options.is_sampling else options.beam_size
    most = ops.max(max_lengths) + 1  # With the end.
    first, last = capacities(model, most)
    decoder, cache = make_decoder(model, source_ids, beam_size, first)
    config = model.config
    if beam_size == 1:
        strategy = TokenByToken(decoder, options, limits, config.start_id, config.end_id, chances)
    else:
        strategy = BeamSearch(decoder, options, limits, config.start_id, config.end_id)
    state = loop.run(strategy, cache, ops.shape(source_ids)[0], first, last)
    return strategy.result(state)


def default_max_lengths(model, source_ids, options: SearchOptions):
    """Returns the most tokens that the options allow for each source, `(B,)`."""
    is_token = ops.cast(model.parts.source_mask(source_ids), "int32")
    lengths = ops.sum(is_token, axis=1) - 1 + options.extra_length  # A source has an end.
    if options.max_length is not None:
        lengths = ops.full_like(lengths, options.max_length)
    if model.config.positions == "learned":
        lengths = ops.minimum(lengths, model.config.max_length - 1)
    return ops.maximum(lengths, options.min_length)


def capacities(model, most):
    """Returns for how many positions there is room at first and at last."""
    is_plain = all(getattr(block, "has_plain_cache", False) for block in model.parts.decoder_blocks)
    last = (most + loop.SEGMENT - 1) // loop.SEGMENT * loop.SEGMENT
    return (loop.SEGMENT, last) if is_plain else (last, last)
