"""What a user of `keras.layers.MultiHeadAttention` expects of an attention layer, tried with ours.

Each behaviour that Keras' own tests of its layer assert has a test here, with the values of Keras' layer of the same weights
where it has the option. What is different on purpose is in the last tests and in the tables at the end of docs/layers.md.
"""

import warnings

import keras
import numpy as np
import pytest

from keras_transformer.layers import MultiHeadAttention
from tests.foreign.stacks import normal
from tests.gradients import numpy_of

B, T, S, M = 2, 5, 4, 8
OURS_FOR = {"output_shape": "output_dim"}


def side_by_side(query, value, key=None, **options):
    """Our layer and Keras', built for these inputs, with the same weights."""
    ours = MultiHeadAttention(2, 4, **{OURS_FOR.get(name, name): option for name, option in options.items()})
    theirs = keras.layers.MultiHeadAttention(2, 4, **options)
    for layer in (ours, theirs):
        layer(query, value, key)
    random = np.random.default_rng(3)
    for variable in ours.weights:
        variable.assign(0.5 * normal(random, *variable.shape))
    values = {v.path.split("/", 1)[1]: numpy_of(v) for v in ours.weights}
    for variable in theirs.weights:
        name = variable.path.split("/", 1)[1].replace("attention_output", "output")
        variable.assign(values[name].reshape(variable.shape))
    return ours, theirs


@pytest.fixture
def query(random):
    return normal(random, B, T, M)


@pytest.fixture
def value(random):
    return normal(random, B, S, M)


CAUSAL = np.tri(T, S, dtype=bool)
SOME = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 0]], bool)


# With values of another width, Keras fails on JAX, unless dropout switches the fused kernel off.
@pytest.mark.parametrize("options", [{}, {"value_dim": 3, "dropout": 0.3}, {"use_bias": False}, {"output_shape": 6}])
@pytest.mark.parametrize(
    "call",
    [
        {},
        {"use_causal_mask": True},
        {"attention_mask": SOME},
        {"attention_mask": np.stack([SOME, CAUSAL])},
        {"attention_mask": np.stack([np.stack([SOME, CAUSAL]), np.stack([CAUSAL, SOME])])},
        {"attention_mask": np.stack([SOME, CAUSAL]).astype("int32")},
        {"attention_mask": SOME[None], "use_causal_mask": True},
    ],
    ids=["plain", "causal", "mask of 2 axes", "of 3", "of 4", "of integers", "mask and causal"],
)
def test_outputs_and_scores_are_those_of_keras(query, value, options, call):
    ours, theirs = side_by_side(query, value, **options)
    np.testing.assert_allclose(numpy_of(ours(query, value, **call)), numpy_of(theirs(query, value, **call)), atol=2e-5)
    found, expected = (layer(query, value, **call, return_attention_scores=True) for layer in (ours, theirs))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(numpy_of(one), numpy_of(other), atol=2e-5)


def test_keys_of_another_width_than_values(query, value, random):
    key = normal(random, B, S, 3)
    ours, theirs = side_by_side(query, value, key)
    np.testing.assert_allclose(numpy_of(ours(query, value, key)), numpy_of(theirs(query, value, key)), atol=2e-5)
    np.testing.assert_allclose(numpy_of(ours(query=query, value=value, key=key)), numpy_of(ours(query, value, key)), atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_masks_of_embeddings_are_found(random, causal):
    query = keras.layers.Embedding(4, M, mask_zero=True)(np.array([[1, 2, 3, 0, 0], [3, 3, 1, 1, 2], [1, 0, 0, 0, 0]]))
    value = keras.layers.Embedding(6, M, mask_zero=True)(np.array([[5, 4, 0], [3, 0, 0], [2, 1, 1]]))
    layer = MultiHeadAttention(2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output = layer(query, value, use_causal_mask=causal)
    mask = np.array([[[1, 1, 0]] * 3 + [[0, 0, 0]] * 2, [[1, 0, 0]] * 5, [[1, 1, 1]] + [[0, 0, 0]] * 4], bool)
    mask = mask & np.tri(5, 3, dtype=bool) if causal else mask
    by_hand = layer(numpy_of(query), numpy_of(value), attention_mask=mask)
    np.testing.assert_allclose(numpy_of(output), numpy_of(by_hand), atol=1e-6)


class MaskOf(keras.layers.Layer):
    """Returns the mask that is attached to its input."""

    def call(self, inputs, mask=None):
        return keras.ops.zeros(inputs.shape[:2], "bool") if mask is None else mask


def test_the_mask_of_the_query_is_attached_to_the_output(value):
    ids = np.array([[1, 2, 3, 0, 0], [3, 3, 0, 0, 0]])
    layer = MultiHeadAttention(2, 4)
    assert layer.supports_masking
    output = layer(keras.layers.Embedding(4, M, mask_zero=True)(ids), value)
    assert (numpy_of(MaskOf()(output)) == (ids != 0)).all()


@pytest.mark.parametrize("options, number, seeds", [({}, 8, 0), ({"value_dim": 4, "use_bias": False, "dropout": 0.5}, 4, 1)])
def test_weights_and_what_else_a_layer_has(query, value, options, number, seeds):
    ours, theirs = side_by_side(query, value, **options)
    for layer in (ours, theirs):
        assert len(layer.trainable_weights) == number and layer.non_trainable_weights == [] and layer.losses == []
        assert len(layer.non_trainable_variables) == seeds
    assert ours.count_params() == theirs.count_params()
    ours.trainable = False
    assert ours.trainable_weights == [] and len(ours.non_trainable_weights) == number


@pytest.mark.parametrize("key_shape", [None, (7, 2, 3)])
@pytest.mark.parametrize("output_dim", [None, 5])
def test_the_computed_output_shape_is_that_of_the_output(key_shape, output_dim):
    layer = MultiHeadAttention(2, 2, value_dim=2, output_dim=output_dim)
    shapes = [(7, 4, 8), (7, 2, 8), *([key_shape] if key_shape else [])]
    output = layer(*[np.ones(shape, "float32") for shape in shapes])
    assert tuple(output.shape) == layer.compute_output_shape(*shapes) == layer.compute_output_shape(*map(list, shapes))


@pytest.mark.parametrize("shape", [(1, 2, 3), (2, 3, 5)])
def test_symbolic_scores_have_the_shape_of_eager_ones(shape):
    layer = MultiHeadAttention(4, 2)
    symbolic = layer(keras.Input(batch_shape=shape), keras.Input(batch_shape=shape), return_attention_scores=True)
    eager = layer(np.ones(shape, "float32"), np.ones(shape, "float32"), return_attention_scores=True)
    assert [tuple(x.shape) for x in symbolic] == [tuple(x.shape) for x in eager]


@pytest.mark.parametrize("options", [{}, {"dropout": 0.1}, {"return_attention_scores": True}, {"value_dim": 3}])
def test_nothing_of_the_future_gets_through_where_there_is_no_fused_kernel(query, options):
    made = {name: option for name, option in options.items() if name in ("dropout", "value_dim")}
    layer = MultiHeadAttention(2, 4, **made)
    called = {"use_causal_mask": True, "return_attention_scores": "return_attention_scores" in options}
    changed = np.concatenate([query[:, :3], 9 + query[:, 3:]], axis=1)
    first, second = (numpy_of(keras.tree.flatten(layer(x, **called))[0]) for x in (query, changed))
    assert np.array_equal(first[:, :3], second[:, :3])
    assert np.abs(first[:, 3:] - second[:, 3:]).max() > 0.1


@pytest.mark.parametrize("return_scores", [False, True])
def test_the_method_that_attends_can_be_called_and_overridden(random, return_scores):
    query, key, value = (normal(random, 1, T, 2, 4) for _ in range(3))
    seen = []

    class Seeing(MultiHeadAttention):
        def attend(self, query, key, value, mask=None, bias=None, is_causal=False, **options):
            seen.append((mask, is_causal))
            return super().attend(query, key, value, mask, bias, is_causal, **options)

    layer = Seeing(2, 4)
    layer.build((1, T, M))
    causal, _ = layer.attend(query, key, value, is_causal=True, return_scores=return_scores)
    masked, _ = layer.attend(query, key, value, mask=np.tri(T, dtype=bool)[None, None], return_scores=return_scores)
    np.testing.assert_allclose(numpy_of(causal), numpy_of(masked), atol=1e-5)
    x, some = normal(random, 1, T, M), random.random((T, T)) > 0.3
    layer(x, use_causal_mask=True, attention_mask=some)
    mask, is_causal = seen[-1]
    assert not is_causal and (numpy_of(mask)[0, 0] == (np.tri(T, dtype=bool) & some)).all()


@pytest.mark.parametrize("with_scores", [False, True])
def test_half_precision_by_hand(with_scores):
    width = 8
    identity = np.eye(width)[None]
    value = np.arange(width * width).reshape(1, width, width) / 100
    layer = MultiHeadAttention(num_heads=1, key_dim=width, dtype="float16")
    layer.build(identity.shape, value.shape, identity.shape)
    layer.set_weights([np.eye(width), np.zeros(width)] * 4)
    output, *scores = keras.tree.flatten(layer(identity, value, identity, return_attention_scores=with_scores))
    weights = np.exp(np.eye(width) / np.sqrt(width))
    weights /= weights.sum(-1, keepdims=True)
    assert keras.backend.standardize_dtype(output.dtype) == "float16"
    np.testing.assert_allclose(numpy_of(output)[0], weights @ value[0], atol=2e-3)
    for one in scores:
        np.testing.assert_allclose(numpy_of(one)[0, 0], weights, atol=1e-3)


def test_mixed_precision(query, policy):
    layer = MultiHeadAttention(2, 4)
    output, scores = layer(query, return_attention_scores=True)
    assert keras.backend.standardize_dtype(output.dtype) == keras.config.dtype_policy().compute_dtype
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"
    assert {v.dtype for v in layer.weights} == {"float32"}


def test_flash_attention_is_the_backends_to_choose(query):
    layer = MultiHeadAttention(2, 4)
    outputs = [numpy_of(layer(query, use_causal_mask=True))]
    was_enabled = keras.config.is_flash_attention_enabled()
    keras.config.disable_flash_attention()
    try:
        outputs.append(numpy_of(layer(query, use_causal_mask=True)))
    finally:
        if was_enabled is not False:
            keras.config.enable_flash_attention()
    np.testing.assert_allclose(*outputs, atol=1e-5)


def test_parts_have_kernels_of_their_own(query):
    layer = MultiHeadAttention(2, 4, kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02))
    layer(query)
    kernels = [numpy_of(getattr(layer, f"{part}_dense").kernel) for part in ("query", "key", "value", "output")]
    assert len({kernel.tobytes() for kernel in kernels}) == 4


def test_constraints_reach_every_part(query):
    layer = MultiHeadAttention(2, 4, kernel_constraint="non_neg", bias_constraint="max_norm")
    layer(query)
    for part in (layer.query_dense, layer.key_dense, layer.value_dense, layer.output_dense):
        assert isinstance(part.kernel.constraint, keras.constraints.NonNeg)
        assert isinstance(part.bias.constraint, keras.constraints.MaxNorm)


def functional(layer, length=None):
    query, value = keras.Input((length, M)), keras.Input((length, M))
    return keras.Model([query, value], layer(query, value, use_causal_mask=True))


def test_any_length_fits_and_fit_predict_and_saving_work(random, tmp_path):
    model = functional(MultiHeadAttention(2, 4, kernel_regularizer="l2", dropout=0.1))
    model.compile("sgd", "mse", jit_compile=False)
    for length in (3, 6):
        x = normal(random, B, length, M)
        assert np.isfinite(model.fit([x, x], x, verbose=0).history["loss"][0])
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again.predict([x, x], verbose=0), model.predict([x, x], verbose=0), atol=1e-6)


def test_low_rank_updates_are_trained_and_saved(random, tmp_path):
    layer = MultiHeadAttention(3, 8, use_bias=False)
    model = functional(layer)
    for part in (layer.query_dense, layer.key_dense, layer.value_dense):
        part.enable_lora(2)
    assert len(layer.trainable_variables) == 7 and len(layer.non_trainable_variables) == 3
    x = normal(random, B, T, M)
    model.compile("sgd", "mse", jit_compile=False)
    model.fit([x, x], x, verbose=0)
    expected = numpy_of(model([x, x]))

    model.save(tmp_path / "model.keras")
    np.testing.assert_allclose(numpy_of(keras.saving.load_model(tmp_path / "model.keras")([x, x])), expected, atol=1e-5)
    model.save_weights(tmp_path / "model.weights.h5")
    plain = functional(MultiHeadAttention(3, 8, use_bias=False))
    plain.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(numpy_of(plain([x, x])), expected, atol=1e-5)
    plain.save_weights(tmp_path / "plain.weights.h5")
    model.load_weights(tmp_path / "plain.weights.h5")
    np.testing.assert_allclose(numpy_of(model([x, x])), expected, atol=1e-5)


def test_parts_can_be_quantized(query, value):
    layer = MultiHeadAttention(2, 4)
    before = numpy_of(layer(query, value))
    parts = [layer.query_dense, layer.key_dense, layer.value_dense, layer.output_dense]
    for part in parts:
        part.quantize("int8")
    assert [part.quantization_mode for part in parts] == ["int8"] * 4
    assert ((numpy_of(layer(query, value)) - before) ** 2).mean() < 1e-2


def test_a_policy_of_each_part(query, value):
    policies = keras.dtype_policies.DTypePolicyMap()
    for part in ("query", "key", "value"):
        policies[f"attention/{part}"] = keras.dtype_policies.QuantizedDTypePolicy("int8", "float32")
    layer = MultiHeadAttention(2, 4, dtype=policies, name="attention")
    layer.build(query.shape, value.shape)
    quantized = [part.quantization_mode for part in (layer.query_dense, layer.key_dense, layer.value_dense, layer.output_dense)]
    assert quantized == ["int8", "int8", "int8", None]


# Different on purpose.


def test_a_window_is_a_mask(query):
    near = np.abs(np.arange(T)[:, None] - np.arange(T)) < 3
    ours, _ = side_by_side(query, query)
    theirs = keras.layers.MultiHeadAttention(2, 4, sliding_window=3)
    theirs(query, query)
    theirs.set_weights([numpy_of(w).reshape(v.shape) for w, v in zip(ours.weights, theirs.weights, strict=True)])
    expected = numpy_of(theirs(query, query, use_causal_mask=True))
    np.testing.assert_allclose(numpy_of(ours(query, attention_mask=near, use_causal_mask=True)), expected, atol=2e-5)


@pytest.mark.parametrize("option", ["output_shape", "attention_axes", "sliding_window", "flash_attention", "use_gate", "seed"])
def test_options_that_we_have_not_are_refused_by_name(option):
    with pytest.raises((ValueError, TypeError), match=option):
        MultiHeadAttention(2, 4, **{option: 1})


def test_more_axes_than_three_are_refused():
    with pytest.raises(ValueError, match="expected ndim=3, found ndim=4"):
        MultiHeadAttention(2, 4)(np.ones((B, 3, T, M), "float32"))


def test_an_explicit_mask_of_the_query_counts(query, value):
    ours, theirs = side_by_side(query, value)
    mask = np.array([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], bool)
    bias = numpy_of(ours.output_dense.bias)
    np.testing.assert_allclose(
        numpy_of(ours(query, value, query_mask=mask))[~mask], np.tile(bias, ((~mask).sum(), 1)), atol=1e-6
    )
    assert np.abs(numpy_of(theirs(query, value, query_mask=mask))[~mask] - bias).max() > 1e-2
