"""The versions of a served model: numbered folders, of which a server runs the newest.

    python -m keras_transformer.serving.versions saved_models/en-de              # lists them
    python -m keras_transformer.serving.versions saved_models/en-de --keep 3     # removes all but the newest three
    python -m keras_transformer.serving.versions saved_models/en-de --rollback   # takes the newest out of service
    python -m keras_transformer.serving.versions saved_models/en-de --restore 4  # puts a version back that was taken out

A server looks for new folders every second and does not know whether one is complete. So a version is written under a name that
is no number, and gets its number when everything is there.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from keras_transformer.folders import sync, sync_entry
from keras_transformer.locks import hold_lock
from keras_transformer.text.files import write_bytes

UNFINISHED = ".unfinished-"
REMOVED = ".removed-"
ROLLED_BACK = "rolled-back-"
BESIDE = "beside"  # A folder of a new version: its files are put beside the versions.


def versions_in(folder: str | os.PathLike) -> list[int]:
    """Returns the versions that a server would see, oldest first."""
    folder = Path(folder)
    if not folder.is_dir():
        return []
    return sorted(int(entry.name) for entry in folder.iterdir() if is_number(entry.name) and entry.is_dir())


def rolled_back_in(folder: str | os.PathLike) -> list[int]:
    """Returns the versions that were taken out of service, oldest first."""
    folder = Path(folder)
    names = [entry.name.removeprefix(ROLLED_BACK) for entry in folder.glob(f"{ROLLED_BACK}*")] if folder.is_dir() else []
    return sorted(int(name) for name in names if is_number(name))


def is_number(name: str) -> bool:
    """Tells whether a server would take a folder of this name for a version."""
    return name.isascii() and name.isdigit()


@contextlib.contextmanager
def new_version(folder: str | os.PathLike, version: int | None = None) -> Iterator[Path]:
    """Gives an empty folder to write to, which becomes a version if no error occurs.

    Args:
        folder: The folder of the model.
        version: The number, larger than those that a server would see. Defaults to one more than there ever was.

    Yields:
        The folder to write to. It has its number afterwards; everything in it has been written to the disk before. What it
        has in a folder `BESIDE` then replaces the files of these names beside the versions.
    """
    folder = Path(folder)
    with locked(folder):
        version = next_version(folder) if version is None else checked_version(folder, version)
        new = folder / f"{UNFINISHED}{version}-{uuid.uuid4().hex}"
        beside = new.with_name(f"{new.name}-{BESIDE}")
        new.mkdir()
        try:
            yield new
            sync(new)
            if (new / BESIDE).is_dir():
                os.rename(new / BESIDE, beside)
            os.rename(new, folder / str(version))
            for path in beside.glob("*"):
                os.replace(path, folder / path.name)
            sync_entry(folder)
        finally:
            for leftover in (new, beside):
                shutil.rmtree(leftover, ignore_errors=True)


def next_version(folder: Path) -> int:
    """Returns a number that no version has or had."""
    return max([0, *versions_in(folder), *rolled_back_in(folder)]) + 1


def checked_version(folder: Path, version: int) -> int:
    """Returns a version that was asked for, if it can be had."""
    if version < 1:
        raise ValueError(f"A version is a positive number. Received: version={version}")
    if version in {*versions_in(folder), *rolled_back_in(folder)}:
        raise ValueError(f"There is a version {version} in {folder} already. Leave `version` away to get the next one")
    newest = max(versions_in(folder), default=0)
    if version < newest:
        raise ValueError(
            f"Version {version} would not be served: there is a version {newest} in {folder}, and a server runs the newest. "
            f"Leave `version` away to get {next_version(folder)}"
        )
    return version


def keep_newest(folder: str | os.PathLike, count: int) -> list[int]:
    """Removes all but the newest versions.

    Args:
        folder: The folder of the model.
        count: How many to keep, at least one.

    Returns:
        The versions that were removed.
    """
    if count < 1:
        raise ValueError(f"At least one version must be kept. Received: count={count}")
    folder = Path(folder)
    with locked(folder):
        removed = versions_in(folder)[:-count]
        for version in removed:
            gone = folder / f"{REMOVED}{version}-{uuid.uuid4().hex}"
            os.rename(folder / str(version), gone)  # A server never sees half of it.
            shutil.rmtree(gone)
    return removed


def roll_back(folder: str | os.PathLike) -> tuple[int, int]:
    """Takes the newest version out of service, so that a server goes back to the one before. Nothing is removed.

    Args:
        folder: The folder of the model.

    Returns:
        A tuple: the version that was taken out, and the one that serves now.
    """
    folder = Path(folder)
    with locked(folder):
        versions = versions_in(folder)
        if len(versions) < 2:
            raise ValueError(f"There is nothing to go back to in {folder}. Received: versions {versions}")
        os.rename(folder / str(versions[-1]), folder / f"{ROLLED_BACK}{versions[-1]}")
        sync_entry(folder)
        label_newest(folder)
    return versions[-1], versions[-2]


def restore(folder: str | os.PathLike, version: int):
    """Puts a version back into service that was rolled back.

    Args:
        folder: The folder of the model.
        version: The version.
    """
    folder = Path(folder)
    with locked(folder):
        if version not in rolled_back_in(folder):
            raise ValueError(f"Version {version} was not rolled back. There are: {rolled_back_in(folder)}")
        os.rename(folder / f"{ROLLED_BACK}{version}", folder / str(version))
        sync_entry(folder)
        label_newest(folder)


def label_newest(folder: Path):
    """Lets the label `stable` in `models.config`, if there is one, name the newest version."""
    config = folder / "models.config"
    if config.is_file():
        newest = rf"\g<1>{versions_in(folder)[-1]}"
        text = re.sub(r'(key: "stable" value: |name for version )\d+', newest, config.read_text(encoding="utf8"))
        write_bytes(config, text.encode())


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lets one process at a time change the versions of a model, and clears away what a killed one has left."""
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder / ".lock"):
        for leftover in [*folder.glob(f"{UNFINISHED}*"), *folder.glob(f"{REMOVED}*")]:
            shutil.rmtree(leftover, ignore_errors=True)
        yield


def describe(folder: Path) -> str:
    """Lists the versions of a model."""
    lines = []
    for version in versions_in(folder):
        info = folder / str(version) / "export_info.json"
        exported = json.loads(info.read_text(encoding="utf8")).get("exported", "") if info.is_file() else ""
        lines.append(f"{version}  {exported}".rstrip())
    lines += [f"{version}  rolled back" for version in rolled_back_in(folder)]
    return "\n".join(lines) or f"no versions in {folder}"


def main(arguments: list[str] | None = None):
    """Does what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of the model, such as saved_models/en-de")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--keep", type=int, metavar="N", help="remove all but the newest N versions")
    action.add_argument("--rollback", action="store_true", help="take the newest version out of service")
    action.add_argument("--restore", type=int, metavar="VERSION", help="put a version back that was rolled back")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"there is no folder {options.folder}")
    try:
        if options.keep is not None:
            print(f"removed: {keep_newest(options.folder, options.keep) or 'nothing'}")
        elif options.rollback:
            print("version {} was taken out of service, {} is the newest now".format(*roll_back(options.folder)))
        elif options.restore is not None:
            restore(options.folder, options.restore)
    except ValueError as error:
        parser.error(str(error))
    print(describe(options.folder))


if __name__ == "__main__":
    main()
