"""Our attention beside `keras.layers.MultiHeadAttention`, with its weights."""

import keras
import pytest

from keras_transformer.layers import MultiHeadAttention
from tests.foreign.stacks import assert_close, normal, randomize
from tests.gradients import numpy_of, values_and_gradients

MODEL_DIM, NUM_HEADS, KEY_DIM = 24, 4, 6


def attention_model(layer, **options):
    query, value = keras.Input((None, MODEL_DIM)), keras.Input((None, MODEL_DIM))
    mask = keras.Input((None, None), dtype="bool")
    return keras.Model([query, value, mask], layer(query, value, attention_mask=mask, **options))


@pytest.mark.proof("With the weights of keras.layers.MultiHeadAttention: outputs within 1e-5, gradients within 1e-4")
@pytest.mark.parametrize("causal", [False, True])
def test_equals_keras(causal, random, size, seen):
    ours = attention_model(MultiHeadAttention(NUM_HEADS, KEY_DIM), use_causal_mask=causal)
    theirs = attention_model(keras.layers.MultiHeadAttention(NUM_HEADS, KEY_DIM), use_causal_mask=causal)
    randomize(ours, random)
    their_names = {v.path: v.path.split("/", 1)[1].replace("attention_output", "output") for v in theirs.weights}
    our_weights = {v.path.split("/", 1)[1]: numpy_of(v) for v in ours.weights}
    for variable in theirs.weights:
        variable.assign(our_weights[their_names[variable.path]].reshape(variable.shape))

    batch, length = size((3, 7), full=(16, 40))
    query, value = normal(random, batch, length, MODEL_DIM), normal(random, batch, length, MODEL_DIM)
    mask = random.random((batch, length, length)) > 0.3
    mask[:, :, 0] = True  # Keras and we differ, on purpose, only in rows without any key.
    cotangent = normal(random, *query.shape)
    expected, expected_gradients, expected_inputs = values_and_gradients(theirs, [query, value, mask], cotangent, wanted=[0, 1])
    output, gradients, inputs = values_and_gradients(ours, [query, value, mask], cotangent, wanted=[0, 1])
    output_difference = assert_close("output", output, expected, 1e-5)
    differences = [assert_close("inputs", a, b, 1e-4) for a, b in zip(inputs, expected_inputs, strict=True)]
    by_name = {path.split("/", 1)[1]: gradient for path, gradient in gradients.items()}
    for path, gradient in expected_gradients.items():
        ours_now = by_name[their_names[path]]
        differences.append(assert_close(path, ours_now, gradient.reshape(ours_now.shape), 1e-4))
    seen(f"causal={causal}: outputs {output_difference:.1e}, gradients {max(differences):.1e}")
