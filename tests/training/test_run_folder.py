"""When a run may begin in a folder, and when it goes on."""

import errno
import os

import pytest

from keras_transformer import locks
from training.recipe import read_recipe
from training.run_folder import RunFolder, default_output


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path / "run")


def begin(run, recipe, resume, trained=True):
    """Begins a run that ends at once, after its first checkpoint or before it."""
    with run.begin(recipe, resume):
        if trained:
            (run.checkpoints / "checkpoint-1").mkdir(parents=True, exist_ok=True)


def test_a_new_run_notes_its_recipe(recipe, run):
    begin(run, read_recipe(recipe), resume=False)
    assert read_recipe(run.recipe).to_toml() == read_recipe(recipe).to_toml()


def test_resume_starts_a_run_that_has_not_begun(recipe, run):
    begin(run, read_recipe(recipe), resume=True)
    assert run.recipe.is_file()
    begin(run, read_recipe(recipe), resume=True)


def test_without_resume_a_run_that_is_there_is_an_error(recipe, run):
    begin(run, read_recipe(recipe), resume=False)
    with pytest.raises(ValueError, match=r"There is a run in .* already. Add --resume to go on with it"):
        begin(run, read_recipe(recipe), resume=False)


def test_a_changed_recipe_is_an_error_that_shows_the_difference(recipe, run):
    begin(run, read_recipe(recipe), resume=False)
    changed = read_recipe(recipe, ["epochs=9", "dropout=0.5"])
    with pytest.raises(ValueError, match="goes on with the recipe it began with") as raised:
        begin(run, changed, resume=True)
    lines = str(raised.value).splitlines()[1:]
    assert lines[0] == f"--- {run.recipe}" and lines[1] == "+++ digits, now"
    assert lines[2:] == ["+dropout = 0.5", "-epochs = 2", "+epochs = 9"]


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_of_something_else_is_left_alone(recipe, run, resume):
    run.directory.mkdir()
    (run.directory / "thesis.txt").write_text("precious")
    with pytest.raises(ValueError, match="is not empty and has no recipe"):
        begin(run, read_recipe(recipe), resume=resume)
    assert [path.name for path in run.directory.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("resume", [False, True])
def test_what_a_killed_process_left_is_no_obstacle(recipe, run, resume):
    run.directory.mkdir()
    for name in (".recipe.toml.0123456789abcdef", ".lock"):
        (run.directory / name).write_text("half")
    begin(run, read_recipe(recipe), resume=resume)
    assert run.recipe.is_file()


def test_one_process_at_a_time(recipe, run):
    begin(run, read_recipe(recipe), resume=False)
    with run.held(), pytest.raises(ValueError, match=r"Another process is training in .*run\. Wait until it has ended"):
        RunFolder(run.directory).held()
    with RunFolder(run.directory).held():
        assert run.lock.is_file()


@pytest.mark.parametrize("resume", [False, True])
def test_of_two_that_begin_at_once_one_is_first(recipe, run, resume):
    first, second = read_recipe(recipe), read_recipe(recipe, ["epochs=9"])
    with run.begin(first, resume=True), pytest.raises(ValueError, match="Another process is training in"):
        RunFolder(run.directory).begin(second, resume)
    assert read_recipe(run.recipe).to_toml() == first.to_toml()


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_ended_before_its_first_checkpoint_begins_anew(recipe, run, resume):
    begin(run, read_recipe(recipe), resume=False, trained=False)
    run.tokenizer.write_bytes(b"of text that has been mended since")
    run.checkpoints.mkdir()
    (run.directory / "notes.txt").write_text("mine")
    changed = read_recipe(recipe, ["epochs=9"])
    begin(run, changed, resume=resume, trained=False)
    assert read_recipe(run.recipe).to_toml() == changed.to_toml()
    assert not run.tokenizer.exists()
    assert (run.directory / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EIO])
def test_where_nothing_can_be_locked_a_run_goes_without(recipe, run, number, monkeypatch):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    begin(run, read_recipe(recipe), resume=False)
    monkeypatch.setattr(locks.fcntl, "flock", fail)
    if number == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            run.held()
    else:
        with pytest.warns(UserWarning, match="cannot be locked .* let no other process train in"), run.held():
            assert run.recipe.is_file()


def test_what_is_missing_is_said(run):
    with pytest.raises(FileNotFoundError, match=r"There is no translator in .* Is this the folder of a run"):
        run.check_has(run.translator)


def test_a_run_goes_to_runs_unless_told_otherwise(recipe):
    assert str(default_output(read_recipe(recipe))) == "runs/digits"
