"""This package, on whichever backend the environment names."""

import keras_transformer as kt
from benchmarks.contenders.keras_fit import make_fit_runner
from benchmarks.contenders.runner import Runner
from benchmarks.random_batches import PAD_ID
from benchmarks.shapes import Shape


def make_runner(shape: Shape, mode: str) -> Runner:
    """Builds the model as its users do."""
    config = kt.TransformerConfig(
        vocabulary_size=shape.vocabulary_size,
        model_dim=shape.model_dim,
        feed_forward_dim=shape.feed_forward_dim,
        num_heads=shape.num_heads,
        num_encoder_layers=shape.num_layers,
        num_decoder_layers=shape.num_layers,
        dropout=shape.dropout,
        pad_id=PAD_ID,
    )
    return make_fit_runner(kt.Transformer(config), kt.optimizers.FusedAdam(1e-4), shape, mode)
