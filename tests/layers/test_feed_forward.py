import numpy as np
import pytest

from keras_transformer.layers import FeedForward
from tests.gradients import numpy_of


def test_equals_the_equation(random):
    layer = FeedForward(12, bias_initializer="random_normal")
    x = random.normal(size=(2, 3, 8)).astype("float32")
    output = numpy_of(layer(x))
    w1, b1, w2, b2 = (numpy_of(v).astype("float64") for v in layer.weights)
    np.testing.assert_allclose(output, np.maximum(0, x @ w1 + b1) @ w2 + b2, atol=1e-5)


def test_biases_are_an_option():
    layer = FeedForward(12, use_bias=False)
    layer.build((None, None, 8))
    assert [v.path.split("/", 1)[1] for v in layer.weights] == ["hidden/kernel", "output/kernel"]


def test_inner_dropout_works_in_training_only(random):
    layer = FeedForward(64, dropout=0.5)
    x = random.normal(size=(2, 3, 8)).astype("float32")
    assert np.array_equal(numpy_of(layer(x)), numpy_of(layer(x)))
    assert not np.array_equal(numpy_of(layer(x, training=True)), numpy_of(layer(x, training=True)))


def test_no_positions_have_no_output():
    assert tuple(FeedForward(12)(np.ones((2, 0, 8), "float32")).shape) == (2, 0, 8)


@pytest.mark.parametrize("sizes", [{"feed_forward_dim": 0}, {"feed_forward_dim": 8, "output_dim": 0}])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match="must be a positive integer"):
        FeedForward(**sizes)
