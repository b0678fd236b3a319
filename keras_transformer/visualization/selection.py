"""Choosing what to draw from a record of attention."""

import numpy as np

from keras_transformer.attention import Attention
from keras_transformer.attention.words import labels

NAMES = {"encoder_self": "Encoder self-attention", "decoder_self": "Decoder self-attention", "cross": "Cross-attention"}


def select(attention: Attention, kind: str, layer: int, head: int | None) -> np.ndarray:
    """Returns the weights of a head, or the average over the heads of a layer.

    Args:
        attention: The record.
        kind: `"encoder_self"`, `"decoder_self"` or `"cross"`.
        layer: Number of the layer, from 0; -1 is the last.
        head: Number of the head, from 0, or `None` for the average.

    Returns:
        A float32 array `(queries, keys)`.
    """
    weights = attention[kind]
    for name, number, count in (("layer", layer, weights.shape[0]), ("head", head, weights.shape[1])):
        if number is not None and not -count <= number < count:
            raise ValueError(f"`{name}` must be from 0 to {count - 1}, for {kind!r} has {count}. Received: {name}={number}")
    return weights[layer].mean(axis=0) if head is None else weights[layer, head]


def title_of(attention: Attention, kind: str, layer: int, head: int | None) -> str:
    """Names what `select` returns; layers and heads count from 1 there, as people do."""
    num_layers, num_heads = attention[kind].shape[:2]
    who = f"head {head % num_heads + 1}" if head is not None else "mean of the heads" if num_heads > 1 else "one head"
    return f"{NAMES[kind]}, layer {layer % num_layers + 1}, {who}"


def side_labels(attention: Attention, kind: str) -> tuple[list[str], list[str]]:
    """Returns labels for the rows and the columns of a kind of attention."""
    return labels(attention.query_tokens(kind)), labels(attention.key_tokens(kind))


def place_of(attention: Attention, kind: str, word: str) -> int:
    """Finds the row of a word."""
    names = side_labels(attention, kind)[0]
    if word not in names:
        raise ValueError(f"There is no such word in the rows of {kind!r}; they are {names}. Received: {word!r}")
    return names.index(word)
