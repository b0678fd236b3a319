"""The pairs that a recipe or a command line names, and a tokenizer for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import keras_transformer as kt
from keras_transformer.data.building import Filters
from keras_transformer.data.parallel import check_options
from keras_transformer.data.reading import PairReader
from training.recipe_tables import DataTable, TokenizerTable


@dataclass(frozen=True)
class TrainingPairs:
    """Pairs to train on, as `parallel_dataset` takes them.

    Args:
        name: What to call them.
        source: Files, or pairs of strings.
        target: Files, or `None` if `source` has both sides.
    """

    name: str
    source: list[Path] | kt.data.Pairs
    target: list[Path] | None = None

    def lines(self) -> Iterator[str]:
        """Yields all sentences, those of the source first."""
        for side in ("source", "target"):
            for chunk in PairReader(self.source, self.target).chunks():
                yield from getattr(chunk, side)


def check_numbers(table: DataTable):
    """Raises a `ValueError` for numbers that cannot be meant, before hours are spent on a corpus."""
    check_options(table.batch_tokens, table.num_shapes, seed=0, shard=(0, 1))
    Filters(table.max_length, table.max_ratio)


def training_pairs(table: DataTable) -> TrainingPairs:
    """Finds the pairs that a recipe's table `[data]` names.

    Args:
        table: The table.

    Returns:
        Files, which are not opened yet, or the training split of a built-in corpus.
    """
    if table.corpus is not None:
        options = {} if table.directory is None else {"directory": table.directory}
        return TrainingPairs(f"{table.corpus} (train)", getattr(kt.data, table.corpus)(**options).train)
    files = [*table.train_source, *(table.train_target or ())]
    target = None if table.train_target is None else list(table.train_target)
    return TrainingPairs(", ".join(map(str, files)), list(table.train_source), target)


def train_tokenizer(pairs: TrainingPairs, table: TokenizerTable) -> kt.Tokenizer:
    """Trains one vocabulary for both sides, as a recipe's table `[tokenizer]` says."""
    return kt.Tokenizer.train(pairs.lines(), table.vocabulary_size, model=table.model, normalization=table.normalization)


def make_dataset(pairs: TrainingPairs, tokenizer, table: DataTable) -> kt.data.ParallelDataset:
    """Makes the batches of pairs, as a recipe's table `[data]` says."""
    return kt.data.parallel_dataset(
        pairs.source,
        pairs.target,
        tokenizer,
        table.batch_tokens,
        num_shapes=table.num_shapes,
        max_length=table.max_length,
        max_ratio=table.max_ratio,
    )
