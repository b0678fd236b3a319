"""What an epoch says of itself in a log file."""

import math
import re

import pytest

from tests.training.test_run_log import Clock, Model, dataset, make_log
from training import progress, trainer
from training.progress import ProgressLines
from training.recipe import read_recipe
from training.run_folder import RunFolder


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watch(tmp_path, clock):
    """A log of epochs of 4 steps and 24,000 target tokens, and what prints progress of it."""
    log = make_log(tmp_path, clock)
    log.dataset = dataset(pairs=1000, tokens=23_000)
    lines = ProgressLines(log, epochs=2, steps=8, clock=clock)
    for callback in (log, lines):
        callback.set_model(Model())
        callback.set_params({"steps": 4})
        callback.on_train_begin()
    return log, lines


def run_epoch(watch, clock, epoch, seconds, steps=range(4)):
    for callback in watch:
        callback.on_epoch_begin(epoch)
    for step in steps:
        for callback in watch:
            callback.on_train_batch_begin(step)
        clock.now += seconds
    for callback in watch:
        callback.on_epoch_end(epoch, {"loss": 2.0})


def test_a_line_every_minute(watch, clock, capsys):
    run_epoch(watch, clock, 0, seconds=60)
    first = capsys.readouterr().out.splitlines()
    assert first == [
        "epoch 1/2, step 1/4, loss 2.0000, 100 tokens/s, about 7.0 minutes left",
        "epoch 1/2, step 2/4, loss 2.0000, 100 tokens/s, about 6.0 minutes left",
        "epoch 1/2, step 3/4, loss 2.0000, 100 tokens/s, about 5.0 minutes left",
    ]
    run_epoch(watch, clock, 1, seconds=30)
    # 270 seconds for 6 steps, and 2 are left.
    assert capsys.readouterr().out == "epoch 2/2, step 2/4, loss 2.0000, 200 tokens/s, about 100 s left\n"


def test_short_epochs_say_nothing(watch, clock, capsys):
    for epoch in range(2):
        run_epoch(watch, clock, epoch, seconds=15)
    assert capsys.readouterr().out == ""


def test_an_epoch_that_goes_on_counts_all_its_steps(watch, clock, capsys):
    log, _ = watch
    log.set_state({"part": {"epoch": 1, "start": 4, "steps": 2, "loss": 4.0, "nll": 4.0}, "step": 6})
    run_epoch(watch, clock, 1, seconds=60, steps=range(2))
    assert capsys.readouterr().out == "epoch 2/2, step 3/4, loss 2.0000, 100 tokens/s, about 60 s left\n"


def test_a_run_prints_them_where_there_is_no_terminal(recipe, monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0)
    trainer.train(read_recipe(recipe), RunFolder("run"))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("epoch ")]
    form = re.compile(r"epoch [12]/2, step [\d,]+/[\d,]+, loss [\d.]+, .* tokens/s, .* left")
    assert lines and all(form.fullmatch(line) for line in lines)
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in lines]
    assert all(math.isfinite(loss) for loss in losses) and losses[-1] > 0
