"""Who trains in the folder of a run: one process, and in it the one that writes."""

import json
import re
import warnings

import pytest

from training import trainer
from training.recipe import read_recipe
from training.run_folder import RunFolder
from training.trainer import train


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path / "run")


def test_nobody_trains_where_another_one_does(recipe, run, monkeypatch):
    def train_again(*_):
        monkeypatch.setattr(trainer, "carry_out", lambda *_: {"done": True})
        return train(read_recipe(recipe), RunFolder(run.directory), resume=True)

    monkeypatch.setattr(trainer, "carry_out", train_again)
    with pytest.raises(ValueError, match="Another process is training in"):
        train(read_recipe(recipe), run)
    assert train(read_recipe(recipe), run, resume=True) == {"done": True}


def test_of_several_processes_the_one_that_writes_holds_the_folder(recipe, run, monkeypatch):
    monkeypatch.setattr(trainer, "carry_out", lambda *_: {})
    train(read_recipe(recipe), run)
    with run.held():
        monkeypatch.setattr(trainer, "is_writer", lambda: False)
        assert train(read_recipe(recipe), run) == {}


def test_a_finished_run_is_only_read(recipe, run):
    with run.begin(read_recipe(recipe), resume=False):
        pass
    run.results.write_text(json.dumps({"recipe": "digits"}))
    run.report.touch()
    with run.held():  # Nobody else needs to hold it.
        assert train(read_recipe(recipe), run, resume=True) == {"recipe": "digits"}


@pytest.mark.parametrize(("folder", "command"), [("run\udcff", ""), ("run", "python -m training.train x\udcff.toml")])
def test_a_name_that_the_report_cannot_hold_is_said_before_any_work(recipe, tmp_path, folder, command):
    with pytest.raises(ValueError, match=r"A run's files are UTF-8.*\\udcff"):
        train(read_recipe(recipe), RunFolder(tmp_path / folder), command=command)
    assert not (tmp_path / folder).exists()


def test_a_run_goes_on_with_whatever_values_it_began(recipe, run, monkeypatch):
    monkeypatch.setattr(trainer, "carry_out", lambda *_: {"done": True})
    folder = '/data/\x7f "old" \\ \t\u2028 x'
    odd = read_recipe(recipe, ["data.max_ratio=inf", f"data.folder={folder}"])
    for resume in (False, True):
        assert train(odd, run, resume=resume) == {"done": True}
    assert (read_recipe(run.recipe).data.max_ratio, str(read_recipe(run.recipe).data.folder)) == (float("inf"), folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["warmup_updates=4000"], r"The learning rate rises for 4,000 of \d+ updates. Lower warmup_updates to \d+"),
        (
            ["model_dim=128", "feed_forward_dim=1024", "warmup_updates=1"],
            r"The model has [\d,]+ parameters for a text of \d+ tokens",
        ),
        (["warmup_updates=1"], None),
    ],
)
def test_what_does_not_fit_the_text_is_a_warning(recipe, run, settings, message, monkeypatch):
    monkeypatch.setattr(trainer.callbacks, "fit", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with warnings.catch_warnings(record=True) as caught, pytest.raises(KeyboardInterrupt):
        warnings.simplefilter("always", UserWarning)
        train(read_recipe(recipe, settings), run, verbose=False)
    said = [str(warning.message) for warning in caught if "training.new" in str(warning.message)]
    assert len(said) == (message is not None)
    if message:
        assert re.match(message, said[0])
