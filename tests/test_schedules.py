"""Learning rates: the formula, at the updates that a real `fit` makes."""

import keras
import numpy as np
import pytest

from keras_transformer.schedules import InverseSquareRootSchedule, WarmupSchedule
from tests.gradients import numpy_of

COMPILED = keras.backend.backend() == "jax"  # Where step by step is slowest.
UPDATES = 20
WARMUP = 8


def paper_rate(update: int, model_dim=512, warmup_steps=WARMUP, factor=1.0) -> float:
    return factor * model_dim**-0.5 * min(update**-0.5, update * warmup_steps**-1.5)


def peak_rate(update: int, peak=0.01, warmup_steps=WARMUP, initial=0.002) -> float:
    if update <= warmup_steps:
        return initial + (peak - initial) * update / warmup_steps
    return peak * (warmup_steps / update) ** 0.5


def cooled_rate(update: int) -> float:
    return peak_rate(update) * min(1, (UPDATES + 1 - update) / 5)


class NoteRates(keras.callbacks.Callback):
    """Notes the rate that the optimizer has at each batch, and the weight after it."""

    def __init__(self):
        super().__init__()
        self.rates, self.weights = [], []

    def on_train_batch_begin(self, batch, logs=None):
        self.synchronize()
        self.rates.append(float(numpy_of(self.model.optimizer.learning_rate)))

    def on_train_batch_end(self, batch, logs=None):
        self.synchronize()
        self.weights.append(float(numpy_of(self.model.trainable_variables[0])[0, 0]))

    def synchronize(self):
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()


def fitted_rates(schedule, batches_per_update: int) -> NoteRates:
    """Fits a single weight whose gradient is 1 in every batch, for 20 updates."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
    steps = batches_per_update if batches_per_update > 1 else None
    optimizer = keras.optimizers.SGD(schedule, gradient_accumulation_steps=steps)
    model.compile(optimizer, loss=lambda _, outputs: keras.ops.mean(outputs), jit_compile=COMPILED)
    notes, data = NoteRates(), np.ones((UPDATES * batches_per_update, 1), "float32")
    model.fit(data, data, batch_size=1, verbose=0, callbacks=[notes])
    return notes


@pytest.mark.proof("Learning rates are those of the formula at 20 updates of a real fit, with and without accumulation")
@pytest.mark.parametrize("batches_per_update", [1, 3])
@pytest.mark.parametrize(
    ("make", "formula"),
    [
        (lambda steps: WarmupSchedule(512, WARMUP, steps_per_update=steps), paper_rate),
        (lambda steps: WarmupSchedule(64, WARMUP, 2.0, steps), lambda update: paper_rate(update, 64, factor=2.0)),
        (lambda steps: InverseSquareRootSchedule(0.01, WARMUP, 0.002, steps), peak_rate),
        (lambda steps: InverseSquareRootSchedule(0.01, WARMUP, 0.002, steps, UPDATES, 5), cooled_rate),
    ],
    ids=["paper", "factor", "peak", "cooldown"],
)
def test_the_formula_in_a_real_fit(make, formula, batches_per_update, seen):
    notes = fitted_rates(make(batches_per_update), batches_per_update)
    expected = np.array([formula(update) for update in range(1, UPDATES + 1)])
    np.testing.assert_allclose(notes.rates, np.repeat(expected, batches_per_update), rtol=1e-6)

    weights = np.array(notes.weights)[batches_per_update - 1 :: batches_per_update]
    used = -np.diff(weights, prepend=0.0)  # The gradient is 1: each update is the rate itself.
    np.testing.assert_allclose(used, expected, rtol=1e-5)
    error = np.abs(notes.rates / np.repeat(expected, batches_per_update) - 1).max()
    seen(f"{UPDATES} updates of {batches_per_update} batches: largest relative difference {error:.1e}")


def test_the_values_of_the_paper():
    """Base model, 4,000 warm-up steps: 7.0e-4 at the top, and half of it after four times as many updates."""
    schedule = WarmupSchedule(512)
    assert float(schedule(0)) == pytest.approx(512**-0.5 * 4000**-1.5, rel=1e-6)
    assert float(schedule(3999)) == pytest.approx((512 * 4000) ** -0.5, rel=1e-6)
    assert float(schedule(15_999)) == pytest.approx((512 * 16_000) ** -0.5, rel=1e-6)


def test_both_schedules_are_one_curve():
    paper, peak = WarmupSchedule(512, 100), InverseSquareRootSchedule((512 * 100) ** -0.5, 100)
    for step in (0, 1, 50, 98, 99, 100, 101, 5000):
        assert float(paper(step)) == pytest.approx(float(peak(step)), rel=1e-6)


def test_exact_after_many_updates():
    """2^24 batches of 16 an update; a count of batches in float32 would be off by now."""
    schedule = WarmupSchedule(512, 100, steps_per_update=16)
    before, after = (float(schedule(16 * 1000 * 1050 + step)) for step in (-1, 0))
    assert before == pytest.approx(paper_rate(1_050_000, 512, 100), rel=1e-6)
    assert before > after


@pytest.mark.parametrize("schedule", [WarmupSchedule(64, 30, 2.0, 4), InverseSquareRootSchedule(0.005, 30, 1e-7, 4, 200, 50)])
def test_config_round_trip(schedule):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert type(again) is type(schedule)
    assert again.get_config() == schedule.get_config() == vars(schedule)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model_dim": 0}, "`model_dim` must be above 0. Received: model_dim=0"),
        ({"model_dim": 8, "warmup_steps": 0}, "`warmup_steps` must be above 0"),
        ({"model_dim": 8, "steps_per_update": 0}, "`steps_per_update` must be above 0"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        WarmupSchedule(**arguments)


def test_a_peak_must_be_above_nothing():
    with pytest.raises(ValueError, match="`peak_rate` must be above 0"):
        InverseSquareRootSchedule(0.0, 10)


@pytest.mark.parametrize("arguments", [{"cooldown_steps": 5}, {"cooldown_steps": 5, "total_steps": 4}, {"cooldown_steps": -1}])
def test_a_cooldown_is_the_end_of_something(arguments):
    with pytest.raises(ValueError, match=r"`cooldown_steps` are the last ones of `total_steps`.*Received: cooldown_steps="):
        InverseSquareRootSchedule(0.1, 10, **arguments)


def test_no_rate_beyond_the_end():
    schedule = InverseSquareRootSchedule(0.1, 10, total_steps=20, cooldown_steps=5)
    assert float(schedule(19)) > 0 and float(schedule(20)) == float(schedule(500)) == 0
