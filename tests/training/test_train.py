"""A run from recipe to report, stopped and taken up again, on every backend."""

import csv
import json

import keras
import numpy as np
import pytest

import keras_transformer as kt
from training.recipe import read_recipe
from training.run_folder import RunFolder
from training.train import main
from training.trainer import train


class KilledError(Exception):
    """What stands for a process that ends without warning."""


class Kill(keras.callbacks.Callback):
    """Ends training before a step of an epoch, without a word to anyone."""

    def __init__(self, epoch, step):
        super().__init__()
        self.moment = (epoch, step)

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if (self.epoch, batch) == self.moment:
            raise KilledError


def weights_of(run):
    return kt.Translator.load(run / "translator").model.get_weights()


@pytest.fixture
def recipe_without_tests(recipe):
    """A recipe that only trains: what it takes to translate is tested elsewhere."""
    lines = recipe.read_text().splitlines(keepends=True)
    recipe.write_text("".join(line for line in lines if not line.startswith(("validation_", "test_"))))
    return recipe


@pytest.mark.proof("A run that was stopped ends with the translator and the history of the run that never was")
def test_a_run_and_one_that_was_stopped(recipe_without_tests, tmp_path, seen):
    recipe = str(recipe_without_tests)
    assert main([recipe, "--output", "whole"]) == 0
    with pytest.raises(KilledError):
        train(read_recipe(recipe), RunFolder("stopped"), extra_callbacks=[Kill(epoch=1, step=3)], verbose=False)
    assert not (tmp_path / "stopped" / "report.md").exists()
    assert main([recipe, "--output", "stopped", "--resume"]) == 0

    weights = zip(*(weights_of(tmp_path / name) for name in ("whole", "stopped")), strict=True)
    difference = max(np.abs(whole - stopped).max() for whole, stopped in weights)
    seen(f"largest difference of a weight {difference:.1e}")
    assert difference == 0 if keras.backend.backend() != "torch" else difference < 1e-6
    histories = [list(csv.DictReader((tmp_path / name / "history.csv").open())) for name in ("whole", "stopped")]
    for whole, stopped in zip(*histories, strict=True):
        for name in ("epoch", "updates", "tokens", "learning_rate", "loss", "perplexity"):
            assert float(whole[name]) == pytest.approx(float(stopped[name]), rel=1e-5)
    parts = [list(csv.DictReader((tmp_path / name / "steps.csv").open())) for name in ("whole", "stopped")]
    for whole, stopped in zip(*parts, strict=True):
        assert float(whole["loss"]) == pytest.approx(float(stopped["loss"]), rel=1e-4)

    assert {path.name for path in (tmp_path / "whole").iterdir()} == {
        ".lock", "averages", "checkpoints", "curves.png", "history.csv", "recipe.toml", "report.md", "results.json",
        "steps.csv", "tokenizer.model", "translator",
    }  # fmt: skip
    assert json.loads((tmp_path / "whole" / "results.json").read_text())["training"]["epochs"] == 2


def test_a_run_does_not_go_on_with_other_pairs(recipe_without_tests, tmp_path, capsys):
    recipe, targets = str(recipe_without_tests), tmp_path / "train.reversed"
    with pytest.raises(KilledError):
        train(read_recipe(recipe), RunFolder("run"), extra_callbacks=[Kill(epoch=1, step=3)], verbose=False)
    before = targets.read_text()
    targets.write_text("".join(reversed(before.splitlines(keepends=True))))
    assert main([recipe, "--output", "run", "--resume"]) == 2
    *_, message = capsys.readouterr().err.splitlines()  # The rate of such a short training is a warning.
    assert message.startswith("error: ") and "was written: the target sentences. " in message and "--output" not in message
    assert not (tmp_path / "run" / "report.md").exists()
    targets.write_text(before)
    assert main([recipe, "--output", "run", "--resume"]) == 0
    assert (tmp_path / "run" / "report.md").exists()
