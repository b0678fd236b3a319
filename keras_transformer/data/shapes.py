"""Which batch shapes a corpus is padded to: few of them, and little padding."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

ROW_MULTIPLE = 8  # Rows are rounded down to it: batches then divide among 2, 4 or 8 devices, and suit the units of a GPU.


class BatchShape(NamedTuple):
    """Rows and padded lengths of a batch."""

    rows: int
    source_length: int
    target_length: int


@dataclass(frozen=True)
class ShapeTable:
    """The shapes of a corpus, and which pair goes where.

    Attributes:
        shapes: The shapes. The last one is long enough for every pair.
        shape_of: For source length s and target length t, `shape_of[s, t]` is the number of the shape; -1 where no pair is.
        next_of: For each shape, the number of one at least as long on both sides that takes the pairs which did not fill a
            batch; the last shape has itself.
    """

    shapes: tuple[BatchShape, ...]
    shape_of: np.ndarray
    next_of: tuple[int, ...]


def rows_of(source_length: int, target_length: int, batch_tokens: int, num_pairs: int) -> int:
    """Returns how many rows of these lengths the budget allows: at least one, and not more than there are pairs."""
    rows = max(1, batch_tokens // max(source_length, target_length, 1))
    rows = rows if rows < ROW_MULTIPLE else rows - rows % ROW_MULTIPLE
    return min(rows, -(-num_pairs // ROW_MULTIPLE) * ROW_MULTIPLE)


def choose_shapes(histogram: np.ndarray, num_shapes: int, batch_tokens: int) -> ShapeTable:
    """Divides the plane of source and target lengths into boxes, each of which is padded to its longest pair.

    Starting from one box for all pairs, the cut that saves the most padded positions is made again and again. One shape is as
    long as the longest source and the longest target: it takes the pairs that filled no batch elsewhere. A small corpus fills
    few batches of many shapes; it is given fewer of them if that leaves less padding.

    Args:
        histogram: `histogram[s, t]` is the number of pairs with source length s and target length t.
        num_shapes: How many shapes there may be.
        batch_tokens: The most padded positions that a batch may have on either side.

    Returns:
        A `ShapeTable`.
    """
    tables = [table_of(boxes, histogram, batch_tokens) for boxes in cut_up(histogram, num_shapes)]
    tables = [table for table in tables if len(table.shapes) <= num_shapes]
    return min(tables, key=lambda table: padded_positions(table, histogram))


def cut_up(histogram: np.ndarray, num_shapes: int) -> list[list["Box"]]:
    """Returns the boxes after each cut."""
    boxes = [tight_box(histogram, Box(0, histogram.shape[0], 0, histogram.shape[1]))]
    cuts = [best_cut(histogram, boxes[0])]
    stages = [boxes]
    while len(boxes) < num_shapes and max(cut.saved for cut in cuts) > 0:
        chosen = int(np.argmax([cut.saved for cut in cuts]))
        parts = [tight_box(histogram, part) for part in cuts[chosen].parts]
        boxes = [*boxes[:chosen], *parts, *boxes[chosen + 1 :]]
        cuts[chosen : chosen + 1] = [best_cut(histogram, part) for part in parts]
        stages.append(boxes)
    return stages


def padded_positions(table: ShapeTable, histogram: np.ndarray) -> int:
    """Counts the positions of all batches of an epoch."""
    counts = [int(histogram[table.shape_of == number].sum()) for number in range(len(table.shapes))]
    positions = 0
    for number, shape in enumerate(table.shapes):
        is_last = table.next_of[number] == number
        batches = -(-counts[number] // shape.rows) if is_last else counts[number] // shape.rows
        if not is_last:
            counts[table.next_of[number]] += counts[number] - batches * shape.rows
        positions += batches * shape.rows * (shape.source_length + shape.target_length)
    return positions


class Box(NamedTuple):
    """A rectangle of lengths, from a first to before a last one on either side."""

    source_from: int
    source_to: int
    target_from: int
    target_to: int

    @property
    def lengths(self) -> tuple[int, int]:
        """The longest source and target."""
        return self.source_to - 1, self.target_to - 1


class Cut(NamedTuple):
    """A way to divide a box, and how many padded positions it saves."""

    saved: int
    parts: tuple[Box, ...]


def tight_box(histogram: np.ndarray, box: Box) -> Box:
    """Shrinks a box to the pairs in it."""
    inside = histogram[box.source_from : box.source_to, box.target_from : box.target_to] > 0
    sources, targets = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
    return Box(
        box.source_from + int(sources[0]),
        box.source_from + int(sources[-1]) + 1,
        box.target_from + int(targets[0]),
        box.target_from + int(targets[-1]) + 1,
    )


def best_cut(histogram: np.ndarray, box: Box) -> Cut:
    """Finds the cut across the source or the target axis that saves most."""
    inside = histogram[box.source_from : box.source_to, box.target_from : box.target_to]
    by_source, source_cut = best_cut_of_rows(inside, box.source_from, box.target_from)
    by_target, target_cut = best_cut_of_rows(inside.T, box.target_from, box.source_from)
    if max(by_source, by_target) <= 0:
        return Cut(0, ())
    if by_source >= by_target:
        return Cut(by_source, (box._replace(source_to=source_cut), box._replace(source_from=source_cut)))
    return Cut(by_target, (box._replace(target_to=target_cut), box._replace(target_from=target_cut)))


def best_cut_of_rows(counts: np.ndarray, first_row: int, first_column: int) -> tuple[int, int]:
    """Returns the padded positions saved by the best cut between two rows, and the number of the row after it."""
    rows, columns = counts.shape
    if rows < 2:
        return 0, 0
    pairs = counts.sum(1)
    last_column = np.where(pairs > 0, columns - 1 - np.argmax(counts[:, ::-1] > 0, axis=1), -1)
    last_row = np.where(pairs > 0, np.arange(rows), -1)
    above, below = slice(None, -1), slice(1, None)
    length_above = np.maximum.accumulate(last_row)[above] + np.maximum.accumulate(last_column)[above]
    column_below = np.maximum.accumulate(last_column[::-1])[::-1][below]
    pairs_above = np.cumsum(pairs)[above]
    pairs_below = pairs.sum() - pairs_above
    whole = pairs.sum() * (rows - 1 + columns - 1)
    # The offsets of the box cancel: as many pairs before the cut as after it.
    saved = whole - pairs_above * length_above - pairs_below * (rows - 1 + column_below)
    best = int(np.argmax(saved))
    return int(saved[best]), first_row + best + 1


def table_of(boxes: list[Box], histogram: np.ndarray, batch_tokens: int) -> ShapeTable:
    """Orders boxes by length and writes down which pairs they hold and where their leftovers go."""
    boxes = sorted(boxes, key=lambda box: (sum(box.lengths), box.lengths))
    lengths = [box.lengths for box in boxes]
    longest = tuple(max(sides) for sides in zip(*lengths, strict=True))
    if lengths[-1] != longest:
        lengths.append(longest)
    shape_of = np.full(histogram.shape, -1, np.int16)
    for number, box in enumerate(boxes):
        shape_of[box.source_from : box.source_to, box.target_from : box.target_to] = number
    next_of = tuple(
        next((later for later in range(number + 1, len(lengths)) if covers(lengths[later], lengths[number])), number)
        for number in range(len(lengths))
    )
    num_pairs = int(histogram.sum())
    shapes = tuple(BatchShape(rows_of(*both, batch_tokens, num_pairs), *both) for both in lengths)
    return ShapeTable(shapes, shape_of, next_of)


def covers(longer: tuple[int, int], shorter: tuple[int, int]) -> bool:
    """Tells whether a shape is at least as long as another on both sides."""
    return longer[0] >= shorter[0] and longer[1] >= shorter[1]
