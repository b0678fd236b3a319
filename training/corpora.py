"""The pairs that a recipe or a command line names, a tokenizer for them, and their batches."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import keras_transformer as kt
from keras_transformer.data.building import Filters
from keras_transformer.data.parallel import check_options
from keras_transformer.data.reading import PairReader

from .held_out import choose_held_out, dealt_out
from .recipe_tables import DataTable, TokenizerTable


@dataclass(frozen=True)
class SplitPairs:
    """The pairs of a split, as `parallel_dataset` takes them.

    Args:
        name: What to call them.
        source: Files, or pairs of strings.
        target: Files, or `None` if `source` has both sides.
        without: Source sentences whose pairs are no part of the split.
    """

    name: str
    source: list[Path] | kt.data.Pairs
    target: list[Path] | None = None
    without: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for chunk in PairReader(self.source, self.target).chunks():
            for pair in zip(chunk.source, chunk.target, strict=True):
                if pair[0] not in self.without:
                    yield pair

    def side(self, side: str) -> Iterator[str]:
        """Yields all sentences of the `"source"` or the `"target"`."""
        return (pair[0 if side == "source" else 1] for pair in self)

    def lines(self) -> Iterator[str]:
        """Yields all sentences, those of the source first."""
        return chain(self.side("source"), self.side("target"))

    def pairs(self, most: int | None = None) -> kt.data.Pairs:
        """Reads the pairs, or the first of them, into memory."""
        return kt.data.Pairs(*(list(islice(self.side(side), most)) for side in ("source", "target")))


@dataclass(frozen=True)
class Splits:
    """All that a recipe's table `[data]` names.

    Args:
        train: The pairs to train on.
        validation: The pairs to watch training with, if there are any.
        tests: The pairs for the final measurement, by name.
        corpus: The built-in corpus that they are from, if they are.
    """

    train: SplitPairs
    validation: SplitPairs | None
    tests: dict[str, SplitPairs]
    corpus: kt.data.Corpus | None = None

    @property
    def measured(self) -> list[str]:
        """Names of the sets that translations are measured on: all tests, and `"validation"`."""
        return [*self.tests, *([] if self.validation is None else ["validation"])]

    def pairs_of(self, name: str) -> kt.data.Pairs:
        """Reads the pairs of `"validation"` or of a test into memory."""
        return (self.validation if name == "validation" else self.tests[name]).pairs()


def check_numbers(table: DataTable):
    """Raises a `ValueError` for numbers that cannot be meant, before hours are spent on a corpus."""
    check_options(table.batch_tokens, table.num_shapes, seed=0, shard=(0, 1), batches_per_update=1)
    Filters(table.max_length, table.max_ratio)


def find_splits(table: DataTable) -> Splits:
    """Finds the pairs that a recipe's table `[data]` names.

    Args:
        table: The table.

    Returns:
        Files, which are not opened yet, or the splits of a built-in corpus.
    """
    if table.corpus is not None:
        return corpus_splits(table)
    found = {split: file_split(table, split) for split in ("train", "validation", "test")}
    if table.hold_out is not None:
        found |= held_out(found, table.hold_out)
    tests = {} if found["test"] is None else {"test": found["test"]}
    return Splits(limited(found["train"], table.max_pairs), found["validation"], tests)


def corpus_splits(table: DataTable) -> Splits:
    """Makes or reads a built-in corpus."""
    options = {
        "multi30k": {"directory": table.folder, "language": table.language, "text": table.text},
        "pronouns": {} if table.max_pairs is None else {"num_train": table.max_pairs},  # So that every word is among them.
        "reverse": {},
    }
    corpus = getattr(kt.data, table.corpus)(**options[table.corpus])
    found = {name: SplitPairs(f"{table.corpus} ({name})", pairs) for name, pairs in corpus.splits.items()}
    tests = {name: pairs for name, pairs in found.items() if name.startswith("test")}
    return Splits(limited(found["train"], table.max_pairs), found.get("validation"), tests, corpus)


def file_split(table: DataTable, split: str) -> SplitPairs | None:
    """Returns the files of a split, if there are any."""
    source, target = table.files(split)
    if source is None:
        return None
    name = ", ".join(str(file) for file in [*source, *(target or ())])
    return SplitPairs(name, list(source), None if target is None else list(target))


def held_out(found: dict[str, SplitPairs | None], count: int) -> dict[str, SplitPairs]:
    """Makes the splits that have no files of pairs of the training files, which are left without them."""
    missing = [split for split in ("validation", "test") if found[split] is None]
    if not missing:
        raise ValueError("Validation and test have files: there is nothing to hold out. Leave `hold_out` away")
    train = found["train"]
    chosen = choose_held_out(train, count * len(missing))
    if len(chosen) < count * len(missing):
        raise ValueError(
            f"{train.name} has {len(chosen)} different sentences to hold out. Received: hold_out={count}, for "
            f"{' and '.join(missing)}. Give more text, or a smaller `hold_out`"
        )
    parts = dealt_out(chosen, len(missing))
    splits = {split: SplitPairs(f"{train.name} (held out)", part) for split, part in zip(missing, parts, strict=True)}
    return {**splits, "train": replace(train, without=frozenset(chosen.source))}


def limited(pairs: SplitPairs, most: int | None) -> SplitPairs:
    """Returns the first pairs of a split."""
    is_whole = most is None or (isinstance(pairs.source, kt.data.Pairs) and len(pairs.source) <= most)
    return pairs if is_whole else SplitPairs(f"{pairs.name}, the first {most:,}", pairs.pairs(most))


def make_tokenizer(pairs: SplitPairs, table: TokenizerTable) -> kt.Tokenizer | kt.TokenizerPair:
    """Loads or trains a vocabulary, or one for each language, as a recipe's table `[tokenizer]` says."""
    if table.file is not None:
        return kt.load_tokenizer(table.file)
    if table.shared:
        return train_tokenizer(pairs.lines(), table)
    return kt.TokenizerPair(*(train_tokenizer(pairs.side(side), table) for side in ("source", "target")))


def train_tokenizer(lines: Iterator[str], table: TokenizerTable) -> kt.Tokenizer:
    """Trains a vocabulary on lines."""
    return kt.Tokenizer.train(lines, table.vocabulary_size, model=table.model, normalization=table.normalization)


def make_dataset(pairs: SplitPairs, tokenizer, table: DataTable, **options) -> kt.data.ParallelDataset:
    """Makes the batches of pairs, as a recipe's table `[data]` says.

    Args:
        pairs: The pairs.
        tokenizer: What cuts them.
        table: The table.
        **options: Arguments of `parallel_dataset` that count more than the table.

    Returns:
        The dataset.
    """
    said = {
        "batch_tokens": table.batch_tokens,
        "num_shapes": table.num_shapes,
        "max_length": table.max_length,
        "max_ratio": table.max_ratio,
        "without": pairs.without,
    }
    return kt.data.parallel_dataset(pairs.source, pairs.target, tokenizer, **{**said, **options})
