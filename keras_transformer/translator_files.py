"""The folder of a saved translator: its settings, with checksums of its other files."""

import dataclasses
import json
from pathlib import Path

from keras_transformer.decoding import SearchOptions
from keras_transformer.folders import clear_leftovers, file_digest, real_path
from keras_transformer.json_files import read_json

FORMAT = 1
SETTINGS = "translator.json"


def write_settings(folder: Path, options: SearchOptions):
    """Writes the defaults of a translator, and the checksums of all that lies in its folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    checksums = {path.relative_to(folder).as_posix(): file_digest(path) for path in paths}
    settings = {"format": FORMAT, "options": dataclasses.asdict(options), "sha256": checksums}
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf8")


def folder_of(directory: Path) -> Path:
    """Returns the folder of a translator: the one that is named, or the one in the run that is named."""
    for folder in (directory, directory / "translator"):
        clear_leftovers(real_path(folder).parent, real_path(folder).name)
        if (folder / SETTINGS).is_file():
            return folder
    raise FileNotFoundError(
        f"There is no translator in {directory} (from {Path.cwd()}): neither {SETTINGS} nor translator/{SETTINGS}. If it is "
        "the folder of a run, finish its training first"
    )


def read_settings(directory: Path) -> SearchOptions:
    """Reads the defaults of a saved translator, and raises a `ValueError` if its files are not those that were written."""
    path = directory / SETTINGS
    try:
        settings = read_json(path)
        is_newer = settings["format"] > FORMAT
        options = None if is_newer else SearchOptions(**settings["options"])
        checksums = dict(settings.get("sha256", {}))  # Those of older versions have none.
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged, or was written by another version: {error}") from error
    if is_newer:
        raise ValueError(
            f"{directory} was written by a newer version of this package, in a format that this one cannot read: update the "
            f"package. Received: format {settings['format']}; known: up to {FORMAT}"
        )
    for name, digest in checksums.items():
        if not (directory / name).is_file() or file_digest(directory / name) != digest:
            raise ValueError(
                f"{directory / name} is missing, or not what was written: it was damaged or changed. Save the translator "
                "again, or copy the whole folder again"
            )
    return options
