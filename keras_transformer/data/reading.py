"""Pairs of lines, from files or from Python, in chunks; with what makes them one corpus: a digest of their content."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

from keras_transformer.data.alignment import first_line_out_of_step
from keras_transformer.text.lines import as_paths, read_lines
from keras_transformer.text.strings import clean_text

Side = str | os.PathLike | Iterable
CHUNK = 8192


@dataclass(frozen=True)
class Chunk:
    """Consecutive pairs."""

    source: list[str]
    target: list[str]


class PairReader:
    """Reads pairs from what a user gave.

    Args:
        source: Files (`.txt`, `.gz`, one or several) or an iterable of strings. With no `target`: files of two columns
            separated by a tab (`.tsv`, `.tsv.gz`), or an iterable of (source, target) pairs.
        target: Files or an iterable of strings, as many as the source has.
    """

    def __init__(self, source: Side, target: Side | None = None):
        self.source_paths = as_paths(source)
        self.target_paths = None if target is None else as_paths(target)
        self.source, self.target = source, target
        if target is not None and (self.source_paths is None) != (self.target_paths is None):
            kinds = ["lines" if paths is None else "files" for paths in (self.source_paths, self.target_paths)]
            raise ValueError(
                f"Source and target must both be files or both be lines. Received: {kinds[0]} as source, {kinds[1]} as target. "
                "A list of strings stands for files if one of them is a file or none contains a blank; pass an iterator, such "
                "as iter(lines), to give lines whatever they look like"
            )
        if self.source_paths and target is not None and len(self.source_paths) != len(self.target_paths):
            raise ValueError(
                "Source and target need the same number of files, in the same order. Received: "
                f"{len(self.source_paths)} source files {[str(path) for path in self.source_paths]} and "
                f"{len(self.target_paths)} target files {[str(path) for path in self.target_paths]}"
            )

    @property
    def is_files(self) -> bool:
        """Whether the pairs come from files, which can be read again."""
        return self.source_paths is not None

    @property
    def paths(self) -> list[Path]:
        """All files."""
        return [*(self.source_paths or []), *(self.target_paths or [])]

    def digest(self) -> str:
        """Returns a hexadecimal digest of the files' content, wherever they lie."""
        whole = hashlib.sha256(b"columns" if self.target is None else b"files")
        for path in self.paths:
            check_is_file(path)
            with open(path, "rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
        return whole.hexdigest()

    def count(self) -> int | None:
        """Returns the number of pairs if it can be told quickly: for lists, and for files that are not compressed."""
        if not self.is_files:
            return len(self.source) if hasattr(self.source, "__len__") else None
        if any(path.suffix == ".gz" for path in self.source_paths):
            return None
        return sum(count_lines(path) for path in self.source_paths)

    def chunks(self) -> Iterator[Chunk]:
        """Yields all pairs; raises a `ValueError` if one side has more lines than the other."""
        for source_lines, target_lines, where in self._parts():
            yield from self._chunks_of(source_lines, target_lines, where)

    def _parts(self):
        if self.target is None:
            yield from self._column_parts()
        elif self.is_files:
            for source, target in zip(self.source_paths, self.target_paths, strict=True):
                check_is_file(source)
                check_is_file(target)
                yield read_lines(source), read_lines(target), (source, target)
        else:
            yield iter(self.source), iter(self.target), None

    def _column_parts(self):
        if self.is_files:
            for path in self.source_paths:
                check_is_file(path)
                yield split_columns(path), None, None
        else:
            yield iter(self.source), None, None

    def _chunks_of(self, source_lines, target_lines, where) -> Iterator[Chunk]:
        if target_lines is None:
            while pairs := list(islice(source_lines, CHUNK)):
                yield Chunk(*map(list, zip(*map(checked_pair, pairs), strict=True)))
            return
        read = 0
        while True:
            source, target = list(islice(source_lines, CHUNK)), list(islice(target_lines, CHUNK))
            if len(source) != len(target):
                raise mismatch_error(read + len(source), read + len(target), source_lines, target_lines, where)
            if not source:
                return
            read += len(source)
            yield Chunk([clean_line(line) for line in source], [clean_line(line) for line in target])


def check_is_file(path: Path):
    """Raises an error a user can act on if there is no such file, or nothing in it."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no such file: {path} (from {Path.cwd()})")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty. A corpus needs a sentence a line")


def count_lines(path: Path) -> int:
    """Counts the line feeds of a file."""
    with open(path, "rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 24), b""))


def split_columns(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the two columns of a file."""
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise ValueError(
                f"{path}, line {number}: expected a source and a target with one tab between them. Received: {len(columns)} "
                f"columns, {line[:80]!r}. Files of a single column come in twos: pass the other one as `target`"
            )
        yield columns[0], columns[1]


def checked_pair(pair) -> tuple[str, str]:
    """Returns source and target of one element of an iterable."""
    if isinstance(pair, str) or len(pair) != 2:
        raise ValueError(f"Without `target`, each element must be a (source, target) pair. Received: {pair!r}")
    return clean_line(pair[0]), clean_line(pair[1])


def clean_line(line: str | bytes) -> str:
    """Returns a line as valid Unicode, without its end."""
    return clean_text(line).rstrip("\r\n")


def mismatch_error(num_source: int, num_target: int, source_rest, target_rest, where) -> ValueError:
    """Counts both sides to the end, and looks for the place where they part."""
    num_source += sum(1 for _ in source_rest)
    num_target += sum(1 for _ in target_rest)
    names = "" if where is None else f" ({where[0]} and {where[1]})"
    message = f"Source and target must have the same number of lines. Received: {num_source} and {num_target} lines{names}."
    if where is not None:
        lines = zip_longest(*(map(len, read_lines(path)) for path in where))
        source_lengths, target_lengths = (
            [length for length in side if length is not None] for side in zip(*lines, strict=True)
        )
        place = first_line_out_of_step(source_lengths, target_lengths)
        source, target = (next(islice(read_lines(path), place, None), "(no such line)") for path in where)
        message += f" The first line that looks out of step is line {place + 1}: {source[:60]!r} beside {target[:60]!r}."
    return ValueError(message + " Look for a missing or an extra line there")
