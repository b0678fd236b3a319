"""Tokenized pairs on disk: written once, checked, read row by row."""

import contextlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_transformer.data.statistics import Statistics
from keras_transformer.folders import hidden_place, naming
from keras_transformer.json_files import read_json

VERSION = 1
INDEX = "index.json"
_PIECE = 1 << 24  # Bytes.
_PART = 1 << 17  # Elements.
_OFFSET = np.dtype(np.int64)


class DamagedStoreError(ValueError):
    """A store whose files are not those that were written."""


class Rows:
    """Rows of numbers of different lengths, one after the other in a file.

    Rows are read from the file when they are asked for: a map of it would count as memory, the whole of it before long, for
    batches take their rows from everywhere.

    Args:
        values: The file of the values.
        offsets: The file of the offsets, int64, one more than there are rows.
        dtype: Type of the values.
    """

    def __init__(self, values: Path, offsets: Path, dtype: str):
        self.dtype = np.dtype(dtype)
        self._values, self._offsets = (open(path, "rb") for path in (values, offsets))  # noqa: SIM115 - open as long as this
        self._length = offsets.stat().st_size // _OFFSET.itemsize - 1

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, number: int) -> np.ndarray:
        start, end = self._read(self._offsets, _OFFSET, number, 2)
        return self._read(self._values, self.dtype, start, end - start)

    @staticmethod
    def _read(file, dtype: np.dtype, first: int, count: int) -> np.ndarray:
        """Reads some numbers of a file."""
        return np.frombuffer(os.pread(file.fileno(), int(count) * dtype.itemsize, int(first) * dtype.itemsize), dtype)

    def total(self) -> int:
        """Returns the sum of all lengths."""
        return int(self._read(self._offsets, _OFFSET, len(self), 1)[0])

    def lengths(self) -> np.ndarray:
        """Returns the length of each row, in the smallest type that holds one more than any of them."""
        lengths = np.zeros(len(self), np.uint16)
        for part in parts(len(self)):
            new = np.diff(self._read(self._offsets, _OFFSET, part.start, part.stop - part.start + 1))
            if lengths.dtype == np.uint16 and new.max() >= np.iinfo(np.uint16).max:
                lengths = lengths.astype(np.int32)
            lengths[part] = new
        return lengths

    def padded(self, numbers: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Gathers rows that are at most `width` long.

        Returns:
            A tuple: the values `(len(numbers), width)`, arbitrary beyond the ends, and the lengths.
        """
        descriptor, size = self._offsets.fileno(), _OFFSET.itemsize
        bounds = b"".join(os.pread(descriptor, 2 * size, number * size) for number in numbers.tolist())
        bounds = np.frombuffer(bounds, _OFFSET).reshape(-1, 2)
        descriptor, size = self._values.fileno(), self.dtype.itemsize
        rows = b"".join(os.pread(descriptor, (end - start) * size, start * size) for start, end in bounds.tolist())
        lengths = bounds[:, 1] - bounds[:, 0]
        values = np.zeros((len(numbers), width), self.dtype)
        values[np.arange(width) < lengths[:, None]] = np.frombuffer(rows, self.dtype)
        return values, lengths


def parts(length: int) -> Iterator[slice]:
    """Cuts a long array into parts, so that what is computed from it is never as long as the whole."""
    return (slice(start, min(start + _PART, length)) for start in range(0, length, _PART))


class Store:
    """A folder of tokenized pairs.

    Args:
        directory: The folder. A `DamagedStoreError` is raised unless it holds, byte for byte, what was written.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        index = read_index(directory)
        for name, written in index["files"].items():
            check_file(directory / name, written)
        self.statistics = Statistics.from_json(index["statistics"])
        self.checksums = {name: written["crc32"] for name, written in index["files"].items()}
        self.source, self.target = (self.rows(f"{side}.ids", index["dtypes"][side]) for side in ("source", "target"))
        has_text = "source.text" in index["files"]
        self.source_text, self.target_text = (
            self.rows(f"{side}.text", "uint8") if has_text else None for side in ("source", "target")
        )

    def rows(self, name: str, dtype: str) -> Rows:
        """Opens the rows of one name."""
        return Rows(self.directory / name, self.directory / f"{name}.offsets", dtype)

    def __len__(self) -> int:
        return len(self.source)

    def digest(self, side: str) -> str:
        """Returns a hexadecimal digest of the ids of a side, sentence by sentence; it is the same on every machine."""
        return "".join(f"{self.checksums[name]:08x}" for name in (f"{side}.ids", f"{side}.ids.offsets"))

    def texts(self, side: str, numbers: np.ndarray) -> list[str]:
        """Returns the text of some pairs, in a store that was written with text."""
        rows = getattr(self, f"{side}_text")
        return [rows[number].tobytes().decode() for number in numbers]


def read_index(directory: Path) -> dict:
    """Reads the list of a store's files."""
    try:
        index = read_json(directory / INDEX)
    except (OSError, ValueError) as error:
        raise DamagedStoreError(f"{directory} has no readable {INDEX}: {error}") from error
    if index.get("version") != VERSION:
        raise DamagedStoreError(f"{directory} was not written by this version")
    return index


def check_file(path: Path, written: dict):
    """Raises a `DamagedStoreError` unless a file is as long as it was, and sums up to the same."""
    if not path.is_file() or path.stat().st_size != written["bytes"]:
        raise DamagedStoreError(f"{path} is missing or cut off")
    checksum = 0
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            checksum = zlib.crc32(piece, checksum)
    if checksum != written["crc32"]:
        raise DamagedStoreError(f"{path} was changed or damaged")


class RowWriter:
    """Writes rows to the two files that `Rows` reads, and sums them up."""

    def __init__(self, directory: Path, name: str, dtype: str):
        self.name, self.dtype = name, dtype
        self.total = 0
        self.files = {file: open(directory / file, "xb") for file in (name, f"{name}.offsets")}  # noqa: SIM115 - see `close`
        self.written = {file: {"bytes": 0, "crc32": 0} for file in self.files}
        self._append(f"{name}.offsets", np.zeros(1, np.int64).tobytes())

    def write(self, values: np.ndarray, lengths: np.ndarray):
        """Appends rows: their values one after the other, and their lengths."""
        self._append(self.name, values.astype(self.dtype).tobytes())
        self._append(f"{self.name}.offsets", (self.total + np.cumsum(lengths, dtype=np.int64)).tobytes())
        self.total += int(lengths.sum())

    def _append(self, file: str, content: bytes):
        self.files[file].write(content)
        self.written[file]["bytes"] += len(content)
        self.written[file]["crc32"] = zlib.crc32(content, self.written[file]["crc32"])

    def close(self):
        """Makes sure that everything is on the disk."""
        for file in self.files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()

    def discard(self):
        """Closes the files, whether or not what is left to write finds a place on the disk."""
        for file in self.files.values():
            with contextlib.suppress(OSError):
                file.close()


class StoreWriter:
    """Writes a store that appears in its place only when it is complete.

    Use it in a `with` statement: if that ends with an error, nothing is left behind. Of several processes that write the same
    store at once, the first to finish wins, and the others use its result.

    Args:
        directory: Where the store is to be.
        dtypes: Types of the ids of `"source"` and `"target"`.
        with_text: Whether the texts are stored as well.
    """

    def __init__(self, directory: Path, dtypes: dict[str, str], with_text: bool):
        self.directory, self.dtypes, self.writers = directory, dtypes, {}
        self.types = {f"{side}.ids": dtype for side, dtype in dtypes.items()}
        if with_text:
            self.types |= {f"{side}.text": "uint8" for side in dtypes}
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "StoreWriter":
        with naming(self.directory), contextlib.ExitStack() as stack:
            self.temporary = stack.enter_context(hidden_place(self.directory)) / "store"
            self.temporary.mkdir()
            for name, dtype in self.types.items():
                self.writers[name] = RowWriter(self.temporary, name, dtype)
                stack.callback(self.writers[name].discard)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error):
        return self._open.__exit__(*error)

    def write(self, name: str, values: np.ndarray, lengths: np.ndarray):
        """Appends rows to one of the files."""
        with naming(self.directory):
            self.writers[name].write(values, lengths)

    def finish(self, statistics: Statistics):
        """Puts the store in its place."""
        index = {
            "version": VERSION,
            "dtypes": self.dtypes,
            "files": {name: summary for writer in self.writers.values() for name, summary in writer.written.items()},
            "statistics": statistics.as_json(),
        }
        with naming(self.directory):
            for writer in self.writers.values():
                writer.close()
            (self.temporary / INDEX).write_text(json.dumps(index), encoding="utf8")
            try:
                os.rename(self.temporary, self.directory)
            except OSError:
                if not (self.directory / INDEX).is_file():  # Not somebody else's, finished meanwhile.
                    raise
