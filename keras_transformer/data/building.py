"""From pairs of lines to a store of ids: tokenize, filter, count, write; and find it again next time."""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from keras_transformer.data.corpora.download import cache_directory
from keras_transformer.data.reading import Chunk, PairReader
from keras_transformer.data.statistics import Statistics, add_lengths
from keras_transformer.data.store import VERSION, DamagedStoreError, Store, StoreWriter
from keras_transformer.folders import clear_leftovers

SIDES = ("source", "target")
RATIO_SLACK = 10


@dataclass(frozen=True)
class Filters:
    """Which pairs are left out.

    Args:
        max_length: The most tokens, without start and end, on either side. `None`: no limit.
        max_ratio: A pair is dropped if its longer side has more tokens than `max_ratio` times the shorter one, plus ten.
            `None`: no limit.
        without: Source sentences whose pairs are left out.
    """

    max_length: int | None = 256
    max_ratio: float | None = 4.0
    without: frozenset[str] = frozenset()

    def __post_init__(self):
        if self.max_length is not None and self.max_length < 1:
            raise ValueError(f"`max_length` must be a positive integer, or `None`. Received: max_length={self.max_length}")
        if self.max_ratio is not None and not self.max_ratio >= 1:
            raise ValueError(f"`max_ratio` must be at least 1, or `None`. Received: max_ratio={self.max_ratio}")

    def key(self) -> dict:
        """Returns what says for JSON which pairs are left out."""
        limits = {"max_length": self.max_length, "max_ratio": self.max_ratio}
        if not self.without:
            return limits
        return {**limits, "without": hashlib.sha256("\n".join(sorted(self.without)).encode()).hexdigest()}

    def reasons(self, sources: list[str], source_lengths: np.ndarray, target_lengths: np.ndarray) -> dict[str, np.ndarray]:
        """Returns for each reason which pairs are dropped for it; the first reason counts."""
        without = np.array([source in self.without for source in sources], bool)
        shorter, longer = np.minimum(source_lengths, target_lengths), np.maximum(source_lengths, target_lengths)
        empty = shorter == 0
        too_long = longer > (np.inf if self.max_length is None else self.max_length)
        limit = np.inf if self.max_ratio is None else self.max_ratio * shorter + RATIO_SLACK
        ratio = longer > limit
        found, left = {}, np.ones(len(sources), bool)
        for reason, dropped in {"without": without, "empty": empty, "too_long": too_long, "ratio": ratio}.items():
            found[reason] = dropped & left
            left &= ~dropped
        return found


def open_store(
    reader: PairReader, tokenizer, filters: Filters, cache: str | os.PathLike | None, with_text: bool, progress: bool
) -> Store:
    """Returns the store of a corpus, written now or earlier.

    Files are tokenized once: their store lies in the cache under a name made from their content, the tokenizer and the
    filters. Lines from Python are tokenized each time, into a folder that goes away with the store.

    Args:
        reader: Where the pairs come from.
        tokenizer: A tokenizer or a pair of them.
        filters: Which pairs are left out.
        cache: Folder of the cache; `None` takes the user's.
        with_text: Whether the texts are stored as well.
        progress: Whether to show a progress bar if the standard error stream is a terminal.

    Returns:
        The store.
    """
    if not reader.is_files:
        return temporary_store(reader, tokenizer, filters, with_text, progress)
    root = cache_directory("datasets") if cache is None else Path(cache)
    directory = root / store_name(reader, tokenizer, filters, with_text)
    clear_leftovers(root)
    if directory.exists():
        try:
            return Store(directory)
        except DamagedStoreError as error:
            warnings.warn(f"The tokenized corpus in the cache is damaged and is made again. {error}", stacklevel=4)
            shutil.rmtree(directory)
    build(directory, reader, tokenizer, filters, with_text, progress)
    return Store(directory)


def temporary_store(reader: PairReader, tokenizer, filters: Filters, with_text: bool, progress: bool) -> Store:
    """Builds a store that is removed when it is no longer used."""
    folder = tempfile.mkdtemp(prefix="keras_transformer-")
    try:
        build(Path(folder) / "store", reader, tokenizer, filters, with_text, progress)
        store = Store(Path(folder) / "store")
    except BaseException:
        shutil.rmtree(folder)
        raise
    weakref.finalize(store, shutil.rmtree, folder, ignore_errors=True)
    return store


def store_name(reader: PairReader, tokenizer, filters: Filters, with_text: bool) -> str:
    """Returns a name that changes with everything the store depends on."""
    parts = {
        "version": VERSION,
        "pairs": reader.digest(),
        "tokenizers": [tokenizer.source.fingerprint, tokenizer.target.fingerprint],
        "filters": filters.key(),
        "with_text": with_text,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def build(directory: Path, reader: PairReader, tokenizer, filters: Filters, with_text: bool, progress: bool):
    """Tokenizes all pairs and writes the store."""
    statistics = Statistics()
    dtypes = {side: id_type(getattr(tokenizer, side).vocabulary_size) for side in SIDES}
    with StoreWriter(directory, dtypes, with_text) as writer, build_progress(progress) as display:
        task = display.add_task("Tokenizing pairs", total=None if display.disable else reader.count())
        for chunk, encoded in encoded_chunks(reader, tokenizer):
            write_chunk(writer, chunk, encoded, filters, statistics, with_text)
            display.advance(task, len(chunk.source))
        if statistics.kept == 0:
            raise ValueError(nothing_kept(statistics))
        writer.finish(statistics)


def encoded_chunks(reader: PairReader, tokenizer) -> Iterator[tuple[Chunk, dict]]:
    """Tokenizes chunks on all cores, a few ahead of the one that is asked for."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        waiting = []
        for chunk in reader.chunks():
            waiting.append(
                (chunk, {side: pool.submit(encode, getattr(tokenizer, side), getattr(chunk, side)) for side in SIDES})
            )
            if len(waiting) > (os.cpu_count() or 1):
                chunk, encoded = waiting.pop(0)
                yield chunk, {side: future.result() for side, future in encoded.items()}
        for chunk, encoded in waiting:
            yield chunk, {side: future.result() for side, future in encoded.items()}


def encode(tokenizer, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ids of all lines, one after the other, and their lengths."""
    if hasattr(tokenizer, "encode_batch"):
        return tokenizer.encode_batch(lines, num_threads=1)
    rows = tokenizer.encode(lines)
    return np.array([id for row in rows for id in row], np.int32), np.array([len(row) for row in rows], np.int32)


def write_chunk(writer: StoreWriter, chunk: Chunk, encoded: dict, filters: Filters, statistics: Statistics, with_text: bool):
    """Writes those pairs of a chunk that are kept, and counts all."""
    reasons = filters.reasons(chunk.source, encoded["source"][1], encoded["target"][1])
    kept = ~np.logical_or.reduce(list(reasons.values()))
    statistics.read += len(kept)
    statistics.kept += int(kept.sum())
    for reason, dropped in reasons.items():
        statistics.dropped[reason] += int(dropped.sum())
    for side in SIDES:
        ids, lengths = encoded[side]
        lines = getattr(chunk, side)
        writer.write(f"{side}.ids", ids[np.repeat(kept, lengths)], lengths[kept])
        add_lengths(getattr(statistics, f"{side}_lengths"), lengths[kept])
        words = sum(len(lines[number].split()) for number in np.flatnonzero(kept))
        setattr(statistics, f"{side}_words", getattr(statistics, f"{side}_words") + words)
        if with_text:
            texts = [lines[number].encode() for number in np.flatnonzero(kept)]
            writer.write(f"{side}.text", np.frombuffer(b"".join(texts), np.uint8), np.array([len(text) for text in texts], int))


def id_type(vocabulary_size: int) -> str:
    """Returns the smallest type that holds all ids."""
    return "uint16" if vocabulary_size <= 1 << 16 else "int32"


def build_progress(wanted: bool) -> Progress:
    """Makes the progress bar of building, on the standard error stream."""
    console = Console(file=sys.stderr)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    return Progress(*columns, console=console, disable=not (wanted and console.is_terminal))


def nothing_kept(statistics: Statistics) -> str:
    """Says why a corpus is empty."""
    if statistics.read == 0:
        return "There are no pairs: source and target are empty"
    dropped = ", ".join(f"{count} {reason}" for reason, count in statistics.dropped.items() if count)
    return f"No pair is left of {statistics.read}; dropped: {dropped}. See the arguments `max_length` and `max_ratio`"
