"""Finding what a finished run made, for the commands that use it."""

import os
from dataclasses import replace
from pathlib import Path

from .recipe import read_recipe
from .recipe_tables import EvaluationTable
from .run_folder import RunFolder


def evaluation_table(directory: str | os.PathLike, **changes) -> EvaluationTable:
    """Returns how a run is measured.

    Args:
        directory: The folder of a run, or of a translator. One that lies in a run is measured as the run is; another, by the
            defaults.
        **changes: What to change; `None` changes nothing.

    Returns:
        The table.
    """
    recipe = run_of(directory).recipe
    table = read_recipe(recipe).evaluation if recipe.is_file() else EvaluationTable()
    return replace(table, **{name: value for name, value in changes.items() if value is not None})


def run_of(directory: str | os.PathLike) -> RunFolder:
    """Returns the run that a folder is, or that a translator lies in; where there is none, the folder as if it were one."""
    around = RunFolder(Path(directory).absolute().parent)
    is_translator = (Path(directory) / "translator.json").is_file()
    return around if is_translator and around.recipe.is_file() else RunFolder(directory)
