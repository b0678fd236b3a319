"""Several batches that make one update: the update of the one batch that they are together."""

import warnings

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keras_transformer as kt
from keras_transformer.data import parallel_dataset
from keras_transformer.data.accumulation import filled_up
from keras_transformer.data.plan import Planner
from keras_transformer.losses import SmoothedCrossEntropy
from keras_transformer.metrics import Perplexity
from tests.data.conftest import generated_lines
from tests.gradients import numpy_of

COMPILED = keras.backend.backend() == "jax"  # Where step by step is slowest.
EAGERLY = keras.backend.backend() == "tensorflow"  # To trace a step takes longer than to take a few.
RATE = 4096.0  # So large that rounding a weight is nothing beside its step.


def make(tokenizer, count=60, **options) -> kt.data.ParallelDataset:
    sources, targets = generated_lines(count)
    return parallel_dataset(sources, targets, tokenizer, **{"batch_tokens": 128, "num_shapes": 2, **options})


def same(batch, other) -> bool:
    pairs = zip(keras.tree.flatten(batch), keras.tree.flatten(other), strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


# Plans.


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=100),
    st.sampled_from([1, 4, None]),
    st.integers(1, 7),
)
def test_every_update_of_an_epoch_is_complete(lengths, num_shapes, batches_per_update):
    source, target = np.array(lengths).T
    plan = Planner(source, target, 60, num_shapes, seed=0).plan(1)
    filled = filled_up(plan, batches_per_update)
    assert len(filled) % batches_per_update == 0 and len(filled) - len(plan) < batches_per_update
    for step in range(len(plan)):
        assert filled.batch(step)[0].tolist() == plan.batch(step)[0].tolist()
        assert filled.batch(step)[1] == plan.batch(step)[1]
    for step in range(len(plan), len(filled)):
        numbers, shape = filled.batch(step)
        assert len(numbers) == 0 and shape in plan.shapes


# Batches.


@pytest.mark.parametrize("sampling", [None, kt.SubwordSampling(0.3)], ids=["usual", "sampled"])
def test_a_batch_counts_as_much_as_its_share_of_the_tokens_of_the_update(tokenizer, sampling):
    dataset = make(tokenizer, batches_per_update=3, subword_sampling=sampling)
    for epoch in (0, 1):
        batches = list(dataset.batches(epoch))
        assert len(batches) == len(dataset) and len(batches) % 3 == 0
        for first in range(0, len(batches), 3):
            update = batches[first : first + 3]
            tokens = np.array([(labels != 0).sum() for _, labels, _ in update])
            for (_, labels, weights), expected in zip(update, 3 * tokens / tokens.sum(), strict=True):
                assert weights.dtype == np.float32 and weights.shape == labels.shape
                np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_the_last_update_is_filled_up_with_padding(tokenizer):
    plain = make(tokenizer)
    number = next(number for number in range(2, 9) if len(plain) % number)
    dataset = make(tokenizer, batches_per_update=number)
    batches = list(dataset.batches(2))
    for (inputs, labels, _), expected in zip(batches, plain.batches(2), strict=False):
        assert same((inputs, labels), expected)
    assert len(batches) > len(plain)
    for inputs, labels, weights in batches[len(plain) :]:
        assert not any(array.any() for array in (inputs["source_ids"], inputs["target_ids"], labels, weights))
        assert (*inputs["source_ids"].shape, labels.shape[1]) in plain.shapes()
    assert set(dataset.shapes()) == set(plain.shapes())


def test_any_step_can_be_had_alone(tokenizer):
    dataset = make(tokenizer, batches_per_update=3, subword_sampling=kt.SubwordSampling(0.3))
    batches = list(dataset.batches(1))
    assert same(make(tokenizer, batches_per_update=3, subword_sampling=kt.SubwordSampling(0.3)).batch(1, 4), batches[4])
    rest = list(dataset.from_step(4).batches(1))
    assert len(rest) == len(batches) - 4
    assert all(same(batch, expected) for batch, expected in zip(rest, batches[4:], strict=True))


def test_sentences_are_sampled_once(tokenizer, monkeypatch):
    dataset = make(tokenizer, batches_per_update=3, subword_sampling=kt.SubwordSampling(0.3))
    drawn, sample = [], dataset.pair_ids.sample
    monkeypatch.setattr(dataset.pair_ids, "sample", lambda side, *args, **kw: drawn.append(side) or sample(side, *args, **kw))
    list(dataset.batches(0))
    real = len(dataset.without_updates())
    assert (drawn.count("source"), drawn.count("target")) == (real, real)


def test_shards_agree_on_the_weights(tokenizer):
    whole = make(tokenizer, batches_per_update=3)
    shards = [make(tokenizer, batches_per_update=3, shard=(index, 2)) for index in (0, 1)]
    for (_, labels, weights), *parts in zip(whole.batches(0), *(shard.batches(0) for shard in shards), strict=True):
        assert sum((part[1] != 0).sum() for part in parts) == (labels != 0).sum()
        for _, its_labels, its_weights in parts:
            assert its_weights.shape == its_labels.shape and set(its_weights.flat) == set(weights.flat)


# Updates.


@pytest.fixture
def model(tokenizer):
    return kt.Transformer(
        kt.TransformerConfig(
            vocabulary_size=tokenizer.vocabulary_size,
            model_dim=8,
            feed_forward_dim=16,
            num_heads=2,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dropout=0.0,
        )
    )


def gradient(model, x, y=None, batches_per_update=None, run_eagerly=EAGERLY):
    """Returns the gradient of the one update that `fit` makes of all the data; the model stays as it was."""
    optimizer = keras.optimizers.SGD(RATE, gradient_accumulation_steps=batches_per_update)
    compiled = COMPILED and not run_eagerly
    model.compile(optimizer, SmoothedCrossEntropy(0.1), jit_compile=compiled, run_eagerly=run_eagerly)
    before = [numpy_of(weight).copy() for weight in model.trainable_variables]
    model.fit(x, y, batch_size=None if y is None else len(y), shuffle=False, verbose=0)
    after = [numpy_of(weight).copy() for weight in model.trainable_variables]
    for weight, value in zip(model.trainable_variables, before, strict=True):
        weight.assign(value)
    assert int(numpy_of(model.optimizer.iterations)) == 1
    return np.concatenate([(a - b).ravel() / RATE for a, b in zip(before, after, strict=True)])


def in_one(batches, more=0):
    """Puts the rows of batches into one batch as long as the longest of them, with some more rows and columns of padding."""

    def joined(arrays):
        length = max(array.shape[1] for array in arrays) + more
        arrays = [np.pad(array, ((0, 0), (0, length - array.shape[1]))) for array in arrays]
        return np.pad(np.concatenate(arrays), ((0, more), (0, 0)))

    inputs = [batch[0] for batch in batches]
    together = {name: joined([given[name] for given in inputs]) for name in ("source_ids", "target_ids")}
    return together, joined([batch[1] for batch in batches])


@pytest.mark.proof("Padding, bucketing and accumulation leave an update unchanged (1e-6), whatever the tokens in each part")
def test_the_update_of_many_batches_is_that_of_one(tokenizer, model, size, seen):
    count, eagerly = size(40, full=400), size(EAGERLY, full=False)
    plain = make(tokenizer, count)
    number = len(plain) + 1  # So that one of them is filled up.
    batches = list(plain.batches(0))
    expected = gradient(model, *in_one(batches), run_eagerly=eagerly)
    ways = {
        "more padding": gradient(model, *in_one(batches, more=7), run_eagerly=eagerly),
        f"{number} batches": gradient(model, make(tokenizer, count, batches_per_update=number), None, number, eagerly),
    }
    bucketed = make(tokenizer, count, num_shapes=3, batch_tokens=96)
    bucketed = make(tokenizer, count, num_shapes=3, batch_tokens=96, batches_per_update=len(bucketed))
    ways[f"{len(bucketed)} batches of other shapes"] = gradient(model, bucketed, None, len(bucketed), eagerly)
    for way, found in ways.items():
        difference = np.linalg.norm(found - expected) / np.linalg.norm(expected)
        seen(f"{way}: {difference:.1e}")
        assert difference < 1e-6, way
    tokens = [int((labels != 0).sum()) for _, labels in batches]
    seen(f"{min(tokens)} to {max(tokens)} tokens a batch")
    assert max(tokens) > 1.3 * min(tokens)


def test_without_weights_the_update_would_be_another(tokenizer, model):
    """What the proof above is there to find: Keras alone counts batches, not tokens."""
    plain = make(tokenizer, 40)
    expected = gradient(model, *in_one(list(plain.batches(0))))
    with pytest.warns(UserWarning, match="Batches with few tokens will count as much"):
        found = gradient(model, plain, None, len(plain))
    assert np.linalg.norm(found - expected) > 1e-3 * np.linalg.norm(expected)


def test_a_plain_keras_model_is_given_the_weights_too(tokenizer):
    ids = {name: keras.Input((None,), name=name, dtype="int32") for name in ("source_ids", "target_ids")}
    logits = keras.layers.Embedding(tokenizer.vocabulary_size, tokenizer.vocabulary_size)(ids["target_ids"])
    model = keras.Model(ids, logits)
    plain = make(tokenizer, 40)
    expected = gradient(model, *in_one(list(plain.batches(0))))
    found = gradient(model, make(tokenizer, 40, batches_per_update=len(plain)), None, len(plain))
    assert np.linalg.norm(found - expected) < 1e-6 * np.linalg.norm(expected)


def test_evaluation_has_neither_weights_nor_added_batches(tokenizer, model):
    weighted, plain = make(tokenizer, batches_per_update=4), make(tokenizer)
    model.compile("sgd", SmoothedCrossEntropy(), metrics=[Perplexity()], jit_compile=COMPILED)
    assert model.evaluate(weighted, verbose=0) == pytest.approx(model.evaluate(plain, verbose=0), rel=1e-6)
    assert len(weighted.without_updates()) == len(plain) and len(weighted.without_updates()[0]) == 2


def test_fit_with_accumulation_validates(tokenizer, model):
    dataset, validation = make(tokenizer, 20, batches_per_update=2), make(tokenizer, 10, batches_per_update=2)
    optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)
    model.compile(optimizer, SmoothedCrossEntropy(), jit_compile=COMPILED)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        history = model.fit(dataset, validation_data=validation, epochs=2, verbose=0).history
    assert int(numpy_of(optimizer.iterations)) == 2 * len(dataset) // 2
    assert history["val_loss"][1] == pytest.approx(model.evaluate(validation, verbose=0), rel=1e-6)


# What cannot be meant.


def test_dataset_and_optimizer_must_agree(tokenizer, model):
    model.compile(keras.optimizers.SGD(0.1, gradient_accumulation_steps=3), SmoothedCrossEntropy(), jit_compile=False)
    with pytest.raises(ValueError, match="batches_per_update=2, gradient_accumulation_steps=3"):
        model.fit(make(tokenizer, batches_per_update=2), verbose=0)


def test_an_optimizer_with_loss_scaling_is_looked_into(tokenizer, model):
    inner = keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)
    model.compile(keras.optimizers.LossScaleOptimizer(inner), SmoothedCrossEntropy(), jit_compile=False)
    with pytest.raises(ValueError, match="batches_per_update=4, gradient_accumulation_steps=2"):
        model.fit(make(tokenizer, batches_per_update=4), verbose=0)


def test_an_epoch_must_not_end_within_an_update(tokenizer, model):
    model.compile(keras.optimizers.SGD(0.1, gradient_accumulation_steps=2), SmoothedCrossEntropy(), jit_compile=False)
    with pytest.raises(ValueError, match=r"`steps_per_epoch` must be a multiple.*steps_per_epoch=3, batches_per_update=2"):
        model.fit(make(tokenizer, batches_per_update=2), steps_per_epoch=3, verbose=0)


def test_an_update_has_at_least_one_batch(tokenizer):
    with pytest.raises(ValueError, match="`batches_per_update` must be a positive integer"):
        make(tokenizer, batches_per_update=0)


def test_the_description_says_how_many_make_an_update(tokenizer):
    assert "; 3 make an update" in make(tokenizer, batches_per_update=3).describe()
    assert "update" not in make(tokenizer).describe()
