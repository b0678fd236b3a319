"""Our model with the weights that all contenders share."""

import keras_transformer as kt
from benchmarks.decoding.jobs import END_ID, START_ID
from benchmarks.decoding.weights import NUM_POSITIONS, make_weights
from benchmarks.our_config import config_of
from benchmarks.random_batches import PAD_ID
from benchmarks.shapes import Shape


def make_model(shape: Shape) -> kt.Transformer:
    """Builds the model and sets its weights."""
    config = config_of(
        shape,
        positions="learned",
        max_length=NUM_POSITIONS,
        tie="none",
        layer_norm_epsilon=1e-5,  # That of the others.
        pad_id=PAD_ID,
        start_id=START_ID,
        end_id=END_ID,
    )
    model = kt.Transformer(config)
    weights = make_weights(shape)
    for variable in model.trainable_variables:
        variable.assign(weights[variable.path])
    return model
