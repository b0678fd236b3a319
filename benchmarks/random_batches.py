"""The batch that every contender is trained on."""

import numpy as np

from benchmarks.shapes import Shape

PAD_ID = 0
FIRST_WORD_ID = 4  # Below it are padding, start, end and unknown.


def random_batch(shape: Shape) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws source ids, target ids and labels, each `(B, T)`, full of real tokens; the same for every contender."""
    generator = np.random.default_rng(0)
    size = (3, shape.batch_size, shape.length)
    source_ids, target_ids, labels = generator.integers(FIRST_WORD_ID, shape.vocabulary_size, size, dtype="int32")
    return source_ids, target_ids, labels
