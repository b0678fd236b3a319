"""Sentences in batches: by length, padded, in few shapes."""

from collections.abc import Sequence

import numpy as np


def batches_of(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Groups the numbers of sentences by length, longest first, so that padding included no group exceeds the budget."""
    groups, longest = [], 0
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        if not groups or longest * (len(groups[-1]) + 1) > batch_tokens:
            groups.append([])
            longest = max(1, lengths[number])
        groups[-1].append(number)
    return groups


def padded(rows: list[list[int]], pad_id: int) -> np.ndarray:
    """Returns rows of ids as one int32 array, at least one column wide."""
    array = np.full((len(rows), max([1, *map(len, rows)])), pad_id, "int32")
    for number, row in enumerate(rows):
        array[number, : len(row)] = row
    return array


def in_closed_shapes(inputs: dict, config) -> dict:
    """Pads inputs to one of few shapes, so that few programs are compiled: sizes of 1, 2, 4, 8, 12, 16, 24, 32, ...

    Sources are not padded beyond the last position that was learned.
    """
    closed = {}
    for name, array in inputs.items():
        sizes = [closed_size(size) for size in array.shape]
        if name == "source_ids" and config.positions == "learned":
            sizes[1] = max(array.shape[1], min(sizes[1], config.max_length))
        widths = [(0, size - old) for size, old in zip(sizes, array.shape, strict=True)]
        closed[name] = np.pad(array, widths, constant_values=config.pad_id if name == "source_ids" else 0)
    closed["source_ids"][len(inputs["source_ids"]) :, 0] = config.end_id  # A row for nobody.
    return closed


def closed_size(size: int) -> int:
    """Returns the next size that is a power of two, or halfway between two of them."""
    power = 1 << max(0, size - 1).bit_length()
    return 3 * power // 4 if power >= 16 and size <= 3 * power // 4 else power
