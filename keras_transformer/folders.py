"""Files and folders that appear when they are complete.

What is being written lies in a hidden folder beside its target, `.NAME.writing-` and 16 digits, until it is complete. Its
writer holds a lock in there. Without that lock its writer was killed, and whoever writes or reads the same target next clears
it away.
"""

import contextlib
import ctypes
import errno
import hashlib
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from keras_transformer import locks

HIDDEN = re.compile(r"\.(?P<name>.+)\.writing-[0-9a-f]{16}")
LOCK, NEW, OLD = "lock", "new", "old"
_CURRENT_FOLDER, _EXCHANGE = -100, 2  # What Linux calls AT_FDCWD and RENAME_EXCHANGE.


@contextlib.contextmanager
def complete_folder(directory: str | os.PathLike, mark: str | None = None) -> Iterator[Path]:
    """Gives an empty folder to write to, which takes the place of `directory` if no error occurs.

    At every moment there is a whole folder, the old one or the new one: Linux exchanges the two at once. Where it cannot, the
    old one is moved away first, and `clear_leftovers` puts it back if the process is killed in between.

    Args:
        directory: Where the folder is to be. What is there already stays until the new one is complete. A symbolic link stays,
            and what it points to is replaced.
        mark: Name of a file that every such folder has. A folder with anything else in it is not replaced, but an error.
            `None` replaces any folder.

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
    check_replaceable(directory, mark)
    directory = real_path(directory)
    with naming(directory), hidden_place(directory) as place:
        new = place / NEW
        new.mkdir()
        yield new
        sync(new)
        put_in_place(new, directory, place / OLD)
        sync_entry(directory.parent)


def write_files(directory: str | os.PathLike, contents: Mapping[str, bytes]):
    """Writes files to a folder, where they appear, or replace older ones, only when all of them are complete.

    Args:
        directory: The folder, which is made if need be.
        contents: What to write, by name of the file.
    """
    directory = Path(directory)
    target = directory / next(iter(contents))
    with naming(target), hidden_place(target) as place:
        for name, content in contents.items():
            with open(place / name, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for name in contents:
            os.replace(place / name, directory / name)


def check_replaceable(directory: str | os.PathLike, mark: str | None):
    """Raises a `ValueError` unless `complete_folder` can write a folder: to be asked before the work is done.

    Args:
        directory: The folder.
        mark: As for `complete_folder`.
    """
    path = real_path(directory)
    is_ours = path.is_dir() and (mark is None or (path / mark).is_file() or not any(path.iterdir()))
    if os.path.lexists(path) and not is_ours:
        wanted = "a folder" if mark is None else f"an empty folder, or one with a {mark},"
        raise ValueError(
            f"Only {wanted} is replaced: whatever else is there would be lost. Choose another folder. Received: {directory}"
        )
    if is_mount_point(path):
        raise ValueError(
            "A folder on which a file system is mounted cannot be replaced. Choose a folder inside it, such as "
            f"{path / 'new'}. Received: {directory}"
        )
    if Path.cwd().is_relative_to(path):
        raise ValueError(
            "The folder that this process works in, or is inside of, cannot be replaced. Choose another folder, or run this "
            f"elsewhere. Received: {directory}"
        )


def clear_leftovers(folder: str | os.PathLike, name: str | None = None):
    """Removes what writers that were killed left in a folder, and puts back what one of them had moved away.

    Args:
        folder: The folder.
        name: The target whose leftovers are removed. Defaults to all.
    """
    if locks.fcntl is None:  # Nobody can tell whether a writer is alive.
        return
    with contextlib.suppress(OSError):
        for place in Path(folder).iterdir():
            hidden = HIDDEN.fullmatch(place.name)
            if hidden and name in (None, hidden["name"]) and not place.is_symlink():
                clear(place, place.with_name(hidden["name"]))


def clear(place: Path, target: Path):
    """Removes a hidden folder unless its writer is alive."""
    with contextlib.suppress(OSError, ValueError), locks.hold_lock(place / LOCK, wait=False):
        if (place / OLD).is_dir() and not target.exists():
            os.rename(place / OLD, target)
        shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def hidden_place(target: Path) -> Iterator[Path]:
    """Gives a hidden folder beside a target to prepare it in, which is removed afterwards.

    Args:
        target: The file or folder that is to be written. Its parent is made if need be.

    Yields:
        The folder.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    clear_leftovers(target.parent, target.name)
    place, lock = locked_place(target)
    try:
        yield place
    finally:
        lock.close()
        shutil.rmtree(place, ignore_errors=True)


def locked_place(target: Path) -> tuple[Path, contextlib.AbstractContextManager]:
    """Makes a hidden folder and locks it."""
    while True:
        place = target.with_name(f".{target.name}.writing-{secrets.token_hex(8)}")
        place.mkdir()
        try:
            lock = locks.hold_lock(place / LOCK)
        except FileNotFoundError:
            continue  # Before it was locked, somebody took it for a leftover.
        except OSError as error:
            if error.errno not in locks.NO_LOCKS:
                shutil.rmtree(place, ignore_errors=True)
                raise
            lock = open(place / LOCK)  # noqa: SIM115 - there are no locks here, so that nobody clears it away either
        if (place / LOCK).exists():
            return place, lock
        lock.close()


@contextlib.contextmanager
def naming(target: Path) -> Iterator[None]:
    """Lets what the file system has to say against writing a target name the target, and say what to do."""
    try:
        yield
    except OSError as error:
        reason = error.__cause__ if isinstance(error.__cause__, OSError) else error  # Of what is a part of the target.
        advice = "What was there before is untouched. Make room, or choose another place"
        raise OSError(error.errno, f"{reason.strerror or reason}. {advice}", str(target)) from reason


def put_in_place(new: Path, directory: Path, old: Path):
    """Lets a new folder take the place of another, or of nothing."""
    try:
        os.rename(new, directory)  # Nothing is there, or an empty folder.
    except OSError:
        if not directory.is_dir():
            raise
        if not exchange(new, directory):
            os.rename(directory, old)
            try:
                os.rename(new, directory)
            except BaseException:
                os.rename(old, directory)
                raise
            os.rename(old, new)  # As if they were exchanged: nobody shall put it back.


def exchange(one: Path, other: Path) -> bool:
    """Lets two folders change places at once, and tells whether they did: not every system and file system can do it."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    here = _CURRENT_FOLDER
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), _EXCHANGE) == 0


def file_digest(path: str | os.PathLike) -> str:
    """Returns the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def real_path(path: str | os.PathLike) -> Path:
    """Returns a path without symbolic links and dots."""
    return Path(os.path.realpath(path))


def is_mount_point(path: Path) -> bool:
    """Tells whether a file system, or a folder of the same one, is mounted on a folder."""
    mounts = Path("/proc/self/mountinfo")
    return path.is_mount() or (mounts.is_file() and f" {path} " in mounts.read_text(encoding="utf8", errors="replace"))


def sync(folder: Path):
    """Waits until everything in a folder is on the disk."""
    for directory, _, files in os.walk(folder):
        for name in files:
            sync_entry(Path(directory) / name)
        sync_entry(Path(directory))


def sync_entry(path: Path):
    """Waits until a file, or the list of names of a directory, is on the disk, where the system can tell."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # Some file systems have nothing to wait for.
            raise
    finally:
        os.close(descriptor)
