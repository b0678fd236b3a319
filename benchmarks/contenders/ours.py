"""This package, on whichever backend the environment names."""

import keras_transformer as kt
from benchmarks.contenders.keras_fit import make_fit_runner
from benchmarks.contenders.runner import Runner
from benchmarks.our_config import config_of
from benchmarks.random_batches import PAD_ID
from benchmarks.shapes import Shape


def make_runner(shape: Shape, mode: str) -> Runner:
    """Builds the model as its users do."""
    config = config_of(
        shape,
        dropout=shape.dropout,
        pad_id=PAD_ID,
    )
    return make_fit_runner(kt.Transformer(config), kt.optimizers.FusedAdam(1e-4), shape, mode)
