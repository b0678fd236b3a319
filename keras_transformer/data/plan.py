"""Which pairs form which batch of an epoch: a pure function of lengths, seed and epoch."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from keras_transformer.data.shapes import BatchShape, ShapeTable, choose_shapes
from keras_transformer.data.store import parts


@dataclass(frozen=True)
class EpochPlan:
    """The batches of an epoch.

    Attributes:
        order: The numbers of all pairs, batch after batch.
        starts: Where each batch begins in `order`; one more entry marks the end.
        shapes: The shape that each batch is padded to. It may have more rows than the batch has pairs.
        sequence: The order in which the batches are used.
    """

    order: np.ndarray
    starts: np.ndarray
    shapes: list[BatchShape]
    sequence: np.ndarray

    def __len__(self) -> int:
        return len(self.sequence)

    def batch(self, step: int) -> tuple[np.ndarray, BatchShape]:
        """Returns the numbers of the pairs of one step, and the shape to pad them to."""
        number = self.sequence[step]
        return self.order[self.starts[number] : self.starts[number + 1]], self.shapes[number]


class Planner:
    """Makes the plan of any epoch. All epochs have the same number of batches, and the same shapes.

    Args:
        source_lengths: Length of each source, with its end.
        target_lengths: Length of each target, with its end.
        batch_tokens: The most padded positions that a batch may have on either side.
        num_shapes: How many different shapes batches may have; `None` pads each batch to its own longest pair.
        seed: What shuffling depends on, beside the epoch. `None` keeps one fixed order.
    """

    def __init__(
        self,
        source_lengths: np.ndarray,
        target_lengths: np.ndarray,
        batch_tokens: int,
        num_shapes: int | None,
        seed: int | None,
    ):
        self.source_lengths = source_lengths
        self.target_lengths = target_lengths
        self.batch_tokens = batch_tokens
        self.num_shapes = num_shapes
        self.seed = seed

    def plan(self, epoch: int) -> EpochPlan:
        """Returns the plan of an epoch, counted from 0."""
        chance = None if self.seed is None else np.random.default_rng([self.seed, epoch])
        order, starts, shapes = self._sorted(chance) if self.num_shapes is None else self._bucketed(chance)
        sequence = np.arange(len(shapes), dtype=np.uint32)
        return EpochPlan(order, starts, shapes, sequence if chance is None else chance.permutation(sequence))

    # Batches of a closed set of shapes.

    @cached_property
    def table(self) -> ShapeTable:
        """The shapes, chosen for these lengths."""
        histogram = length_histogram(self.source_lengths, self.target_lengths)
        return choose_shapes(histogram, self.num_shapes, self.batch_tokens)

    @cached_property
    def shape_numbers(self) -> np.ndarray:
        """The number of each pair's shape."""
        numbers = np.empty(len(self.source_lengths), np.uint8 if len(self.table.shapes) <= 256 else np.uint16)
        for part in parts(len(numbers)):
            numbers[part] = self.table.shape_of[self.source_lengths[part], self.target_lengths[part]]
        return numbers

    def _bucketed(self, chance) -> tuple[np.ndarray, np.ndarray, list[BatchShape]]:
        order, filled, sizes, shapes = np.empty(len(self.source_lengths), np.uint32), 0, [], []
        leftovers = [[] for _ in self.table.shapes]
        for number, shape in enumerate(self.table.shapes):
            own = np.flatnonzero(self.shape_numbers == number).astype(np.uint32)
            if chance is not None:
                chance.shuffle(own)
            # Those that came from shorter shapes go first, so that no pair is moved up twice if it can be helped.
            pairs = np.concatenate([*leftovers[number], own])
            is_last = self.table.next_of[number] == number
            full = len(pairs) if is_last else len(pairs) - len(pairs) % shape.rows
            order[filled : filled + full] = pairs[:full]
            filled += full
            new_sizes = [min(shape.rows, full - start) for start in range(0, full, shape.rows)]
            sizes += new_sizes
            shapes += [shape] * len(new_sizes)
            if full < len(pairs):
                leftovers[self.table.next_of[number]].append(pairs[full:])
        return order, np.cumsum([0, *sizes]), shapes

    # Batches padded to their own longest pair.

    def _sorted(self, chance) -> tuple[np.ndarray, np.ndarray, list[BatchShape]]:
        order = np.arange(len(self.source_lengths), dtype=np.uint32)
        if chance is not None:
            chance.shuffle(order)
        order = order[np.argsort(self.sort_keys[order], kind="stable")]
        return order, *self.sorted_batches

    @cached_property
    def sort_keys(self) -> np.ndarray:
        """Orders pairs by target and then by source, up and down in turns so that neighbours are alike."""
        source, target = self.source_lengths.astype(np.int64), self.target_lengths.astype(np.int64)
        return target * (2 * source.max() + 2) + np.where(target % 2, source, 2 * source.max() - source)

    @cached_property
    def sorted_batches(self) -> tuple[np.ndarray, list[BatchShape]]:
        """Where batches begin among the sorted pairs, and their shapes; the lengths are the same in every epoch."""
        order = np.argsort(self.sort_keys, kind="stable")
        starts, shapes = [0], []
        while starts[-1] < len(order):
            batch, shape = self._longest_batch(order, starts[-1])
            starts.append(starts[-1] + batch)
            shapes.append(shape)
        return np.array(starts), shapes

    def _longest_batch(self, order: np.ndarray, start: int) -> tuple[int, BatchShape]:
        window = order[start : start + self.batch_tokens]
        sources = np.maximum.accumulate(self.source_lengths[window])
        targets = np.maximum.accumulate(self.target_lengths[window])
        positions = np.maximum(sources, targets) * np.arange(1, len(window) + 1)
        rows = max(1, int(np.searchsorted(positions, self.batch_tokens, side="right")))
        return rows, BatchShape(rows, int(sources[rows - 1]), int(targets[rows - 1]))


def length_histogram(source_lengths: np.ndarray, target_lengths: np.ndarray) -> np.ndarray:
    """Counts pairs by length: entry [s, t] is the number of those with source length s and target length t."""
    columns = int(target_lengths.max()) + 1
    histogram = np.zeros((int(source_lengths.max()) + 1) * columns, np.int64)
    for part in parts(len(source_lengths)):
        cells = source_lengths[part].astype(np.int64) * columns + target_lengths[part]
        histogram += np.bincount(cells, minlength=len(histogram))
    return histogram.reshape(-1, columns)
