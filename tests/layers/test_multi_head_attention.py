import keras
import numpy as np
import pytest

from keras_transformer.layers import MultiHeadAttention
from keras_transformer.layers.scaled_dot_product import attention_weights, fused_attention
from tests.gradients import numpy_of

B, T, S, N, H, M = 3, 4, 6, 2, 5, 10


@pytest.fixture
def attention():
    layer = MultiHeadAttention(num_heads=N, key_dim=H, bias_initializer="random_normal")
    layer.build((None, None, M), (None, None, M))
    return layer


def normal(random, *shape):
    return random.normal(size=shape).astype("float32")


def attention_by_hand(query, key, value, mask=None):
    """Equation 1 of the paper with loops, in double precision: (T, H), (S, H), (S, H) -> (T, H)."""
    rows = []
    for t in range(len(query)):
        scores = np.array([np.dot(query[t].astype("float64"), k) / np.sqrt(len(k)) for k in key])
        weights = np.exp(scores - scores.max())
        if mask is not None:
            weights = weights * mask[t]
        total = weights.sum()
        rows.append(sum(w * v for w, v in zip(weights, value, strict=True)) / total if total else 0 * value[0])
    return np.array(rows)


def forward_by_hand(layer, query, value, mask=None):
    """Section 3.2.2 with loops over sentences and heads."""
    weights = {v.path.split("/", 1)[1]: numpy_of(v).astype("float64") for v in layer.weights}
    q = query @ weights["query/kernel"] + weights["query/bias"]
    k = value @ weights["key/kernel"] + weights["key/bias"]
    v = value @ weights["value/kernel"] + weights["value/bias"]
    heads = []
    for n in range(N):
        part = slice(n * H, (n + 1) * H)
        heads.append([attention_by_hand(q[b, :, part], k[b, :, part], v[b, :, part], mask) for b in range(B)])
    return np.concatenate(heads, axis=-1) @ weights["output/kernel"] + weights["output/bias"]


def test_two_keys_worked_out_on_paper():
    query = np.array([[[[2.0, 0.0, 0.0, 0.0]]]], dtype="float32")  # d_k = 4, so scores are products / 2
    key = np.array([[[[1.0, 0, 0, 0]], [[0.0, 1, 0, 0]]]], dtype="float32")
    weights = numpy_of(attention_weights(query, key))
    e = np.exp(1.0)
    np.testing.assert_allclose(weights[0, 0, 0], [e / (e + 1), 1 / (e + 1)], rtol=1e-6)


def test_cross_attention_equals_the_equation(attention, random):
    query, value = normal(random, B, T, M), normal(random, B, S, M)
    np.testing.assert_allclose(numpy_of(attention(query, value)), forward_by_hand(attention, query, value), atol=1e-5)


def test_causal_self_attention_equals_the_equation(attention, random):
    x = normal(random, B, T, M)
    expected = forward_by_hand(attention, x, x, mask=np.tril(np.ones((T, T))))
    np.testing.assert_allclose(numpy_of(attention(x, use_causal_mask=True)), expected, atol=1e-5)


def test_separate_keys_and_widths(random):
    layer = MultiHeadAttention(num_heads=2, key_dim=3, value_dim=7, output_dim=4)
    query, value, key = normal(random, B, T, 10), normal(random, B, S, 6), normal(random, B, S, 8)
    output, _scores = layer(query, value, key, return_attention_scores=True)
    assert tuple(output.shape) == (B, T, 4)
    np.testing.assert_allclose(numpy_of(layer(query, value, key)), numpy_of(output), atol=1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_fused_and_plain_paths_agree(attention, random, masked):
    query, value = normal(random, B, T, M), normal(random, B, S, M)
    mask = random.random((B, T, S)) > 0.4 if masked else None
    fused = attention(query, value, attention_mask=mask)
    plain, scores = attention(query, value, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(numpy_of(fused), numpy_of(plain), atol=1e-5)
    sums = numpy_of(scores).sum(-1)
    expected = np.ones((B, T)) if mask is None else mask.any(-1)
    np.testing.assert_allclose(sums, np.broadcast_to(expected[:, None], (B, N, T)), atol=1e-6)


def test_scores_have_the_shape_of_cross_attention(attention):
    query, value = keras.KerasTensor((None, T, M)), keras.KerasTensor((None, S, M))
    output, scores = attention(query, value, return_attention_scores=True)
    assert output.shape == (None, T, M)
    assert scores.shape == (None, N, T, S) and scores.dtype == "float32"
    eager = attention(np.zeros((B, T, M)), np.zeros((B, S, M)), return_attention_scores=True)
    assert tuple(eager[1].shape) == (B, N, T, S)


def test_every_mask_is_honoured(attention, random):
    query, value = normal(random, B, T, M), normal(random, B, S, M)
    masks = {
        "attention_mask": random.random((B, T, S)) > 0.3,
        "query_mask": random.random((B, T)) > 0.3,
        "value_mask": random.random((B, S)) > 0.3,
        "key_mask": random.random((B, S)) > 0.3,
    }
    _, scores = attention(query, value, **masks, use_causal_mask=True, return_attention_scores=True)
    allowed = masks["attention_mask"] & masks["query_mask"][:, :, None] & (masks["value_mask"] & masks["key_mask"])[:, None]
    allowed = allowed & np.tril(np.ones((T, S), bool))
    assert ((numpy_of(scores) > 0) == allowed[:, None]).all()


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_attention_mask_of_every_rank(attention, random, rank):
    query, value = normal(random, B, T, M), normal(random, B, S, M)
    mask = random.random((B, N, T, S)[4 - rank :] if rank != 3 else (B, T, S)) > 0.4
    _, scores = attention(query, value, attention_mask=mask, return_attention_scores=True)
    full = {2: lambda m: m[None, None], 3: lambda m: m[:, None], 4: lambda m: m}[rank](mask)
    assert ((numpy_of(scores) > 0) == np.broadcast_to(full, (B, N, T, S))).all()


@pytest.mark.parametrize("call", [lambda layer, x: layer(x), lambda layer, x: layer(x, x)])
def test_a_mask_attached_by_keras_is_honoured(attention, call):
    ids = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(20, M, mask_zero=True)(ids)
    model = keras.Model(ids, call(attention, embedded))
    short, padded = np.array([[5, 6, 7]]), np.array([[5, 6, 7, 0, 0]])
    np.testing.assert_allclose(numpy_of(model(padded))[:, :3], numpy_of(model(short)), atol=1e-6)


@pytest.mark.proof("Changing a padded or future key changes nothing, exactly")
@pytest.mark.parametrize("with_scores", [False, True])
def test_masked_keys_change_nothing(policy, random, with_scores, size, seen):
    layer = MultiHeadAttention(num_heads=N, key_dim=H)
    for _ in range(size(2, full=50)):
        query, value = normal(random, B, T, M), normal(random, B, S, M)
        key_mask = np.arange(S) < random.integers(1, S, size=(B, 1))
        other = np.where(key_mask[:, :, None], value, 100 * normal(random, B, S, M))
        outputs = [layer(query, v, key_mask=key_mask, return_attention_scores=with_scores) for v in (value, other)]
        first, second = (numpy_of(o[0] if with_scores else o) for o in outputs)
        assert np.array_equal(first, second)
    seen(f"{policy}: bitwise equal")


@pytest.mark.proof("Changing a padded or future key changes nothing, exactly")
@pytest.mark.parametrize("with_scores", [False, True])
def test_future_keys_change_nothing(policy, random, with_scores):
    layer = MultiHeadAttention(num_heads=N, key_dim=H)
    x = normal(random, B, T, M)
    full = layer(x, use_causal_mask=True, return_attention_scores=with_scores)
    for t in range(T - 1):
        other = x.copy()
        other[:, t + 1 :] = 100 * normal(random, B, T - t - 1, M)
        changed = layer(other, use_causal_mask=True, return_attention_scores=with_scores)
        first, second = (numpy_of(o[0] if with_scores else o)[:, : t + 1] for o in (full, changed))
        assert np.array_equal(first, second)


@pytest.mark.proof("A row that may attend to nothing gives zeros and no NaN, in float32, bfloat16 and float16")
@pytest.mark.parametrize("with_scores", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_fully_masked_rows_give_zeros(policy, random, with_scores, with_bias, seen):
    layer = BiasedAttention(num_heads=N, key_dim=H) if with_bias else MultiHeadAttention(num_heads=N, key_dim=H)
    query, value = 30 * normal(random, B, T, M), 30 * normal(random, B, S, M)
    mask = np.ones((B, T, S), bool)
    mask[0] = False
    mask[1, 2] = False
    result = layer(query, value, attention_mask=mask, return_attention_scores=with_scores)
    output = numpy_of(keras.ops.cast(result[0] if with_scores else result, "float32"))
    assert np.isfinite(output).all()
    assert (output[0] == 0).all() and (output[1, 2] == 0).all()
    assert (output[1, 0] != 0).any() and (output[2] != 0).any()
    if with_scores:
        assert (numpy_of(result[1])[0] == 0).all()
    seen(f"{policy}: zeros")


class BiasedAttention(MultiHeadAttention):
    def score_bias(self, query_positions, key_positions):
        distance = keras.ops.expand_dims(query_positions, -1) - keras.ops.expand_dims(key_positions, -2)
        return -0.1 * keras.ops.cast(keras.ops.abs(distance), "float32")[None, None]


def test_score_bias_is_added_on_both_paths(random):
    layer = BiasedAttention(num_heads=N, key_dim=H)
    query, value = normal(random, B, T, M), normal(random, B, S, M)
    mask = random.random((B, T, S)) > 0.3
    fused = layer(query, value, attention_mask=mask)
    plain, _ = layer(query, value, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(numpy_of(fused), numpy_of(plain), atol=1e-5)
    plain_layer = MultiHeadAttention(num_heads=N, key_dim=H)
    plain_layer.build(query.shape, value.shape)
    plain_layer.set_weights(layer.get_weights())
    assert np.abs(numpy_of(plain_layer(query, value, attention_mask=mask)) - numpy_of(fused)).max() > 1e-3


def test_gradient_of_fully_masked_rows_is_finite(random):
    query, key = normal(random, 1, 2, 1, 4), normal(random, 1, 3, 1, 4)
    mask = np.zeros((1, 1, 2, 3), bool)
    for function in (lambda q: fused_attention(q, key, key, mask), lambda q: attention_weights(q, key, mask)):
        layer = Wrapped(function)
        inputs = keras.Input(batch_shape=query.shape)
        model = keras.Model(inputs, layer(inputs))
        from tests.gradients import values_and_gradients

        output = numpy_of(model(query))
        _, _, gradients = values_and_gradients(model, [query], np.ones_like(output), wanted=[0])
        assert np.isfinite(gradients[0]).all()


class Wrapped(keras.layers.Layer):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def call(self, x):
        return self.function(x)


def test_softmax_is_float32_under_half_precision():
    # The scores are 256 and 258; weights computed in bfloat16 would have three digits, not six.
    query = np.zeros((1, 1, 1, 4), "float32")
    query[..., 0] = 2.0
    key = np.array([[[[256.0, 0, 0, 0]], [[258.0, 0, 0, 0]]]], "float32")
    weights = numpy_of(attention_weights(keras.ops.cast(query, "bfloat16"), keras.ops.cast(key, "bfloat16")))
    e = np.exp(2.0)
    np.testing.assert_allclose(weights[0, 0, 0], [1 / (1 + e), e / (1 + e)], rtol=1e-5)


def test_attention_dropout_works_in_training_only(random):
    layer = MultiHeadAttention(num_heads=N, key_dim=H, dropout=0.5)
    x = normal(random, B, T, M)
    inference = [numpy_of(layer(x, training=False)) for _ in range(2)]
    training = [numpy_of(layer(x, training=True)) for _ in range(2)]
    assert np.array_equal(*inference)
    assert not np.array_equal(*training)


def test_growing_cache_equals_a_full_pass(attention, random):
    x = normal(random, B, T, M)
    full = numpy_of(attention(x, use_causal_mask=True))
    cache = attention.growing_cache(B, T + 3)
    for t in range(T):
        step, cache = attention(x[:, t : t + 1], positions=np.array([t]), cache=cache)
        np.testing.assert_allclose(numpy_of(step), full[:, t : t + 1], atol=1e-5)


def test_growing_cache_takes_several_tokens_and_positions_of_each_sentence(attention, random):
    x = normal(random, B, T, M)
    full = numpy_of(attention(x, use_causal_mask=True))
    cache = attention.growing_cache(B, T)
    _, cache = attention(x[:, :2], positions=np.arange(2), cache=cache)
    positions = np.broadcast_to(np.arange(2, T), (B, T - 2))
    steps, cache = attention(x[:, 2:], positions=positions, cache=cache)
    np.testing.assert_allclose(numpy_of(steps), full[:, 2:], atol=1e-5)


def test_fixed_cache_equals_cross_attention(attention, random):
    query, value = normal(random, B, T, M), normal(random, B, S, M)
    key_mask = np.arange(S) < np.array([[2], [6], [4]])
    cache = attention.fixed_cache(value)
    output, after, scores = attention(query, key_mask=key_mask, cache=cache, return_attention_scores=True)
    np.testing.assert_allclose(numpy_of(output), numpy_of(attention(query, value, key_mask=key_mask)), atol=1e-5)
    assert tuple(scores.shape) == (B, N, T, S)
    assert set(after) == {"fixed_key", "fixed_value"}


def test_symbolic_shapes_with_a_cache(attention):
    cache = {name: keras.KerasTensor((None, N, 9, H)) for name in ("key", "value")}
    positions = keras.KerasTensor((1,), dtype="int32")
    query = keras.KerasTensor((None, 1, M))
    output, after, scores = attention(query, positions=positions, cache=cache, return_attention_scores=True)
    assert output.shape == (None, 1, M)
    assert after["key"].shape == (None, N, 9, H)
    assert scores.shape == (None, N, 1, 9)


@pytest.mark.parametrize("seed", [None, 3])
def test_parts_never_share_their_initial_weights(seed):
    layer = MultiHeadAttention(2, 5, kernel_initializer=keras.initializers.GlorotUniform(seed=seed))
    layer.build((None, None, 10))
    kernels = [numpy_of(v) for v in layer.weights if v.path.endswith("kernel")]
    assert len(kernels) == 4
    for i in range(4):
        for j in range(i):
            assert not np.allclose(kernels[i], kernels[j])


def test_a_seeded_initializer_is_reproducible():
    first, second = (MultiHeadAttention(2, 5, kernel_initializer=keras.initializers.GlorotUniform(seed=3)) for _ in range(2))
    for layer in (first, second):
        layer.build((None, None, 10))
    for a, b in zip(first.weights, second.weights, strict=True):
        assert np.array_equal(numpy_of(a), numpy_of(b))


@pytest.mark.parametrize("name", ["num_heads", "key_dim", "value_dim", "output_dim"])
@pytest.mark.parametrize("size", [0, -2, 1.5])
def test_impossible_sizes_are_refused(name, size):
    with pytest.raises(ValueError, match=f"`{name}` must be a positive integer.* Received: {name}={size}"):
        MultiHeadAttention(**{"num_heads": 2, "key_dim": 4, name: size})


def eager(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def symbolic(*shape, dtype="float32"):
    return keras.KerasTensor(shape, dtype)


@pytest.mark.parametrize("tensor", [eager, symbolic])
@pytest.mark.parametrize("shape", [(B, M), (B, 2, T, M)])
def test_queries_of_another_rank_are_refused(tensor, shape):
    with pytest.raises(ValueError, match=f"expected ndim=3, found ndim={len(shape)}"):
        MultiHeadAttention(N, H)(tensor(*shape))


@pytest.mark.parametrize("tensor", [eager, symbolic])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"value": (B, 2, M), "key": (B, 9, M)},
            r"`key` must have the shape \(3, 2, 10\).* Received: key of shape \(3, 9, 10\)",
        ),
        ({"value": (B, 2, M), "key": (B, 1, M)}, "Received: key of shape"),
        ({"value": (B, S, M), "key": (B, 2, S, M)}, "Received: key of shape"),
        ({"key": (B, S, M)}, r"`key` must have the shape \(3, 4, 10\)"),
        ({"value": (B, S, M + 1)}, r"`value` must have the shape \(3, any, 10\)"),
        ({"value": (B - 1, S, M)}, "Received: value of shape"),
        ({"value": (B, 1, M), "key_mask": (B, 7)}, r"`key_mask` must have the shape \(3, 1\)"),
        ({"value": (B, S, M), "value_mask": (S,)}, r"`value_mask` must have the shape \(3, 6\)"),
        ({"value": (B, S, M), "query_mask": (B, S)}, r"`query_mask` must have the shape \(3, 4\)"),
        ({"value": (B, S, M), "attention_mask": (S, T)}, r"must have the shape \(4, 6\) or \(3, 4, 6\) or \(3, 2, 4, 6\)"),
        ({"attention_mask": (T,)}, r"Received: attention_mask of shape \(4,\)"),
    ],
)
def test_inputs_that_do_not_fit_each_other_are_refused(attention, tensor, arguments, message):
    inputs = {name: tensor(*shape, dtype="bool" if "mask" in name else "float32") for name, shape in arguments.items()}
    with pytest.raises(ValueError, match=message):
        attention(tensor(B, T, M), **inputs)


def test_a_query_of_another_width_is_refused(attention):
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 10"):
        attention(eager(B, T, M + 1))


@pytest.mark.parametrize("tensor", [eager, symbolic])
@pytest.mark.parametrize("name, shape", [("attention_mask", (T, S)), ("query_mask", (B, T)), ("key_mask", (B, S))])
def test_masks_of_floats_are_refused(attention, tensor, name, shape):
    with pytest.raises(ValueError, match=f"`{name}` must be boolean.*`{name} > 0`.*`{name} >= 0`.*dtype float32"):
        attention(tensor(B, T, M), tensor(B, S, M), **{name: tensor(*shape)})


def test_masks_of_integers_are_taken_for_booleans(attention, random):
    query, value, mask = normal(random, B, T, M), normal(random, B, S, M), random.random((B, T, S)) > 0.4
    expected = numpy_of(attention(query, value, attention_mask=mask))
    assert np.array_equal(numpy_of(attention(query, value, attention_mask=mask.astype("int32"))), expected)


@pytest.mark.parametrize("with_scores", [False, True])
def test_no_queries_have_no_output(attention, with_scores):
    output, *scores = keras.tree.flatten(attention(eager(B, 0, M), eager(B, S, M), return_attention_scores=with_scores))
    assert tuple(output.shape) == (B, 0, M)
    assert [tuple(x.shape) for x in scores] == [(B, N, 0, S)] * with_scores
    assert tuple(attention(eager(B, 0, M), use_causal_mask=True).shape) == (B, 0, M)


@pytest.mark.parametrize("options", [{}, {"return_attention_scores": True}, {"key_mask": np.ones((B, 0), bool)}])
def test_without_keys_only_the_bias_is_left(attention, random, options):
    output, *_ = keras.tree.flatten(attention(normal(random, B, T, M), eager(B, 0, M), **options))
    bias = numpy_of(attention.output_dense.bias)
    np.testing.assert_allclose(numpy_of(output), np.broadcast_to(bias, (B, T, M)), atol=1e-6)


@pytest.mark.parametrize("positions", [[5], [-1], [50]])
def test_positions_that_a_cache_has_no_room_for_are_refused(attention, positions):
    with pytest.raises(ValueError, match=r"room for positions from 0 to 4.* Received: 1 of them, positions=\[-?\d+\]"):
        attention(eager(B, 1, M), positions=np.array(positions), cache=attention.growing_cache(B, 5))


def test_more_tokens_than_a_cache_has_room_for_are_refused(attention):
    with pytest.raises(ValueError, match=r"room for positions from 0 to 1.* Received: 4 of them"):
        attention(eager(B, T, M), cache=attention.growing_cache(B, 2))


def test_a_fixed_cache_wants_a_built_layer_and_inputs_that_fit(attention):
    with pytest.raises(ValueError, match=r"`fixed_cache` needs what `build` makes. Call the layer on an input first"):
        MultiHeadAttention(N, H).fixed_cache(eager(B, S, M))
    with pytest.raises(ValueError, match="`key` must have the shape"):
        attention.fixed_cache(eager(B, S, M), eager(B, S + 1, M))


def counting(shape, dtype=None):
    """An initializer that is a plain function."""
    return keras.ops.cast(keras.ops.reshape(keras.ops.arange(np.prod(shape)), shape), dtype) / np.prod(shape)


class Halves(keras.initializers.Initializer):
    """An initializer that is registered nowhere."""

    def __call__(self, shape, dtype=None):
        return keras.ops.full(shape, 0.5, dtype)


@pytest.mark.parametrize("initializer", [counting, Halves(), Halves])
def test_initializers_of_the_users_own(initializer):
    layer = MultiHeadAttention(2, 5, kernel_initializer=initializer)
    layer.build((None, None, 10))
    call = initializer() if isinstance(initializer, type) else initializer
    np.testing.assert_allclose(numpy_of(layer.key_dense.kernel), numpy_of(call((10, 10), "float32")))


def test_an_initializer_that_is_a_function_is_saved_as_keras_layers_save_it():
    config = MultiHeadAttention(2, 5, kernel_initializer=counting).get_config()
    dense = keras.layers.Dense(5, kernel_initializer=counting).get_config()
    assert config["kernel_initializer"] == dense["kernel_initializer"]
    with keras.saving.custom_object_scope({"counting": counting}):
        assert MultiHeadAttention.from_config(config).kernel_initializer is counting
