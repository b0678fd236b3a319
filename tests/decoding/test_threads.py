"""A batch that is divided among threads."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_transformer.decoding.threads import in_parts, interleaved


def never(inputs):
    raise AssertionError(f"was called with {inputs}")


@pytest.mark.parametrize("rows", [2, 5])
def test_parts_come_back_in_their_places(rows):
    inputs = {"source_ids": np.arange(rows)[:, None], "max_lengths": np.arange(rows)}

    def run(part):
        length = 1 + int(part["max_lengths"].max())
        return {
            "scores": part["max_lengths"][:, None] * 2.0,
            "tokens": np.repeat(part["source_ids"][:, :, None], length, axis=2),
        }

    found = in_parts(run, 3, run_alone=never)(inputs)
    np.testing.assert_array_equal(found["scores"][:, 0], 2.0 * np.arange(rows))
    np.testing.assert_array_equal(found["tokens"][:, 0, 0], np.arange(rows))


def test_a_single_sentence_has_all_threads():
    inputs = {"source_ids": np.ones((1, 4))}
    assert in_parts(never, 3, run_alone=lambda inputs: {"tokens": inputs["source_ids"]})(inputs) == {
        "tokens": inputs["source_ids"]
    }
    assert in_parts(len, 1, run_alone=never)(inputs) == 1  # There is one thread, or TensorFlow divides the work itself.


def test_shorter_parts_are_padded():
    whole = interleaved([np.ones((2, 1, 3)), np.full((1, 1, 2), 5.0)])
    np.testing.assert_array_equal(whole[:, 0], [[1, 1, 1], [5, 5, 0], [1, 1, 1]])


SCRIPT = """
import numpy as np, keras, keras_transformer as kt
from keras_transformer.layers import divided_kernel
divided_kernel.SMALLEST = 1000  # A single sentence divides its products, even with so small a model.
kt.decoding.parallel_sentences(2)
keras.utils.set_random_seed(0)
model = kt.Transformer.from_preset("tiny", vocabulary_size=50)
source = np.random.default_rng(0).integers(3, 50, (5, 6)).astype("int32")
inputs = {"source_ids": source, "max_lengths": np.array([9, 2, 12, 5, 7], "int32")}
search = kt.decoding.compile_search(model, kt.SearchOptions(beam_size=2))
whole = search(inputs)
for row in range(5):
    alone = search({name: x[row : row + 1] for name, x in inputs.items()})
    length = int(alone["lengths"][0, 0])
    assert whole["lengths"][row, 0] == length
    assert (whole["tokens"][row, 0, :length] == alone["tokens"][0, 0, :length]).all()
try:
    kt.decoding.parallel_sentences(3)
except ValueError as error:
    print(error)
"""


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only TensorFlow divides a batch")
def test_a_divided_batch_gives_the_same_translations():
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow"}
    result = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert "before TensorFlow has computed anything" in result.stdout, result.stderr[-2000:]
