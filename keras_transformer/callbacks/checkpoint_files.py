"""A checkpoint is a folder that appears when it is complete and can be checked at any time.

step-00000123/
  arrays.npz      weights, seeds, optimizer, metrics, random: an array a variable
  state.json      position, states of callbacks, shapes, versions
  SHA256SUMS      of the two, as the command `sha256sum --check` reads them
"""

import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from keras_transformer.callbacks.arrays import write_arrays
from keras_transformer.folders import complete_folder, file_digest

FORMAT = 1
ARRAYS, STATE, SUMS = "arrays.npz", "state.json", "SHA256SUMS"
NAME = re.compile(r"step-(\d{8,})")


def checkpoint_path(directory: Path, step: int) -> Path:
    """Returns the folder of the checkpoint after so many steps."""
    return directory / f"step-{step:08d}"


def step_of(path: Path) -> int:
    """Returns after how many steps a checkpoint was written."""
    return int(NAME.fullmatch(path.name)[1])


def checkpoints_in(directory: Path) -> list[Path]:
    """Returns the checkpoints of a directory, oldest first, whole or not."""
    paths = directory.iterdir() if directory.is_dir() else []
    return sorted((path for path in paths if NAME.fullmatch(path.name)), key=step_of)


def write_checkpoint(path: Path, arrays: Iterable[tuple[str, np.ndarray]], state: dict):
    """Writes a checkpoint, which appears when it is complete.

    Args:
        path: Its folder.
        arrays: Names and arrays, asked for one at a time.
        state: What else there is to know, for JSON.
    """
    with complete_folder(path) as folder:
        write_arrays(folder / ARRAYS, arrays)
        write_text(folder / STATE, json.dumps({"format": FORMAT, **state}, indent=1) + "\n")
        write_text(folder / SUMS, "".join(f"{file_digest(folder / name)}  {name}\n" for name in (ARRAYS, STATE)))


def write_text(path: Path, text: str):
    """Writes a text and waits until it is on the disk."""
    with open(path, "w", encoding="utf8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def check_json(name: str, state: dict):
    """Raises a `ValueError` for a callback's state that JSON cannot hold."""
    try:
        json.dumps(state)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`get_state` of {name} must return a dictionary of JSON values: {error}") from error


def read_state(path: Path) -> dict:
    """Reads what `write_checkpoint` wrote as state."""
    state = json.loads((path / STATE).read_text(encoding="utf8"))
    if state.get("format") != FORMAT:
        raise ValueError(
            f"The checkpoint {path} has the format {state.get('format')}, and this version of the package reads {FORMAT}. Go "
            "on with the version that wrote it, or begin a new run in another directory"
        )
    return state


def damage(path: Path) -> str | None:
    """Returns what is wrong with a checkpoint, or `None` if it is as it was written."""
    try:
        lines = (path / SUMS).read_text(encoding="ascii").splitlines()
        sums = {name: digest for digest, name in (line.split() for line in lines)}
        for name in (ARRAYS, STATE):
            if sums.get(name) != file_digest(path / name):
                return f"{name} is not what was written"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except (OSError, ValueError) as error:
        return f"{SUMS} cannot be read ({error})"
    return None


def remove_checkpoint(path: Path):
    """Removes a checkpoint so that nobody takes what is left of it, if the process ends meanwhile, for a whole one."""
    hidden = path.with_name(f".{path.name}.removed")
    shutil.rmtree(hidden, ignore_errors=True)
    os.rename(path, hidden)
    shutil.rmtree(hidden)


def remove_leftovers(directory: Path):
    """Removes what processes that were killed left half-written or half-removed."""
    for path in directory.glob(".step-*"):
        shutil.rmtree(path, ignore_errors=True)
