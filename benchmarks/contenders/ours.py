"""This package, on whichever backend the environment names."""

import os

import keras

import keras_transformer as kt
from benchmarks.contenders.keras_fit import make_fit_runner
from benchmarks.contenders.runner import Runner
from benchmarks.our_config import config_of
from benchmarks.random_batches import PAD_ID
from benchmarks.shapes import Shape

DIVIDED = "graph, divided"  # The threads share sentences instead of operations.


def make_runner(shape: Shape, mode: str) -> Runner:
    """Builds the model as its users do."""
    if mode == DIVIDED:
        kt.parallel_sentences(int(os.environ["TF_NUM_INTEROP_THREADS"]))
        loss = kt.losses.SmoothedCrossEntropy(0.0, pad_id=PAD_ID)
    else:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    config = config_of(
        shape,
        dropout=shape.dropout,
        pad_id=PAD_ID,
    )
    return make_fit_runner(kt.Transformer(config), kt.optimizers.FusedAdam(1e-4), loss, shape, mode)
