"""Metrics of real tokens: the values of numpy over a whole epoch, whatever the batches and however many the tokens."""

import keras
import numpy as np
import pytest

from keras_transformer.losses import SmoothedCrossEntropy
from keras_transformer.metrics import Perplexity, TokenAccuracy, added
from tests.gradients import numpy_of


def log_probabilities(labels, logits) -> np.ndarray:
    """Returns those of real labels, from float64 sums."""
    logits = logits.astype("float64")
    logs = logits - logits.max(-1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(-1, keepdims=True))
    return np.take_along_axis(logs, labels[..., None], -1)[..., 0][labels != 0]


def unequal_batches(random, vocabulary_size=11):
    """Batches of different rows, lengths and shares of padding; one has no token at all."""
    for rows, length, share in ((3, 5, 0.2), (1, 9, 0.0), (2, 4, 1.0), (8, 2, 0.5)):
        labels = random.integers(1, vocabulary_size, (rows, length)) * (random.random((rows, length)) >= share)
        yield labels, random.normal(size=(rows, length, vocabulary_size)).astype("float32") * 3


def test_the_values_of_an_epoch_of_unequal_batches(random):
    accuracy, perplexity, right, logs = TokenAccuracy(), Perplexity(), [], []
    for labels, logits in unequal_batches(random):
        accuracy.update_state(labels, logits)
        perplexity.update_state(labels, logits)
        right.append((logits.argmax(-1) == labels)[labels != 0])
        logs.append(log_probabilities(labels, logits))
    assert float(accuracy.result()) == pytest.approx(np.concatenate(right).mean(), rel=1e-6)
    assert float(perplexity.result()) == pytest.approx(np.exp(-np.concatenate(logs).mean()), rel=1e-6)


def test_sample_weights_have_no_influence(random):
    labels, logits = next(unequal_batches(random))
    for metric in (TokenAccuracy(), Perplexity()):
        plain = float(metric(labels, logits))
        metric.reset_state()
        assert float(metric(labels, logits, sample_weight=np.full(labels.shape, 7.0))) == plain


@pytest.mark.parametrize("pad_id", [4, -1, 9])
def test_another_pad_id_even_outside_of_the_vocabulary(pad_id):
    logits = keras.ops.one_hot([[1, 0, 4]], 5)
    assert float(TokenAccuracy(pad_id=pad_id)([[1, 1, pad_id]], logits)) == pytest.approx(1 / 2)
    probability = np.exp([1.0, 0.0]) / (np.e + 4)
    expected = np.exp(-np.log(probability).mean())
    assert float(Perplexity(pad_id=pad_id)([[1, 1, pad_id]], logits)) == pytest.approx(expected, rel=1e-6)


def test_no_token_at_all():
    assert float(TokenAccuracy().result()) == 0.0
    assert float(Perplexity().result()) == 1.0
    assert float(Perplexity()(np.zeros((2, 3), int), np.zeros((2, 3, 4)))) == 1.0


def test_reset():
    metric = TokenAccuracy()
    metric([[1]], [[[0.0, 1.0]]])
    metric.reset_state()
    assert float(metric([[1]], [[[1.0, 0.0]]])) == 0.0


def half_right(tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns labels and logits of which the first half is right; the last token is padding."""
    labels, logits = np.ones((1, tokens), "int32"), np.zeros((1, tokens, 2), "float32")
    logits[:, : tokens // 2, 1] = 1.0
    labels[0, -1] = 0
    return labels, logits


def as_pair(number: float) -> np.ndarray:
    return np.array([np.float32(number), number - float(np.float32(number))], "float32")


@pytest.mark.proof("TokenAccuracy and Perplexity are exact beyond 2^24 tokens, where float32 stops counting")
def test_exact_beyond_what_float32_can_count(size, seen):
    """17 batches of 2^20 tokens, of which a sample takes for granted all but one, and then four of four tokens."""
    accuracy, perplexity = TokenAccuracy(), Perplexity()
    large = size(1, full=17)
    right, wrong = np.log1p(np.exp(-1)), np.log(2)
    for metric, total in ((accuracy, 2**19), (perplexity, 2**19 * right + (2**19 - 1) * wrong)):
        metric.total.assign(as_pair((17 - large) * total))
        metric.count.assign(as_pair((17 - large) * (2**20 - 1)))
        for tokens in [2**20] * large + [4] * 4:
            metric.update_state(*half_right(tokens))

    count, num_right = 17 * (2**20 - 1) + 12, 17 * 2**19 + 8
    assert count > 2**24 and int(np.float32(count)) != count
    assert numpy_of(accuracy.count).astype("float64").sum() == numpy_of(perplexity.count).astype("float64").sum() == count
    assert numpy_of(accuracy.total).astype("float64").sum() == num_right
    assert float(accuracy.result()) == pytest.approx(num_right / count, rel=2e-7)
    expected = np.exp((num_right * right + (count - num_right) * wrong) / count)
    assert float(perplexity.result()) == pytest.approx(expected, rel=1e-6)
    seen(f"{count:,} tokens counted one by one, {large * 2**20:,} of them batch by batch")


def test_in_the_evaluation_of_a_model(random):
    """Compiled as Keras does it by itself."""
    model = keras.Sequential([keras.Input((None, 11)), keras.layers.Identity()])
    model.compile(loss=SmoothedCrossEntropy(), metrics=[TokenAccuracy(), Perplexity()])
    labels, logits = zip(*[batch for batch in unequal_batches(random) if batch[0].any()][:2], strict=True)
    labels = np.concatenate([np.pad(label, ((0, 0), (0, 9 - label.shape[1]))) for label in labels])
    logits = np.concatenate([np.pad(logit, ((0, 0), (0, 9 - logit.shape[1]), (0, 0))) for logit in logits])
    results = model.evaluate(logits, labels, batch_size=2, verbose=0, return_dict=True)
    right = (logits.argmax(-1) == labels)[labels != 0]
    assert results["token_accuracy"] == pytest.approx(right.mean(), rel=1e-6)
    assert results["perplexity"] == pytest.approx(np.exp(-log_probabilities(labels, logits).mean()), rel=1e-6)


def compiled(function):
    """Returns a function as `fit` runs it: compiled where the backend does that."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.function(function, jit_compile=True)
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    return function


@pytest.mark.parametrize("wrapped", [lambda function: function, compiled], ids=["plain", "compiled"])
def test_a_long_sum_loses_nothing(wrapped, random):
    """A billion and a thousand small numbers, each of which float32 alone would round away."""
    add, values = wrapped(added), random.uniform(0.1, 1.0, 1000).astype("float32")
    pair = keras.ops.array([1e9, 0.0], "float32")
    for value in values:
        pair = add(pair, keras.ops.array(value))
    assert numpy_of(pair).astype("float64").sum() == pytest.approx(1e9 + values.astype("float64").sum(), rel=1e-12)
    assert np.float32(1e9) + values.max() == np.float32(1e9)


@pytest.mark.parametrize("metric", [TokenAccuracy(pad_id=3, name="right"), Perplexity(pad_id=5)])
def test_config_round_trip(metric):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
    assert type(again) is type(metric)
    assert again.get_config() == metric.get_config() == {"pad_id": metric.pad_id, "name": metric.name}


def test_logits_of_half_precision_are_computed_in_float32(random):
    logits = keras.ops.cast(random.normal(size=(1, 4, 300)) * 20, "bfloat16")
    labels = random.integers(1, 300, (1, 4))
    exact = np.exp(-log_probabilities(labels, numpy_of(keras.ops.cast(logits, "float32"))).mean())
    assert float(Perplexity()(labels, logits)) == pytest.approx(exact, rel=1e-5)
