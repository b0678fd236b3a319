"""Picking hypotheses and tokens."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.decoding.gathering import of_one_token, take_beams, top_k


@pytest.mark.parametrize("size", [7, 97, 640, 1000, 8000])
def test_top_k_is_the_start_of_a_stable_sort(size, random):
    values = (random.integers(0, 50, (3, 4, size)) + np.arange(size) * 1e-4).astype("float32")  # Close, but no ties.
    best, places = (ops.convert_to_numpy(x) for x in top_k(ops.convert_to_tensor(values), 6))
    expected = np.argsort(-values, axis=-1, kind="stable")[..., :6]
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(best, np.take_along_axis(values, expected, -1))


def test_beams_and_tokens_are_taken(random):
    values, beams = random.random((3, 5, 7)).astype("float32"), random.integers(0, 5, (3, 4))
    for given, places in ((values[..., 0], beams), (values, beams[..., None])):
        taken = ops.convert_to_numpy(take_beams(ops.convert_to_tensor(given), ops.convert_to_tensor(beams)))
        np.testing.assert_array_equal(taken, np.take_along_axis(given, places, 1))
    of_one = of_one_token(ops.convert_to_tensor(values), ops.array([6, 0, 3], "int32"))
    np.testing.assert_array_equal(of_one, values[np.arange(3), :, [6, 0, 3]][..., None])
