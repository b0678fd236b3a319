"""A training step in parts: the same update, and the same logs, as the step in one."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.losses import SmoothedCrossEntropy
from tests.gradients import numpy_of
from tests.user_blocks import small_config

pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only TensorFlow divides a batch")


def batch(random, rows: int):
    """Sentences of lengths that differ, so that parts have different numbers of tokens."""
    target = random.integers(4, 37, (rows, 7)).astype("int32")
    labels = np.where(np.arange(7) < random.integers(1, 8, (rows, 1)), target, 0)
    return {"source_ids": random.integers(4, 37, (rows, 5)).astype("int32"), "target_ids": target}, labels


def trained(data, monkeypatch, parts: int, **arguments):
    """Trains a model with batches in so many parts; returns the logs and the weights."""
    monkeypatch.setattr("keras_transformer.models.divided_step.num_parts", lambda: parts)
    keras.utils.set_random_seed(3)
    model = kt.Transformer(small_config(num_encoder_layers=1, num_decoder_layers=1, dropout=0.0))
    options = {
        "jit_compile": False,
        "loss": SmoothedCrossEntropy(0.1),
        "metrics": [kt.metrics.TokenAccuracy(), kt.metrics.Perplexity()],
    }
    model.compile(optimizer=keras.optimizers.SGD(0.1), **{**options, **arguments})
    logs = [model.train_on_batch(*one, return_dict=True) for one in data]
    return logs, [numpy_of(weight) for weight in model.weights]


@pytest.mark.proof("A training step whose batch is divided among threads makes the update of the whole batch, within 1e-6")
@pytest.mark.parametrize(("parts", "weighted"), [(2, False), (3, True)])
def test_parts_make_the_same_update(parts, weighted, random, monkeypatch, seen):
    data = [batch(random, rows) for rows in (5, 1)]  # (A batch of one leaves a part empty.)
    if weighted:
        data = [(x, y, random.uniform(0.5, 2.0, y.shape).astype("float32")) for x, y in data]
    expected_logs, expected = trained(data, monkeypatch, 1)
    logs, found = trained(data, monkeypatch, parts)
    difference = max(np.abs(a - b).max() for a, b in zip(found, expected, strict=True))
    seen(f"{parts} parts, weights of tokens {weighted}: {difference:.1e} after {len(data)} updates")
    assert difference < 1e-6
    for one, other in zip(logs, expected_logs, strict=True):
        assert one == pytest.approx(other, rel=1e-5)


def test_a_loss_that_knows_no_parts_is_computed_in_one(random, monkeypatch):
    data = [batch(random, 4)]
    loss = {"loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}
    for found, expected in zip(trained(data, monkeypatch, 2, **loss)[1], trained(data, monkeypatch, 1, **loss)[1], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_compiled_step_stays_in_one(random, monkeypatch):
    def fail(*arguments):
        raise AssertionError

    monkeypatch.setattr("keras_transformer.models.divided_step.divided_train_step", fail)
    for changes in ({"jit_compile": True}, {"run_eagerly": True}):
        trained([batch(random, 4)], monkeypatch, 2, **changes)
    with pytest.raises(AssertionError):
        trained([batch(random, 4)], monkeypatch, 2)


SCRIPT = """
import keras_transformer as kt
kt.parallel_sentences(2)
from keras_transformer.threads import num_parts
print("parts", num_parts())
"""


def test_the_call_divides_steps():
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow"}
    result = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "parts 2"
