"""Our blocks beside keras-hub's `TransformerEncoder` and `TransformerDecoder`, with their weights."""

import keras
import keras_hub
import numpy as np
import pytest

from keras_transformer.layers import DecoderBlock, EncoderBlock
from tests.foreign.stacks import assert_close, normal, randomize
from tests.gradients import numpy_of, values_and_gradients

RENAMED = {
    "self_attention_layer/attention_output": "self_attention/output",
    "self_attention_layer": "self_attention",
    "self_attention/attention_output": "self_attention/output",
    "cross_attention_layer/attention_output": "cross_attention/output",
    "cross_attention/attention_output": "cross_attention/output",
    "cross_attention_layer": "cross_attention",
    "feedforward_intermediate_dense": "feed_forward/hidden",
    "feedforward_output_dense": "feed_forward/output",
    "feedforward_layer_norm": "feed_forward_norm",
    "self_attention_layer_norm": "self_attention_norm",
    "cross_attention_layer_norm": "cross_attention_norm",
}


def our_name(path):
    name = path.split("/", 1)[1]
    for theirs, ours in sorted(RENAMED.items(), key=lambda pair: -len(pair[0])):
        if name.startswith(theirs + "/"):
            return ours + name[len(theirs) :]
    return name


def options(norm):
    ours = {"dropout": 0.0, "layer_norm_epsilon": 1e-5, "norm": norm}
    theirs = {"dropout": 0.0, "layer_norm_epsilon": 1e-5, "normalize_first": norm == "pre"}
    return ours, theirs


def encoder_models(norm, model_dim, feed_forward_dim, num_heads):
    ours, theirs = options(norm)
    x, mask = keras.Input((None, model_dim)), keras.Input((None,), dtype="bool")
    our_output = EncoderBlock(feed_forward_dim, num_heads, **ours)(x, mask=mask)
    their_output = keras_hub.layers.TransformerEncoder(feed_forward_dim, num_heads, **theirs)(x, padding_mask=mask)
    return keras.Model([x, mask], our_output), keras.Model([x, mask], their_output)


def decoder_models(norm, model_dim, feed_forward_dim, num_heads):
    ours, theirs = options(norm)
    x, encoded = keras.Input((None, model_dim)), keras.Input((None, model_dim))
    mask = keras.Input((None,), dtype="bool")
    our_output = DecoderBlock(feed_forward_dim, num_heads, **ours)(x, encoded, encoded_mask=mask)
    layer = keras_hub.layers.TransformerDecoder(feed_forward_dim, num_heads, **theirs)
    return keras.Model([x, encoded, mask], our_output), keras.Model(
        [x, encoded, mask], layer(x, encoded, encoder_padding_mask=mask)
    )


@pytest.mark.proof(
    "With the weights of keras-hub's TransformerEncoder and TransformerDecoder: outputs within 1e-5, gradients within 1e-4"
)
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_equals_keras_hub(side, norm, random, size, seen):
    shape = size((16, 24, 2), full=(512, 2048, 8))
    ours, theirs = (encoder_models if side == "encoder" else decoder_models)(norm, *shape)
    randomize(ours, random)
    our_weights = {v.path.split("/", 1)[1]: numpy_of(v) for v in ours.weights}
    assert {our_name(v.path) for v in theirs.weights} == set(our_weights)
    for variable in theirs.weights:
        variable.assign(our_weights[our_name(variable.path)].reshape(variable.shape))

    mask = np.arange(9) < np.array([[9], [5], [1]])
    inputs = [normal(random, 3, 9, shape[0]), mask]
    if side == "decoder":
        inputs.insert(0, normal(random, 3, 6, shape[0]))
    cotangent = normal(random, *inputs[0].shape)
    if side == "encoder":
        cotangent *= mask[:, :, None]  # What stands at padding means nothing.
    wanted = list(range(len(inputs) - 1))
    expected, expected_gradients, expected_inputs = values_and_gradients(theirs, inputs, cotangent, wanted)
    output, gradients, input_gradients = values_and_gradients(ours, inputs, cotangent, wanted)
    real = mask if side == "encoder" else np.ones(inputs[0].shape[:2], bool)
    output_difference = assert_close("output", output[real], expected[real], 1e-5)
    differences = [assert_close("inputs", a, b, 1e-4) for a, b in zip(input_gradients, expected_inputs, strict=True)]
    by_name = {path.split("/", 1)[1]: gradient for path, gradient in gradients.items()}
    for path, gradient in expected_gradients.items():
        ours_now = by_name[our_name(path)]
        differences.append(assert_close(path, ours_now, gradient.reshape(ours_now.shape), 1e-4))
    seen(f"{side}, {norm}-norm, {shape[0]}: outputs {output_difference:.1e}, gradients {max(differences):.1e}")
