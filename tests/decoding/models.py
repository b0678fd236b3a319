"""Small models with random weights, whose end is more or less likely."""

import keras
import numpy as np

import keras_transformer as kt

END = 2


def make_model(vocabulary_size=11, **overrides):
    config = kt.TransformerConfig(
        **{
            "vocabulary_size": vocabulary_size,
            "model_dim": 16,
            "feed_forward_dim": 24,
            "num_heads": 2,
            "num_encoder_layers": 1,
            "num_decoder_layers": 1,
            "tie": "none",
            "output_bias": True,
            **overrides,
        }
    )
    return kt.Transformer(config)


def randomize(model, seed: int):
    """Gives a model weights with which tokens depend on source and history, and ends come early or late."""
    random = np.random.default_rng(seed)
    for variable in model.weights:
        scale = 0.3 if variable.path.endswith(("beta", "bias")) else 1.0 / np.sqrt(variable.shape[0])
        offset = 1.0 if variable.path.endswith("gamma") else 0.0
        variable.assign(offset + scale * random.normal(size=variable.shape))
    bias = next(variable for variable in model.weights if variable.path.endswith("logits/bias"))
    values = keras.ops.convert_to_numpy(bias).copy()
    values[END] += random.uniform(-1.0, 2.0)
    bias.assign(values)


def random_sources(seed: int, lengths, vocabulary_size: int, extra_padding: int = 0) -> tuple[list[list[int]], np.ndarray]:
    """Returns sources with their end, as lists and as a padded array."""
    random = np.random.default_rng(seed)
    rows = [[*random.integers(4, vocabulary_size, length).tolist(), END] for length in lengths]
    array = np.zeros((len(rows), max(map(len, rows)) + extra_padding), "int32")
    for number, row in enumerate(rows):
        array[number, : len(row)] = row
    return rows, array


def inputs_of(source_ids, max_lengths) -> dict:
    return {"source_ids": source_ids, "max_lengths": np.broadcast_to(np.array(max_lengths, "int32"), len(source_ids)).copy()}


def hypotheses_of(found: dict, row: int) -> list[tuple[float, float, tuple]]:
    """Reads the hypotheses of one sentence: (score, log-probability, tokens)."""
    return [
        (float(score), float(log_prob), tuple(tokens[:length].tolist()))
        for score, log_prob, length, tokens in zip(
            *(found[name][row] for name in ("scores", "log_probs", "lengths", "tokens")), strict=True
        )
        if length
    ]
