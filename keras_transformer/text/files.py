"""Reading and writing whole files."""

import os
from pathlib import Path

from keras_transformer.folders import write_files


def read_bytes(path: str | os.PathLike, what: str) -> bytes:
    """Reads a file, or says that there is none.

    Args:
        path: The file.
        what: What it should contain, for the error message.

    Returns:
        Its content.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no {what} at {path} (from {Path.cwd()}): a file is wanted")
    return path.read_bytes()


def write_bytes(path: str | os.PathLike, content: bytes):
    """Writes a file that appears, or replaces an older one, only when it is complete.

    Args:
        path: The file. Its folder is made if need be.
        content: What to write.
    """
    path = Path(path)
    write_files(path.parent, {path.name: content})
