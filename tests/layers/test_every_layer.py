"""One check for every layer that the package registers."""

import inspect

import keras
import numpy as np
import pytest

from keras_transformer import layers
from tests.gradients import numpy_of

pytestmark = pytest.mark.proof(
    "Every registered layer passes one generic check: config, weights, shapes, dtypes, fit, mixed precision"
)

B, S, T, M, V = 2, 5, 4, 8, 11
X = np.random.default_rng(0).normal(size=(B, T, M)).astype("float32")
ENCODED = np.random.default_rng(1).normal(size=(B, S, M)).astype("float32")
IDS = np.array([[5, 6, 7, 0], [4, 0, 0, 0]])

# For each class: constructor arguments, inputs of a call, number of weights, output shape, output dtype (None: the policy's).
CASES = {
    layers.MultiHeadAttention: ({"num_heads": 2, "key_dim": 3, "value_dim": 5}, [X, ENCODED], 8, (B, T, M), None),
    layers.FeedForward: ({"feed_forward_dim": 16, "activation": "gelu", "dropout": 0.1}, [X], 4, (B, T, M), None),
    layers.SinusoidalPositionalEncoding: ({"layout": "halves"}, [X], 0, (B, T, M), None),
    layers.LearnedPositionalEncoding: ({"max_length": 6}, [X], 1, (B, T, M), None),
    layers.TokenEmbedding: ({"vocabulary_size": V, "model_dim": M}, [IDS], 1, (B, T, M), None),
    layers.TiedLogits: ({"embedding": layers.TokenEmbedding(V, M), "use_bias": True}, [X], 2, (B, T, V), None),
    layers.PaddingMask: ({"pad_id": 0}, [IDS], 0, (B, T), "bool"),
    layers.EncoderBlock: (
        {"feed_forward_dim": 16, "num_heads": 2, "norm": "pre", "attention_dropout": 0.1},
        [X],
        16,
        (B, T, M),
        None,
    ),
    layers.DecoderBlock: ({"feed_forward_dim": 16, "num_heads": 2}, [X, ENCODED], 26, (B, T, M), None),
}


def registered_layers():
    return [
        cls
        for name, cls in keras.saving.get_custom_objects().items()
        if name.startswith("keras_transformer>") and issubclass(cls, keras.layers.Layer) and not issubclass(cls, keras.Model)
    ]


def make(cls):
    return cls(**CASES[cls][0], name="part")


def test_every_registered_layer_is_checked(seen):
    seen(f"{len(CASES)} layers")
    assert set(registered_layers()) == set(CASES)


@pytest.mark.parametrize("cls", CASES)
def test_config_holds_every_constructor_argument(cls):
    arguments = set()
    for base in cls.__mro__:
        if base.__module__.startswith("keras."):
            break
        if "__init__" in vars(base):
            arguments |= set(inspect.signature(base.__init__).parameters) - {"self", "args", "kwargs"}
    assert set(make(cls).get_config()) == arguments | {"name", "trainable", "dtype"}


@pytest.mark.parametrize("cls", CASES)
def test_config_round_trip(cls):
    layer = make(cls)
    again = cls.from_config(layer.get_config())
    assert type(again) is cls
    assert again.get_config() == layer.get_config()


@pytest.mark.parametrize("cls", CASES)
def test_weight_count(cls):
    layer = make(cls)
    layer(*CASES[cls][1])
    assert len(layer.weights) == CASES[cls][2]


@pytest.mark.parametrize("cls", CASES)
def test_symbolic_and_eager_shapes_and_dtypes_agree(cls, policy):
    inputs, shape, dtype = CASES[cls][1], CASES[cls][3], CASES[cls][4]
    layer = make_under_policy(cls)
    symbolic = layer(*[keras.KerasTensor((None, None, *x.shape[2:]), dtype=x.dtype) for x in inputs])
    eager = layer(*inputs)
    expected = dtype or keras.config.dtype_policy().compute_dtype
    assert keras.backend.standardize_dtype(eager.dtype) == symbolic.dtype == expected
    assert tuple(eager.shape) == shape
    assert len(symbolic.shape) == len(shape)
    assert all(known in (None, real) for known, real in zip(symbolic.shape, shape, strict=True))
    assert np.isfinite(numpy_of(keras.ops.cast(eager, "float32"))).all()


def make_under_policy(cls):
    arguments = dict(CASES[cls][0])
    if "embedding" in arguments:
        arguments["embedding"] = layers.TokenEmbedding(V, M)
    return cls(**arguments)


@pytest.mark.parametrize("cls", CASES)
def test_one_step_of_fit(cls, policy, random):
    arrays, shape = CASES[cls][1], CASES[cls][3]
    inputs = [keras.Input(x.shape[1:], dtype=x.dtype) for x in arrays]
    output = make_under_policy(cls)(*inputs)
    if len(shape) == 2:  # A mask has no gradient: give the model something to learn.
        output = keras.layers.Dense(M)(keras.ops.cast(output, "float32"))
        shape = (B, M)
    model = keras.Model(inputs, output)
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse", jit_compile=False)
    before = [numpy_of(v).copy() for v in model.trainable_variables]
    history = model.fit(arrays, random.normal(size=shape), epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"][0])
    after = [numpy_of(v) for v in model.trainable_variables]
    moved = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    # The bias of the keys shifts all scores of a query alike, so softmax never sees it.
    still = [v.path for v, m in zip(model.trainable_variables, moved, strict=True) if not m and "key/bias" not in v.path]
    assert still == []
