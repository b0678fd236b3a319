"""The arrays of a model in files: written and read one at a time, without pickle."""

import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import keras
import numpy as np

from keras_transformer.callbacks.processes import gathered


def to_array(variable) -> np.ndarray:
    """Returns the value of a variable in a type that every file can hold: bfloat16 and smaller floats become float32."""
    array = np.asarray(keras.ops.convert_to_numpy(gathered(variable)))
    return array if array.dtype.isbuiltin == 1 else array.astype("float32")


def named_arrays(group: str, variables: Iterable) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the values of variables with names such as `weights/00012/encoder_block_0/self_attention/query/kernel`."""
    for number, variable in enumerate(variables):
        yield f"{group}/{number:05d}/{variable.path}", to_array(variable)


def write_arrays(path: str | os.PathLike, arrays: Iterable[tuple[str, np.ndarray]]):
    """Writes named arrays into a `.npz` file, one after the other. The same arrays give the same bytes.

    Args:
        path: The file.
        arrays: Names and arrays.
    """
    with open(path, "wb") as file:
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays:
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def replace_arrays(path: str | os.PathLike, arrays: Iterable[tuple[str, np.ndarray]]):
    """Writes a `.npz` file that appears, or takes the place of an older one, when it is complete."""
    path = Path(path)
    new = path.with_name(f".{path.name}.new")
    try:
        write_arrays(new, arrays)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def open_arrays(path: str | os.PathLike) -> np.lib.npyio.NpzFile:
    """Opens a `.npz` file, whose arrays are read when they are asked for.

    Args:
        path: The file, or the folder of a checkpoint.

    Returns:
        The open file, to be used in a `with` statement.
    """
    path = Path(path)
    path = path / "arrays.npz" if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(f"There is no such file: {path} (from {Path.cwd()})")
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is damaged, or no file of weights: {error}") from error


def names_of(archive: np.lib.npyio.NpzFile, group: str) -> list[str]:
    """Returns the names of a group's arrays, in the order of their variables."""
    return [name for name in archive.files if name.startswith(f"{group}/")]
