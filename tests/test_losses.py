"""The smoothed loss: value and gradient of float64 sums over one-hot labels, on every backend and under every policy."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest

import keras_transformer as kt
from benchmarks.loss_memory import compared
from keras_transformer.losses import RDropCrossEntropy, SmoothedCrossEntropy, entropy_of_labels
from tests.gradients import numpy_of

ROOT = os.path.dirname(os.path.dirname(__file__))


def reference(labels, logits, smoothing=0.1, over="all", pad_id=0, weights=1.0):
    """Returns the loss and its gradient in float64, as it is written in the docstring."""
    logits, vocabulary_size = np.asarray(logits, "float64"), logits.shape[-1]
    one_hot = labels[..., None] == np.arange(vocabulary_size)
    spread = smoothing / vocabulary_size if over == "all" else smoothing / (vocabulary_size - 1) * ~one_hot
    targets = (1 - smoothing) * one_hot + spread
    logs = logits - logits.max(-1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(-1, keepdims=True))
    is_real = labels != pad_id
    scale = np.broadcast_to(weights, labels.shape) * is_real / max(is_real.sum(), 1)
    return -(targets * logs).sum(-1).ravel() @ scale.ravel(), (np.exp(logs) - targets) * scale[..., None]


def value_and_gradient(loss, labels, logits, weights=None, jit_compile=False):
    """Returns a loss and its gradient by the logits as numpy arrays."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        return _tensorflow(loss, labels, logits, weights, jit_compile)
    return {"jax": _jax, "torch": _torch}[backend](loss, labels, logits, weights)


def _tensorflow(loss, labels, logits, weights, jit_compile):
    import tensorflow as tf

    @tf.function(jit_compile=jit_compile)
    def run(labels, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(labels, logits, weights)
        return value, tape.gradient(value, logits)

    return [tensor.numpy() for tensor in run(tf.constant(labels), tf.constant(logits))]


def _jax(loss, labels, logits, weights):
    import jax

    found = jax.jit(jax.value_and_grad(lambda logits: loss(labels, logits, weights)))(logits)
    return [np.asarray(array) for array in found]


def _torch(loss, labels, logits, weights):
    import torch

    logits = torch.tensor(logits, requires_grad=True)
    value = loss(torch.tensor(labels), logits, weights)
    value.backward()
    return value.detach().numpy(), logits.grad.numpy()


def difference(found, expected) -> float:
    """Returns the largest relative difference of a value or, in the norm, of a gradient."""
    return float(np.linalg.norm(np.ravel(found - expected)) / np.linalg.norm(np.ravel(expected)))


def some_labels(random, shape, vocabulary_size):
    """Draws labels of which about a third is padding."""
    return (random.integers(1, vocabulary_size, shape) * (random.random(shape) > 0.3)).astype("int32")


CLAIM = "Loss and gradient differ from float64 sums over one-hot labels by less than 1e-6, under a bfloat16 policy too"


@pytest.mark.proof(CLAIM)
@pytest.mark.parametrize("logits_like", ["normal", "well trained", "far from 0"])
@pytest.mark.parametrize(("smoothing", "over"), [(0.1, "all"), (0.1, "others"), (0.0, "all"), (0.9, "others")])
def test_value_and_gradient_of_one_hot_labels(smoothing, over, logits_like, random, size, seen):
    vocabulary_size = size(1000, full=37_000)
    labels = some_labels(random, (4, 16), vocabulary_size)
    logits = random.normal(size=(4, 16, vocabulary_size))
    if logits_like == "well trained":  # The right label is the likeliest, with a probability of 0.6.
        np.put_along_axis(logits, labels[..., None], np.log(vocabulary_size) + 1, -1)
    logits = (logits + 50.0 * (logits_like == "far from 0")).astype("float32")
    found = value_and_gradient(SmoothedCrossEntropy(smoothing, over=over), labels, logits)
    expected = reference(labels, logits, smoothing, over)
    differences = [difference(*pair) for pair in zip(found, expected, strict=True)]
    seen(f"{smoothing} over {over}, {logits_like}: {max(differences):.0e}")
    assert max(differences) < 1e-6


@pytest.mark.proof(CLAIM)
def test_from_a_model_under_every_policy(policy, random, seen):
    config = kt.TransformerConfig(
        vocabulary_size=50, model_dim=8, feed_forward_dim=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
    )
    ids = some_labels(random, (3, 7), 50)
    logits = kt.Transformer(config)({"source_ids": ids, "target_ids": ids})
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    logits = numpy_of(logits)
    found = value_and_gradient(SmoothedCrossEntropy(), ids, logits)
    differences = [difference(*pair) for pair in zip(found, reference(ids, logits), strict=True)]
    assert {array.dtype for array in found} == {np.dtype("float32")}
    seen(f"{policy}: {max(differences):.0e}")
    assert max(differences) < 1e-6


def test_logits_of_half_precision_are_computed_in_float32(random):
    labels = some_labels(random, (2, 5), 300)
    logits = keras.ops.cast(random.normal(size=(2, 5, 300)) * 9, "bfloat16")
    found = SmoothedCrossEntropy()(labels, logits)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    expected, _ = reference(labels, numpy_of(keras.ops.cast(logits, "float32")))
    assert float(found) == pytest.approx(expected, rel=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX compiles everything, torch nothing here")
def test_compiled_by_xla(random):
    labels, logits = some_labels(random, (2, 5), 30), random.normal(size=(2, 5, 30)).astype("float32")
    found = value_and_gradient(SmoothedCrossEntropy(), labels, logits, jit_compile=True)
    assert max(difference(*pair) for pair in zip(found, reference(labels, logits), strict=True)) < 1e-6


# What counts, and for how much.


def test_all_equally_likely():
    """Whatever the labels, the cross-entropy with equal probabilities is log V."""
    for over in ("all", "others"):
        found = SmoothedCrossEntropy(0.3, over=over)([[1, 2, 0]], np.zeros((1, 3, 8)))
        assert float(found) == pytest.approx(np.log(8), rel=1e-6)


def test_padding_changes_nothing(random):
    labels, logits = random.integers(1, 9, (2, 3)), random.normal(size=(2, 3, 9)).astype("float32")
    loss, gradient = value_and_gradient(SmoothedCrossEntropy(), labels, logits)
    more_labels = np.pad(labels, ((0, 4), (0, 2)))
    more_logits = random.normal(size=(6, 5, 9)).astype("float32")
    more_logits[:2, :3] = logits
    padded_loss, padded_gradient = value_and_gradient(SmoothedCrossEntropy(), more_labels, more_logits)
    assert padded_loss == pytest.approx(loss, rel=1e-6)
    np.testing.assert_allclose(padded_gradient[:2, :3], gradient, rtol=1e-5, atol=1e-8)
    assert not padded_gradient[2:].any() and not padded_gradient[:, 3:].any()


def test_nothing_but_padding_is_nothing(random):
    logits = random.normal(size=(2, 3, 9)).astype("float32")
    loss, gradient = value_and_gradient(SmoothedCrossEntropy(), np.zeros((2, 3), int), logits)
    assert loss == 0 and not gradient.any()


@pytest.mark.parametrize("pad_id", [5, -1, 40])
def test_another_pad_id_even_outside_of_the_vocabulary(pad_id, random):
    labels, logits = np.array([[0, 3, pad_id, 4]]), random.normal(size=(1, 4, 9)).astype("float32")
    found = value_and_gradient(SmoothedCrossEntropy(pad_id=pad_id), labels, logits)
    assert max(difference(*pair) for pair in zip(found, reference(labels, logits, pad_id=pad_id), strict=True)) < 1e-6


def test_weights_multiply_but_do_not_divide(random):
    labels, logits = some_labels(random, (3, 4), 9), random.normal(size=(3, 4, 9)).astype("float32")
    for weights in (random.uniform(0, 3, (3, 4)), random.uniform(0, 3, (3, 1))):
        found = value_and_gradient(SmoothedCrossEntropy(), labels, logits, weights.astype("float32"))
        expected = reference(labels, logits, weights=weights)
        assert max(difference(*pair) for pair in zip(found, expected, strict=True)) < 1e-6
    row_weights = random.uniform(0, 3, 3).astype("float32")
    expected, _ = reference(labels, logits, weights=row_weights[:, None])
    assert float(SmoothedCrossEntropy()(labels, logits, row_weights)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("smoothing", "over"), [(0.1, "all"), (0.1, "others"), (0.0, "all")])
def test_a_perfect_model_is_at_the_floor(smoothing, over):
    right = 1 - smoothing + (smoothing / 5 if over == "all" else 0.0)
    with np.errstate(divide="ignore"):
        logs = np.log(np.full((1, 2, 5), (1 - right) / 4)).clip(-80)
    labels = np.array([[1, 3]])
    np.put_along_axis(logs, labels[..., None], np.log(right), -1)
    logs = logs.astype("float32")
    found, gradient = value_and_gradient(SmoothedCrossEntropy(smoothing, over=over, from_floor=True), labels, logs)
    assert found == pytest.approx(0, abs=1e-6) and np.abs(gradient).max() < 1e-6
    floor = entropy_of_labels(5, SmoothedCrossEntropy(smoothing, over=over).spread_share(5))
    assert float(SmoothedCrossEntropy(smoothing, over=over)(labels, logs)) == pytest.approx(floor, abs=1e-6)


def test_the_floor_is_no_part_of_the_gradient(random):
    labels, logits = some_labels(random, (2, 5), 9), random.normal(size=(2, 5, 9)).astype("float32")
    plain, above = (value_and_gradient(SmoothedCrossEntropy(from_floor=floor), labels, logits) for floor in (False, True))
    assert above[0] < plain[0]
    np.testing.assert_array_equal(above[1], plain[1])


def test_labels_of_any_shape(random):
    labels, logits = random.integers(1, 9, 6), random.normal(size=(6, 9)).astype("float32")
    assert float(SmoothedCrossEntropy()(labels, logits)) == pytest.approx(reference(labels, logits)[0], rel=1e-6)


# Two passes that have to agree.


def r_drop_reference(labels, logits, agreement):
    """Returns the loss of R-Drop in float64, pair of rows by pair of rows, as it is written in the paper."""
    logits = np.asarray(logits, "float64")
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    total, _ = reference(labels, logits)
    for first, second in zip(range(0, len(labels) - 1, 2), range(1, len(labels), 2), strict=True):
        if (labels[first] == labels[second]).all():
            p, q = np.exp(logs[first]), np.exp(logs[second])
            divergences = (p * (logs[first] - logs[second])).sum(-1) + (q * (logs[second] - logs[first])).sum(-1)
            total += 2 * agreement / 4 * divergences[labels[first] != 0].sum() / (labels != 0).sum()
    return total


@pytest.mark.parametrize("rows", [4, 5])
def test_r_drop_is_the_divergence_of_copies(rows, random):
    labels = np.repeat(some_labels(random, (3, 6), 30), 2, axis=0)[:rows]
    logits = random.normal(size=(rows, 6, 30)).astype("float32")
    found, gradient = value_and_gradient(RDropCrossEntropy(agreement=5.0), labels, logits)
    assert found == pytest.approx(r_drop_reference(labels, logits, 5.0), rel=1e-6)
    for place in random.integers((0, 0, 0), (*labels.shape, 30), (6, 3)):
        step = np.zeros(logits.shape)
        step[tuple(place)] = 1e-4
        slope = (r_drop_reference(labels, logits + step, 5.0) - r_drop_reference(labels, logits - step, 5.0)) / 2e-4
        assert gradient[tuple(place)] == pytest.approx(slope, rel=1e-3, abs=1e-6)


def test_rows_without_a_copy_count_with_their_cross_entropy(random):
    labels, logits = random.integers(1, 30, (4, 6)), random.normal(size=(4, 6, 30)).astype("float32")
    found = RDropCrossEntropy(agreement=5.0)(labels, logits)
    assert float(found) == pytest.approx(float(SmoothedCrossEntropy()(labels, logits)), rel=1e-6)


def test_fit_with_copies_learns_to_agree():
    """Dropout makes the copies differ: their divergence is part of the loss, and falls."""
    config = kt.TransformerConfig(
        vocabulary_size=20,
        model_dim=16,
        feed_forward_dim=32,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dropout=0.3,
    )
    model = kt.Transformer(config)
    model.compile(keras.optimizers.Adam(3e-3), RDropCrossEntropy(5.0), jit_compile=keras.backend.backend() == "jax")
    ids = np.repeat(np.random.default_rng(1).integers(4, 20, (8, 5)), 2, axis=0)
    history = model.fit({"source_ids": ids, "target_ids": ids}, ids, batch_size=16, epochs=8, verbose=0).history["loss"]
    assert history[-1] < history[0]
    without_dropout = model.evaluate({"source_ids": ids, "target_ids": ids}, ids, batch_size=16, verbose=0)
    logits = model.predict({"source_ids": ids, "target_ids": ids}, batch_size=16, verbose=0)
    assert without_dropout == pytest.approx(reference(ids, logits)[0], rel=1e-4)


# In a model.


def test_is_saved_with_a_model(tmp_path):
    model = keras.Sequential([keras.Input((3,), dtype="int32"), keras.layers.Embedding(7, 7)])
    model.compile("sgd", SmoothedCrossEntropy(0.2, pad_id=3, over="others", from_floor=True), jit_compile=False)
    ids = np.array([[1, 3, 2]])
    model.fit(ids, ids, verbose=0)
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    assert restored.loss.get_config() == model.loss.get_config()
    assert restored.evaluate(ids, ids, verbose=0) == pytest.approx(model.evaluate(ids, ids, verbose=0), rel=1e-6)


def test_config_round_trip():
    loss = SmoothedCrossEntropy(0.2, 3, "others", True, "mine")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    expected = {"smoothing": 0.2, "pad_id": 3, "over": "others", "from_floor": True, "name": "mine"}
    assert type(again) is SmoothedCrossEntropy
    assert again.get_config() == loss.get_config() == expected
    loss = RDropCrossEntropy(2.0, 0.2, 3, "others", True, "mine")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert type(again) is RDropCrossEntropy
    assert again.get_config() == loss.get_config() == {"agreement": 2.0, **expected}


IN_REPLICAS = """
import keras, numpy as np, tensorflow as tf
from keras_transformer.losses import SmoothedCrossEntropy

devices = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(devices[0], [tf.config.LogicalDeviceConfiguration()] * 2)
ids = np.array([[1, 2, 3, 4], [5, 6, 1, 2], [3, 0, 0, 0], [0, 0, 0, 0]])  # Eight tokens for one replica, one for the other.
for devices in (["CPU:0"], ["CPU:0", "CPU:1"]):
    with tf.distribute.MirroredStrategy(devices).scope():
        model = keras.Sequential([keras.Input((None,), dtype="int32"), keras.layers.Embedding(7, 7)])
        model.layers[0].set_weights([np.sin(np.arange(49.0)).reshape(7, 7)])
        model.compile(keras.optimizers.SGD(1.0), SmoothedCrossEntropy(), jit_compile=False)
    history = model.fit(tf.data.Dataset.from_tensors((ids, ids)), verbose=0)
    print("found", history.history["loss"][0], *model.layers[0].get_weights()[0].ravel())
"""


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only TensorFlow has tf.distribute")
def test_the_tokens_of_all_replicas_are_one_batch():
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", IN_REPLICAS]
    printed = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout
    alone, together = (np.array(line.split()[1:], float) for line in printed.splitlines() if line.startswith("found"))
    np.testing.assert_allclose(together, alone, rtol=1e-6, atol=1e-7)


@pytest.mark.proof("The loss and its gradient take less than half the memory of Keras' way with one-hot labels, V 37,000")
def test_less_than_half_of_the_memory_of_one_hot_labels(size, seen):
    tokens = size(512, full=4096)
    found = compared(keras.backend.backend(), tokens, 37_000)
    seen(f"{tokens} tokens: {found['ours']:.0f} MiB, Keras' {found['keras']:.0f} MiB")
    assert found["ours"] < 0.5 * found["keras"]


# What cannot be meant.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"smoothing": 1.0}, r"`smoothing` must be at least 0 and below 1. Received: smoothing=1.0"),
        ({"smoothing": -0.1}, r"`smoothing` must be at least 0"),
        ({"over": "some"}, r"`over` must be one of .* Received: over='some'"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        SmoothedCrossEntropy(**arguments)


def test_agreement_cannot_be_negative_and_needs_rows():
    with pytest.raises(ValueError, match=r"`agreement` must not be negative. Received: agreement=-1"):
        RDropCrossEntropy(-1)
    with pytest.raises(ValueError, match=r"must be of shape \(B, T\). Received: y_true.shape=\(4,\)"):
        RDropCrossEntropy()(np.ones(4, int), np.ones((4, 9)))


@pytest.mark.parametrize(("labels", "logits"), [((2, 3, 1), (2, 3, 9)), ((2, 4), (2, 3, 9)), ((2, 3, 9), (2, 3, 9))])
def test_labels_and_logits_that_do_not_fit(labels, logits):
    with pytest.raises(ValueError, match=r"Labels must be integers of shape \(B, T\).*y_true.shape"):
        SmoothedCrossEntropy()(np.ones(labels, int), np.ones(logits))
