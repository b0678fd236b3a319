import keras
import numpy as np
import pytest

from keras_transformer.layers import LearnedPositionalEncoding
from tests.gradients import numpy_of


def test_learned_vectors_are_added(random):
    layer = LearnedPositionalEncoding(max_length=6)
    x = random.normal(size=(2, 4, 8)).astype("float32")
    np.testing.assert_allclose(numpy_of(layer(x)), x + numpy_of(layer.embeddings)[:4], atol=1e-6)


def test_a_later_step_gets_its_own_position(random):
    layer = LearnedPositionalEncoding(max_length=6)
    x = random.normal(size=(2, 1, 8)).astype("float32")
    np.testing.assert_allclose(numpy_of(layer(x, positions=np.array([5]))), x + numpy_of(layer.embeddings)[5], atol=1e-6)
    each = numpy_of(layer(x, positions=np.array([[2], [3]])))
    np.testing.assert_allclose(each[:, 0], x[:, 0] + numpy_of(layer.embeddings)[2:4], atol=1e-6)


def test_input_past_the_learned_length_is_refused():
    layer = LearnedPositionalEncoding(max_length=6)
    with pytest.raises(ValueError, match="7 positions, but only 6 were learned"):
        layer(np.zeros((1, 7, 8), "float32"))
    with pytest.raises(ValueError, match="larger `max_length`"):
        layer(keras.KerasTensor((None, 7, 8)))
