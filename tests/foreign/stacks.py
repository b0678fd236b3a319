"""Our blocks as a model of float inputs, to be set beside foreign implementations."""

import keras
import numpy as np

from keras_transformer.layers import DecoderBlock, EncoderBlock


def normal(random, *shape):
    return random.normal(size=shape).astype("float32")


def encoder_decoder(num_layers, model_dim, feed_forward_dim, num_heads, norm, activation="relu", epsilon=1e-5):
    """A functional model [source (B, S, M), target (B, T, M), source mask (B, S)] -> (B, T, M)."""
    options = {
        "feed_forward_dim": feed_forward_dim,
        "num_heads": num_heads,
        "norm": norm,
        "activation": activation,
        "layer_norm_epsilon": epsilon,
        "dropout": 0.0,
    }
    source = keras.Input((None, model_dim))
    target = keras.Input((None, model_dim))
    mask = keras.Input((None,), dtype="bool")
    x = source
    for i in range(num_layers):
        x = EncoderBlock(**options, name=f"encoder_block_{i}")(x, mask=mask)
    if norm == "pre":
        x = keras.layers.LayerNormalization(epsilon=epsilon, name="encoder_norm")(x)
    y = target
    for i in range(num_layers):
        y = DecoderBlock(**options, name=f"decoder_block_{i}")(y, x, encoded_mask=mask)
    if norm == "pre":
        y = keras.layers.LayerNormalization(epsilon=epsilon, name="decoder_norm")(y)
    return keras.Model([source, target, mask], y)


def randomize(model, random):
    """Gives every variable, biases and normalizations too, values that matter."""
    for variable in model.weights:
        centre = 1.0 if variable.path.endswith("gamma") else 0.0
        fan_in = variable.shape[0] if len(variable.shape) == 2 else 10.0
        variable.assign(centre + normal(random, *variable.shape) / np.sqrt(fan_in))


def assert_close(name, ours, theirs, tolerance):
    """Compares arrays up to `tolerance` relative to the largest entry, and returns the difference."""
    scale = max(1.0, np.abs(theirs).max())
    difference = np.abs(ours - theirs).max() / scale
    assert difference < tolerance, f"{name}: {difference:.1e}"
    return difference
