"""Folders that appear when they are complete."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def complete_folder(directory: str | os.PathLike, mark: str | None = None) -> Iterator[Path]:
    """Gives an empty folder to write to, which takes the place of `directory` if no error occurs.

    Args:
        directory: Where the folder is to be. What is there already stays until the new one is complete.
        mark: Name of a file that every such folder has. A folder with anything else in it is not replaced, but an error.
            `None` replaces whatever is there.

    Yields:
        The folder to write to, beside the directory.

    Example:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with complete_folder(Path(parent) / "new") as folder:
    ...         _ = (folder / "file").write_text("whole")
    ...     print(os.listdir(parent), os.listdir(Path(parent) / "new"))
    ['new'] ['file']
    """
    directory = Path(directory)
    if mark is not None:
        check_replaceable(directory, mark)
    directory.parent.mkdir(parents=True, exist_ok=True)
    new, old = (directory.with_name(f".{directory.name}.{uuid.uuid4().hex}") for _ in range(2))
    new.mkdir()
    try:
        yield new
        if directory.exists():
            os.rename(directory, old)
        os.rename(new, directory)
    finally:
        if old.exists() and not directory.exists():  # The last step failed: nothing is lost.
            os.rename(old, directory)
        for leftover in (new, old):
            shutil.rmtree(leftover, ignore_errors=True)


def check_replaceable(directory: str | os.PathLike, mark: str):
    """Raises a `ValueError` unless a folder is not there yet, is empty, or was written by who wants to replace it.

    Args:
        directory: The folder.
        mark: As for `complete_folder`.
    """
    directory = Path(directory)
    is_ours = directory.is_dir() and ((directory / mark).is_file() or not any(directory.iterdir()))
    if directory.exists() and not is_ours:
        raise ValueError(
            f"Only an empty folder, or one with a {mark}, is replaced: whatever else is there would be lost. Choose another "
            f"folder. Received: {directory}"
        )
