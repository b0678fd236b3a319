"""The files of a checkpoint, which must lie inside its folder."""

import os
from pathlib import Path

from keras_transformer.json_files import parse_json


class CheckpointFolder:
    """A folder from which files of known names are read.

    A link that leads out of the folder is refused, except to where the cache of huggingface_hub keeps the content of files.

    Args:
        directory: The folder.
    """

    def __init__(self, directory: str | os.PathLike):
        self.directory = Path(directory)
        real = self.directory.resolve()
        self.homes = [real, real.parent.parent / "blobs"] if real.parent.name == "snapshots" else [real]

    def origin(self, name: str) -> str:
        """Returns how error messages call a file."""
        return str(self.directory / name)

    def find(self, name: str) -> Path | None:
        """Returns where a file is, or `None` if there is none."""
        path = self.directory / name
        if not os.path.lexists(path):
            return None
        real = path.resolve()
        if not any(real.is_relative_to(home) for home in self.homes):
            raise ValueError(f"{path} leads out of the folder, to {real}. Put the file itself into the folder")
        if not real.is_file():
            raise ValueError(f"{path} is not a file, or is a link to nothing")
        return real

    def read_bytes(self, name: str) -> bytes:
        """Reads a file that must be there."""
        path = self.find(name)
        if path is None:
            raise FileNotFoundError(
                f"There is no {name} in {self.directory} (from {Path.cwd()}). A Marian checkpoint has config.json, source.spm, "
                "target.spm, vocab.json, and model.safetensors or pytorch_model.bin"
            )
        return path.read_bytes()

    def read_json(self, name: str, is_needed: bool = True) -> dict:
        """Reads a file that holds an object of JSON; an empty one, if the file is not needed and not there."""
        if not is_needed and self.find(name) is None:
            return {}
        return parse_json(self.read_bytes(name), self.origin(name))
