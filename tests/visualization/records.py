"""Records of attention without a model."""

import numpy as np

from keras_transformer.attention import Attention

SOURCE = ["▁The", "▁ani", "mal", "▁didn", "'", "t", "▁cross", ".", "</s>"]
OUTPUT = ["▁Das", "▁Tier", "▁über", "quer", "te", "▁nicht", ".", "</s>"]


def make_record(source=SOURCE, output=OUTPUT, layers=2, heads=3, seed=0, sharpness=2.0):
    """A record with random weights; the decoder sees no future."""
    random = np.random.default_rng(seed)

    def weights(queries, keys, is_causal=False):
        scores = sharpness * random.normal(size=(layers, heads, queries, keys))
        powers = np.exp(scores) * (np.tri(queries, keys) if is_causal else 1)
        return powers / powers.sum(-1, keepdims=True)

    sizes = len(source), len(output)
    arrays = weights(sizes[0], sizes[0]), weights(sizes[1], sizes[1], True), weights(sizes[1], sizes[0])
    return Attention(list(source), ["<s>", *output[:-1]], list(output), *arrays)
