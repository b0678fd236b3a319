"""Text files that a user names to be written to."""

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from keras_transformer.folders import hidden_place

STANDARD_INPUT, STANDARD_OUTPUT = 0, 1


@contextlib.contextmanager
def output_file(path: str | os.PathLike) -> Iterator[TextIO]:
    """Gives a text file to write to, in UTF-8, which appears, or replaces an older one, only if no error occurs.

    Args:
        path: The file. Its folder is made if need be. A symbolic link stays, and what it points to is replaced. What is no
            file, such as `/dev/null`, and what the standard output goes to anyway, gets each line at once.

    Yields:
        The file.
    """
    if is_same_file(path, STANDARD_OUTPUT):
        sys.stdout.flush()
        opened = os.dup(STANDARD_OUTPUT)
    elif os.path.exists(path) and not os.path.isfile(path):
        opened = path
    else:
        with complete_text(Path(os.path.realpath(path))) as file:
            yield file
        return
    with open(opened, "w", encoding="utf8", newline="\n", buffering=1) as file:
        yield file


@contextlib.contextmanager
def complete_text(path: Path) -> Iterator[TextIO]:
    """Gives a text file beside another one, whose place and permissions it takes if no error occurs."""
    with hidden_place(path) as place:
        new = place / path.name
        with open(new, "x", encoding="utf8", newline="\n") as file:
            if path.exists():
                shutil.copymode(path, new)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)


def check_output(path: str | os.PathLike | None, inputs: Iterable[str | os.PathLike | int]):
    """Raises an error if what is named with `--output` cannot be written, or is read: to be asked before the work is done.

    Args:
        path: The output; with `None` there is nothing to check.
        inputs: What is read: paths, or numbers of open files.
    """
    if path is None or not os.path.exists(path):
        return
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if os.path.isfile(path) and any(is_same_file(path, one) for one in inputs):
        raise ValueError(f"What is read would be lost. Choose another output. Received: --output {path}")


def is_same_file(path: str | os.PathLike, other: str | os.PathLike | int) -> bool:
    """Tells whether two paths, or a path and an open file, are the same file, by whatever links."""
    try:
        return os.path.samefile(path, other)
    except OSError:  # There is no such file.
        return False
