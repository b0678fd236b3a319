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


def test_a_new_run_notes_its_recipe(recipe, run):
    run.begin(read_recipe(recipe), resume=False)
    assert read_recipe(run.recipe).to_toml() == read_recipe(recipe).to_toml()


def test_resume_starts_a_run_that_has_not_begun(recipe, run):
    run.begin(read_recipe(recipe), resume=True)
    assert run.recipe.is_file()
    run.begin(read_recipe(recipe), resume=True)


def test_without_resume_a_run_that_is_there_is_an_error(recipe, run):
    run.begin(read_recipe(recipe), resume=False)
    with pytest.raises(ValueError, match=r"There is a run in .* already. Add --resume to go on with it"):
        run.begin(read_recipe(recipe), resume=False)


def test_a_changed_recipe_is_an_error_that_shows_the_difference(recipe, run):
    run.begin(read_recipe(recipe), resume=False)
    changed = read_recipe(recipe, ["epochs=9", "dropout=0.5"])
    with pytest.raises(ValueError, match="goes on with the recipe it began with") as raised:
        run.begin(changed, resume=True)
    lines = str(raised.value).splitlines()[1:]
    assert lines[0] == f"--- {run.recipe}" and lines[1] == "+++ digits, now"
    assert lines[2:] == ["+dropout = 0.5", "-epochs = 2", "+epochs = 9"]


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_of_something_else_is_left_alone(recipe, run, resume):
    run.directory.mkdir()
    (run.directory / "thesis.txt").write_text("precious")
    with pytest.raises(ValueError, match="is not empty and has no recipe"):
        run.begin(read_recipe(recipe), resume=resume)
    assert [path.name for path in run.directory.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("resume", [False, True])
def test_what_a_killed_process_left_is_no_obstacle(recipe, run, resume):
    run.directory.mkdir()
    for name in (".recipe.toml.0123456789abcdef", ".lock"):
        (run.directory / name).write_text("half")
    run.begin(read_recipe(recipe), resume=resume)
    assert run.recipe.is_file()


def test_one_process_at_a_time(recipe, run):
    run.begin(read_recipe(recipe), resume=False)
    with run.held(), pytest.raises(ValueError, match=r"Another process is training in .*run\. Wait until it has ended"):
        RunFolder(run.directory).held()
    with RunFolder(run.directory).held():
        assert run.lock.is_file()


def test_of_two_that_begin_at_once_one_is_first(recipe, run, monkeypatch):
    first, second = read_recipe(recipe), read_recipe(recipe, ["epochs=9"])
    held = RunFolder.held

    def held_after_another(self):
        monkeypatch.setattr(RunFolder, "held", held)
        RunFolder(run.directory).begin(first, resume=True)
        return held(self)

    for resume, message in ((False, "There is a run in .* already"), (True, "The recipe has changed")):
        run.recipe.unlink(missing_ok=True)
        monkeypatch.setattr(RunFolder, "held", held_after_another)
        with pytest.raises(ValueError, match=message):
            run.begin(second, resume=resume)
        assert read_recipe(run.recipe).to_toml() == first.to_toml()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EIO])
def test_where_nothing_can_be_locked_a_run_goes_without(recipe, run, number, monkeypatch):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    run.begin(read_recipe(recipe), resume=False)
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
