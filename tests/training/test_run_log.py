"""What a run notes of itself, and the end after a number of steps."""

import csv
import math
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from training.run_log import RunLog, StopAfter


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def dataset(pairs=10, tokens=90, batches=4):
    """Stands for a dataset of which only the size matters."""
    statistics = SimpleNamespace(tokens=lambda side: tokens)
    return SimpleNamespace(statistics=statistics, num_pairs=pairs, plan=lambda epoch: [None] * batches)


class Model:
    """Stands for a model whose mean loss of an epoch is a number that a test sets."""

    steps_per_execution = 1
    loss = 2.0

    def get_metrics_result(self):
        return {"loss": self.loss, "perplexity": math.exp(self.loss)}


def make_log(folder, clock, rate=lambda update: 0.0):
    return RunLog(folder / "history.csv", folder / "steps.csv", dataset(), batches_per_update=2, rate=rate, clock=clock)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log(tmp_path, clock):
    log = make_log(tmp_path, clock, rate=lambda update: update / 1000)
    log.set_model(Model())
    log.set_params({"steps": 4})
    return log


def run_epoch(log, clock, epoch, steps=range(4), train=10.0, validation=3.0, **logs):
    log.on_epoch_begin(epoch)
    for step in steps:
        log.on_train_batch_begin(step)
        clock.now += train / 4
    log.on_test_begin()
    clock.now += validation
    log.on_epoch_end(epoch, {"loss": 2.0, **logs})


def test_a_row_an_epoch(log, clock, tmp_path):
    log.on_train_begin()
    run_epoch(log, clock, 0)
    run_epoch(log, clock, 1, val_bleu=17.5)
    rows = list(csv.DictReader((tmp_path / "history.csv").open()))
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert [row["updates"] for row in rows] == ["2", "4"]
    assert [row["learning_rate"] for row in rows] == ["0.002", "0.004"]
    assert [row["tokens"] for row in rows] == ["100", "200"]
    assert [row["train_seconds"] for row in rows] == ["10.0", "20.0"]
    assert [row["seconds"] for row in rows] == ["13.0", "26.0"]
    assert [row["val_bleu"] for row in rows] == ["", "17.5"]


def test_goes_on_from_its_state(log, clock, tmp_path):
    log.on_train_begin()
    run_epoch(log, clock, 0)
    log.on_epoch_begin(1)
    for step in range(2):
        log.on_train_batch_begin(step)
        clock.now += 1.0
    log.on_train_batch_begin(2)
    state = log.get_state()
    assert state["step"] == 6 and state["train_seconds"] == 12.0

    clock.now += 1000.0  # The process was killed, and another began.
    other = make_log(tmp_path, clock)
    other.set_model(log.model)
    other.set_params({"steps": 2})
    other.on_train_begin()
    other.set_state(state)
    run_epoch(other, clock, 1, steps=range(2), train=8.0)
    assert [row["updates"] for row in other.rows] == [2, 4]
    assert other.rows[1]["train_seconds"] == 16.0
    assert other.rows[1]["seconds"] == 13.0 + 2.0 + 4.0 + 3.0


def test_tokens_of_a_part_of_an_epoch(log, clock):
    log.on_train_begin()
    run_epoch(log, clock, 0, steps=range(3))
    log.set_params({"steps": None})
    assert log.rows[0]["tokens"] == 75


def test_parts_of_epochs_have_their_own_means(log, clock, tmp_path):
    log.on_train_begin()
    log.on_epoch_begin(0)
    for step, mean in enumerate([None, 8.0, 6.0, 5.0]):  # Of the steps before: losses of 8, 4 and 3, and at last 1.
        log.model.loss = mean
        log.on_train_batch_begin(step)
    log.on_epoch_end(0, {"loss": 4.0, "perplexity": math.exp(4.0)})
    rows = list(csv.DictReader((tmp_path / "steps.csv").open()))
    assert [float(row["loss"]) for row in rows] == pytest.approx([8, 4, 3, 1])
    assert [float(row["perplexity"]) for row in rows] == pytest.approx([math.exp(loss) for loss in (8, 4, 3, 1)])
    assert [row["updates"] for row in rows] == ["0", "1", "1", "2"]

    log.on_epoch_begin(1)
    log.on_train_batch_begin(0)
    log.model.loss = 0.5
    log.on_train_batch_begin(1)
    assert log.parts[-1]["loss"] == pytest.approx(0.5)


class TestStopAfter:
    def make_model(self):
        model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.0), "mse")
        return model

    @pytest.mark.parametrize(("steps", "epochs"), [(1, 1), (4, 1), (6, 2), (8, 2)])
    def test_ends_after_exactly_as_many_steps(self, steps, epochs):
        model, stop = self.make_model(), StopAfter(steps)
        history = model.fit(np.ones((8, 1)), np.ones((8, 1)), batch_size=2, epochs=9, verbose=0, callbacks=[stop])
        assert int(model.optimizer.iterations) == steps
        assert len(history.epoch) == epochs
        assert stop.get_state() == {"step": steps, "stopped": True}

    def test_is_not_done_before_the_last_step_is(self):
        model, stop, states = self.make_model(), StopAfter(3), []
        look = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: states.append(stop.get_state()))
        model.fit(np.ones((8, 1)), np.ones((8, 1)), batch_size=2, epochs=2, verbose=0, callbacks=[stop, look])
        assert states == [{"step": done, "stopped": False} for done in range(3)]
