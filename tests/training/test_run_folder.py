"""When a run may begin in a folder, and when it goes on."""

import pytest

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


def test_what_is_missing_is_said(run):
    with pytest.raises(FileNotFoundError, match=r"There is no translator in .* Is this the folder of a run"):
        run.check_has(run.translator)


def test_a_run_goes_to_runs_unless_told_otherwise(recipe):
    assert str(default_output(read_recipe(recipe))) == "runs/digits"
