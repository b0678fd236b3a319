import keras
import numpy as np
import pytest

from keras_transformer.layers import SinusoidalPositionalEncoding
from keras_transformer.layers.sinusoidal_positional_encoding import EncodedPositions
from keras_transformer.layers.spaced_kernel import use_kernels
from tests.gradients import numpy_of


def reference(positions, model_dim, layout="interleaved"):
    """The paper's formula in double precision."""
    even = np.arange(0, model_dim, 2)
    angles = np.asarray(positions, "float64")[:, None] / 10000.0 ** (even / model_dim)
    if layout == "halves":
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    table = np.zeros((len(positions), model_dim))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def make(model_dim, **options):
    layer = SinusoidalPositionalEncoding(**options)
    layer.build((None, None, model_dim))
    return layer


@pytest.mark.proof("The positional encoding is within 1e-6 of double precision at positions 0 to 10,000, under every policy")
@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_exact_at_every_position(policy, layout, size, seen):
    positions = np.arange(0, 10_001, size(7, full=1))
    encoding = numpy_of(make(512, layout=layout).encode(positions))
    assert encoding.dtype == "float32"
    difference = np.abs(encoding - reference(positions, 512, layout)).max()
    seen(f"{policy}, {layout}: {len(positions):,} positions, largest difference {difference:.1e}")
    assert difference < 1e-6


@pytest.mark.parametrize("position", [100_000, 1_000_003, 2_097_151])
def test_exact_far_out(position):
    np.testing.assert_allclose(numpy_of(make(64).encode(np.array([position]))), reference([position], 64), atol=1e-6)


def test_first_positions_worked_out_on_paper():
    encoding = numpy_of(make(4).encode(np.arange(2)))
    np.testing.assert_allclose(encoding[0], [0, 1, 0, 1], atol=1e-7)
    np.testing.assert_allclose(encoding[1], [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)], atol=1e-7)


def test_encoding_is_added_to_the_input(random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    np.testing.assert_allclose(numpy_of(make(8)(x)), x + reference(range(5), 8), atol=1e-6)


def test_a_later_step_gets_its_own_position(random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    layer = make(8)
    full = numpy_of(layer(x))
    for t in range(5):
        np.testing.assert_array_equal(numpy_of(layer(x[:, t : t + 1], positions=np.array([t]))), full[:, t : t + 1])
    shifted = numpy_of(layer(x, positions=np.array([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]])))
    np.testing.assert_allclose(shifted[1], x[1] + reference(range(3, 8), 8), atol=1e-6)


def test_an_odd_width_ends_in_a_sine():
    np.testing.assert_allclose(numpy_of(make(5).encode(np.array([3])))[0, 4], np.sin(3 / 10000 ** (4 / 5)), atol=1e-6)


def test_bfloat16_output_is_the_rounded_sum():
    layer = SinusoidalPositionalEncoding(dtype="bfloat16")
    output = layer(keras.ops.zeros((1, 300, 16), dtype="bfloat16"))
    expected = keras.ops.cast(reference(range(300), 16).astype("float32"), "bfloat16")
    difference = keras.ops.cast(output[0], "float32") - keras.ops.cast(expected, "float32")
    assert np.abs(numpy_of(difference)).max() <= 2**-8  # One unit in the last place, where 1e-7 decides the rounding.
    rows = numpy_of(keras.ops.cast(output[0], "float32"))
    assert not np.array_equal(rows[256], rows[257])  # bfloat16 has no 257, but the encoding does.


def test_unknown_layouts_are_refused():
    with pytest.raises(ValueError, match="layout='diagonal'"):
        SinusoidalPositionalEncoding(layout="diagonal")


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_encodings_that_were_made_beforehand_are_looked_up(layout, monkeypatch):
    layer, positions = make(16, layout=layout), np.array([[3, 0], [20, 7]])
    expected, table = numpy_of(layer.encode(positions)), layer.encode(np.arange(21))
    monkeypatch.setattr(layer, "tables", None)  # Nothing can be computed any more.
    with use_kernels({id(layer): EncodedPositions(table)}):
        np.testing.assert_array_equal(numpy_of(layer.encode(positions)), expected)


def test_an_encoding_wants_a_width():
    with pytest.raises(ValueError, match=r"`encode` needs what `build` makes. Call the layer on an input first"):
        SinusoidalPositionalEncoding().encode(np.arange(3))


def test_float_positions_are_not_rounded(policy):
    layer = SinusoidalPositionalEncoding()
    x = np.zeros((1, 1, 8), "float32")
    same = layer(x, positions=np.array([257.0])) - layer(x, positions=np.array([257]))
    assert np.array_equal(numpy_of(keras.ops.cast(same, "float32")), np.zeros((1, 1, 8)))


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_no_positions(layout):
    layer = SinusoidalPositionalEncoding(layout)
    x = np.zeros((2, 0, 8), "float32")
    assert tuple(layer(x).shape) == tuple(layer(x, positions=np.zeros((0,), "int32")).shape) == (2, 0, 8)
