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


@pytest.mark.parametrize("positions", [[6], [[2], [-1]]])
def test_positions_that_were_not_learned_are_refused(positions, random):
    layer = LearnedPositionalEncoding(max_length=6)
    x = random.normal(size=(2, 1, 8)).astype("float32")
    with pytest.raises(ValueError, match="Positions 0 to 5 were learned"):
        layer(x, positions=np.array(positions))


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="TensorFlow fails by itself, torch knows the values")
def test_compiled_positions_stay_among_the_learned_ones():
    import jax

    layer = LearnedPositionalEncoding(max_length=6)
    x = np.zeros((1, 3, 8), "float32")
    layer(x)
    found = jax.jit(lambda positions: layer(x, positions=positions))(np.array([-9, 4, 9]))
    np.testing.assert_array_equal(numpy_of(found)[0], numpy_of(layer.embeddings)[[0, 4, 5]])


def test_shapes_are_inferred_without_values():
    class Outer(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = LearnedPositionalEncoding(max_length=6)

        def call(self, x):
            return self.inner(x, positions=keras.ops.arange(keras.ops.shape(x)[1]))

    assert Outer()(keras.KerasTensor((None, 4, 8))).shape == (None, 4, 8)


def test_float_positions_are_not_rounded(policy, random):
    layer = LearnedPositionalEncoding(max_length=300)
    x = random.normal(size=(1, 1, 8)).astype("float32")
    same = layer(x, positions=np.array([257.0])) - layer(x, positions=np.array([257]))
    assert np.array_equal(numpy_of(keras.ops.cast(same, "float32")), np.zeros((1, 1, 8)))


def test_no_positions():
    layer = LearnedPositionalEncoding(max_length=6)
    x = np.zeros((2, 0, 8), "float32")
    assert tuple(layer(x).shape) == tuple(layer(x, positions=np.zeros((0,), "int32")).shape) == (2, 0, 8)
