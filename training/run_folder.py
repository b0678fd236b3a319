"""The folder of a training run: what lies where, and whether a run may begin or go on in it."""

import contextlib
import json
import os
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

from keras_transformer.locks import NO_LOCKS, hold_lock
from keras_transformer.text.files import write_bytes

from .recipe import Recipe, difference, read_recipe
from .recipe_tables import DevicesTable

RUNS = Path("runs")


class RunFolder:
    """The files of a run.

    Args:
        directory: The folder.
    """

    def __init__(self, directory: str | os.PathLike):
        self.directory = Path(directory)
        self.recipe = self.directory / "recipe.toml"
        self.tokenizer = self.directory / "tokenizer.model"
        self.checkpoints = self.directory / "checkpoints"
        self.averages = self.directory / "averages"
        self.history = self.directory / "history.csv"
        self.steps = self.directory / "steps.csv"
        self.curves = self.directory / "curves.png"
        self.report = self.directory / "report.md"
        self.results = self.directory / "results.json"
        self.translator = self.directory / "translator"
        self.tensorboard = self.directory / "tensorboard"
        self.lock = self.directory / ".lock"

    def __str__(self) -> str:
        return str(self.directory)

    @property
    def is_finished(self) -> bool:
        """Whether training came to its end and its results are written."""
        return self.report.is_file()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in the folder, but perhaps what a process that was killed has left."""
        return not self.directory.exists() or all(path.name.startswith(".") for path in self.directory.iterdir())

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to go on from: a checkpoint, or a finished run."""
        return self.is_finished or (self.checkpoints.is_dir() and any(self.checkpoints.iterdir()))

    def begin(self, recipe: Recipe, resume: bool) -> contextlib.AbstractContextManager:
        """Makes the folder of a new run, or sees to it that a run goes on with the recipe it began with.

        A run that ended before its first checkpoint, over its input for example, begins anew.

        Args:
            recipe: The recipe.
            resume: Whether a run that is there already is to go on.

        Returns:
            What `held` returned: do the training in it.
        """
        if not (self.is_empty or self.recipe.is_file()):
            raise ValueError(self.in_the_way(resume))
        self.directory.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            if not self.is_finished:  # Then it is only read.
                stack.enter_context(self.held())
            if not self.has_begun:
                self.clear()
                head = f"# The recipe {recipe.name!r} as it was run, defaults included.\n\n"
                write_bytes(self.recipe, (head + recipe.to_toml()).encode())
            elif not resume:
                raise ValueError(self.in_the_way(resume))
            else:
                self.check_unchanged(recipe)
            return stack.pop_all()

    def clear(self):
        """Removes what a run writes before its first checkpoint."""
        for file in (self.tokenizer, self.history, self.steps):
            file.unlink(missing_ok=True)
        for folder in (self.checkpoints, self.averages, self.tensorboard):
            shutil.rmtree(folder, ignore_errors=True)

    def held(self) -> contextlib.AbstractContextManager:
        """Keeps other processes from training in the folder, until this is left or the process ends, however it ends.

        Returns:
            What to do the training in. A `ValueError` is raised if another process trains in the folder.
        """
        try:
            return hold_lock(self.lock, wait=False)
        except BlockingIOError as error:
            raise ValueError(
                f"Another process is training in {self}. Wait until it has ended, or choose another folder with --output"
            ) from error
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            warnings.warn(f"{self.lock} cannot be locked ({error}): let no other process train in {self}", stacklevel=2)
            return contextlib.nullcontext()

    def in_the_way(self, resume: bool) -> str:
        """Says what to do about a folder that is not empty."""
        if self.recipe.is_file():
            return (
                f"There is a run in {self} already. Add --resume to go on with it, choose another folder with --output, or "
                "remove it to start afresh"
            )
        wanted = "There is no run to go on with" if resume else "A run needs a folder of its own"
        return f"{wanted}: {self} is not empty and has no recipe.toml. Choose another folder with --output"

    def check_unchanged(self, recipe: Recipe):
        """Raises a `ValueError` that shows the difference if a recipe is not that of the run; devices may change."""
        before, now = (replace(one, devices=DevicesTable()) for one in (read_recipe(self.recipe), recipe))
        changes = difference(before, now, str(self.recipe), f"{recipe.name}, now")
        if changes:
            raise ValueError(
                f"The recipe has changed since the run in {self} began; a run goes on with the recipe it began with. Undo the "
                f"changes, or start another run with --output. What changed:\n{changes}"
            )

    def check_has(self, path: Path):
        """Raises an error if something that a finished run has is not there."""
        if not path.exists():
            advice = "Finish its training first" if self.recipe.is_file() else "Is this the folder of a run?"
            raise FileNotFoundError(f"There is no {path.name} in {self} (from {Path.cwd()}). {advice}")

    def write_results(self, results: dict):
        """Writes what was measured at the end."""
        write_bytes(self.results, (json.dumps(results, indent=2, ensure_ascii=False) + "\n").encode())


def default_output(recipe: Recipe) -> Path:
    """Returns where a run goes if nobody says: `runs/` and the recipe's name."""
    return RUNS / recipe.name
