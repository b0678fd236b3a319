"""Batches of tokenized pairs for `model.fit`, on every backend."""

import copy
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict

import keras
import numpy as np

from keras_transformer.data.accumulation import filled_up, weights_in_update
from keras_transformer.data.building import Filters, open_store
from keras_transformer.data.fitting import fit_arguments, fit_input, unlike
from keras_transformer.data.plan import EpochPlan, Planner
from keras_transformer.data.reading import PairReader, Side
from keras_transformer.data.rows import PairIds, assemble
from keras_transformer.data.shapes import BatchShape
from keras_transformer.data.statistics import Statistics
from keras_transformer.data.store import Store
from keras_transformer.text import SubwordSampling, as_tokenizer

Batch = tuple[dict[str, np.ndarray], np.ndarray] | tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


def parallel_dataset(
    source: Side,
    target: Side | None,
    tokenizer,
    batch_tokens: int = 4096,
    *,
    seed: int = 0,
    num_shapes: int | None = 16,
    shuffle: bool = True,
    max_length: int | None = 256,
    max_ratio: float | None = 4.0,
    without: Iterable[str] = (),
    subword_sampling: SubwordSampling | None = None,
    shard: tuple[int, int] = (0, 1),
    batches_per_update: int = 1,
    copies: int = 1,
    cache: str | os.PathLike | None = None,
    progress: bool = True,
) -> "ParallelDataset":
    """Makes a dataset of batches from a parallel corpus.

    Args:
        source: Files (`.txt` or any other text, `.gz`; one or several) or an iterable of strings. With `target=None`: files of
            two columns separated by a tab, or an iterable of (source, target) pairs.
        target: Files or an iterable of strings, line by line the translations of the source.
        tokenizer: A `Tokenizer`, a `TokenizerPair`, or a tokenizer of keras-hub.
        batch_tokens: The most positions, padding included, that a batch has on either side.
        seed: What shuffling depends on, beside the epoch.
        num_shapes: How many different shapes batches may have, so that XLA and JAX compile as many programs and no more.
            `None` pads each batch to its own longest sentences, which wastes least where nothing is compiled.
        shuffle: `False` keeps one fixed order, for validation.
        max_length: Pairs with more tokens on either side are dropped and counted.
        max_ratio: Pairs whose longer side has more tokens than `max_ratio` times the shorter one, plus ten, are dropped and
            counted.
        without: Source sentences whose pairs are dropped and counted, such as those of a test set.
        subword_sampling: Cuts each sentence anew in every epoch (BPE-dropout or subword regularization).
        shard: `(index, count)`: this dataset's part of the rows of every batch, for hosts that train together.
        batches_per_update: How many batches in a row make one update of an optimizer with `gradient_accumulation_steps`. With
            more than one, a batch has weights as well, with which every token of an update counts the same, and the last update
            of an epoch is filled up with batches of padding.
        copies: How often each pair stands in its batch, one copy right behind the other; `batch_tokens` counts all of them.
            `losses.RDropCrossEntropy` needs two.
        cache: Where tokenized files are kept. Defaults to a folder in `~/.cache/keras_transformer`, or in what the environment
            variable `KERAS_TRANSFORMER_CACHE` names.
        progress: Whether to show a progress bar if the standard error stream is a terminal.

    Returns:
        A `ParallelDataset`, ready for `model.fit`.

    Example:

    >>> from keras_transformer import Tokenizer
    >>> source, target = ["ein Haus", "ein Baum", "das Haus"] * 9, ["a house", "a tree", "the house"] * 9
    >>> tokenizer = Tokenizer.train(iter(source + target), vocabulary_size=300)
    >>> train = parallel_dataset(source, target, tokenizer, batch_tokens=64, num_shapes=2)
    >>> inputs, labels = train[0]
    >>> inputs["target_ids"][0, 0] == tokenizer.start_id
    np.True_
    >>> inputs, labels, weights = parallel_dataset(source, target, tokenizer, 64, batches_per_update=4)[0]
    >>> weights.shape == labels.shape
    True
    """
    check_options(batch_tokens, num_shapes, seed, shard, batches_per_update, copies)
    tokenizer = as_tokenizer(tokenizer)
    filters = Filters(max_length, max_ratio, frozenset(without))
    store = open_store(PairReader(source, target), tokenizer, filters, cache, subword_sampling is not None, progress)
    seed = seed if shuffle else None
    return ParallelDataset(
        store, tokenizer, batch_tokens, seed, num_shapes, subword_sampling, shard, batches_per_update, copies
    )


def check_options(
    batch_tokens: int,
    num_shapes: int | None,
    seed: int,
    shard: tuple[int, int],
    batches_per_update: int,
    copies: int = 1,
):
    """Raises a `ValueError` for numbers that cannot be meant."""
    if batch_tokens < 1:
        raise ValueError(f"`batch_tokens` must be a positive integer. Received: batch_tokens={batch_tokens}")
    if not 1 <= copies <= batch_tokens:
        raise ValueError(f"`copies` must be at least 1, and at most `batch_tokens`. Received: copies={copies}")
    if num_shapes is not None and num_shapes < 1:
        raise ValueError(f"`num_shapes` must be a positive integer, or `None`. Received: num_shapes={num_shapes}")
    if seed < 0:
        raise ValueError(f"`seed` must not be negative. Received: seed={seed}")
    index, count = shard
    if not 0 <= index < count:
        raise ValueError(f"`shard` must be (index, count) with 0 <= index < count. Received: shard={shard}")
    if batches_per_update < 1:
        raise ValueError(f"`batches_per_update` must be a positive integer. Received: batches_per_update={batches_per_update}")


class ParallelDataset(keras.utils.PyDataset):
    """Shuffled batches of pairs, each a `({"source_ids", "target_ids"}, labels)` of int32 arrays.

    A source is a sentence and its end; `target_ids` are the start and the sentence, labels the sentence and its end. What is
    left of a row is `pad_id`, and rows beyond the pairs of a batch are nothing but padding. With `batches_per_update` above 1 a
    batch has a third part, float32 weights of the labels' shape; evaluation does without.

    What an epoch consists of is a function of the seed and the number of the epoch, counted from 0. `Transformer.fit` takes
    care that epoch i of `fit` is epoch i of the dataset, with `initial_epoch` too. In the `fit` of another Keras model the
    epochs follow each other from 0, or from what `set_epoch` said. `dataset[step]` is a batch of the current epoch.

    `parallel_dataset` makes these.

    Args:
        store: The tokenized pairs.
        tokenizer: What they were tokenized with.
        batch_tokens, num_shapes, subword_sampling, shard, batches_per_update, copies: As in `parallel_dataset`.
        seed: As in `parallel_dataset`; `None` does not shuffle.
    """

    def __init__(
        self,
        store: Store,
        tokenizer,
        batch_tokens: int,
        seed: int | None = 0,
        num_shapes: int | None = 16,
        subword_sampling: SubwordSampling | None = None,
        shard: tuple[int, int] = (0, 1),
        batches_per_update: int = 1,
        copies: int = 1,
    ):
        super().__init__()
        self.store, self.tokenizer = store, tokenizer
        self.seed, self.subword_sampling, self.shard = seed, subword_sampling, shard
        self.batch_tokens, self.num_shapes = batch_tokens, num_shapes
        self.batches_per_update, self.copies = batches_per_update, copies
        self.pair_ids = PairIds(store, tokenizer, subword_sampling, seed or 0)
        source_lengths, target_lengths = (self.pair_ids.planned_lengths(side) for side in ("source", "target"))
        self.planner = Planner(source_lengths, target_lengths, batch_tokens // copies, num_shapes, seed)
        self.first_step = 0
        self.epoch = 0
        self._plan, self._plan_epoch = filled_up(self.planner.plan(0), batches_per_update), 0
        self._update_rows = None, []
        self._steps_taken = None  # Counts within an epoch of `fit`.

    # What Keras asks of a dataset.

    def __len__(self) -> int:
        return len(self.plan(self.epoch)) - self.first_step

    def __getitem__(self, step: int) -> Batch:
        """Returns a batch of the current epoch; within `fit` the next one, for Keras would shuffle the steps once more."""
        if self._steps_taken is not None:
            step, self._steps_taken = self._steps_taken, self._steps_taken + 1
        if not 0 <= step < len(self):
            raise IndexError(f"There are {len(self)} batches in an epoch. Received: {step}")
        batch = self.batch(self.epoch, self.first_step + step)
        if step == 1 and self._steps_taken is None and keras.backend.backend() == "tensorflow":
            return unlike(batch, self[0])  # Keras looks at two batches to find out which lengths may vary.
        return batch

    def on_epoch_begin(self):
        """Is called by Keras before an epoch."""
        self._steps_taken = 0

    def on_epoch_end(self):
        """Is called by Keras after an epoch, and also after it has merely looked at the first batch."""
        if self._steps_taken is not None and self._steps_taken >= len(self):
            self.epoch += 1
        self._steps_taken = None

    # Batches.

    def set_epoch(self, epoch: int):
        """Makes an epoch, counted from 0, the current one."""
        self.epoch = epoch

    def plan(self, epoch: int) -> EpochPlan:
        """Returns which pairs form which batch of an epoch."""
        if self._plan_epoch != epoch:
            self._plan, self._plan_epoch = filled_up(self.planner.plan(epoch), self.batches_per_update), epoch
        return self._plan

    def batch(self, epoch: int, step: int) -> Batch:
        """Returns any batch of any epoch."""
        numbers, shape = self.plan(epoch).batch(step)
        index, count = self.shard
        shape = shape._replace(rows=-(-shape.rows // count))
        source, source_lengths = self.pair_ids.rows("source", numbers, shape.source_length, epoch)
        update, position = self._targets_of_update(epoch, step), step % self.batches_per_update
        target, target_lengths = update[position]
        mine = slice(index, None, count)
        batch = assemble(source[mine], source_lengths[mine], target[mine], target_lengths[mine], shape, self.tokenizer)
        batch = keras.tree.map_structure(lambda rows: np.repeat(rows, self.copies, axis=0), batch)
        if self.batches_per_update == 1:
            return batch
        tokens = [int(lengths.sum()) + len(lengths) for _, lengths in update]  # Ends count, and so do the rows of other shards.
        return *batch, weights_in_update(batch[1].shape, tokens, position)

    def _targets_of_update(self, epoch: int, step: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns target ids and lengths of all batches of a step's update, which are read or drawn once for all of them."""
        first = step - step % self.batches_per_update
        update, rows = self._update_rows
        if update != (epoch, first):
            batches = [self.plan(epoch).batch(first + offset) for offset in range(self.batches_per_update)]
            rows = [self.pair_ids.rows("target", numbers, shape.target_length, epoch) for numbers, shape in batches]
            self._update_rows = (epoch, first), rows
        return rows

    def batches(self, epoch: int | None = None, first_step: int = 0) -> Iterator[Batch]:
        """Yields the batches of an epoch from a step on: what an uninterrupted run sees from there.

        Args:
            epoch: The epoch, counted from 0; `None` takes the current one.
            first_step: The step to begin with.
        """
        epoch = self.epoch if epoch is None else epoch
        for step in range(self.first_step + first_step, len(self.plan(epoch))):
            yield self.batch(epoch, step)

    def from_step(self, first_step: int) -> "ParallelDataset":
        """Returns a dataset whose epochs begin at a later step, to finish an epoch that was interrupted.

        Args:
            first_step: How many batches of the epoch are done.

        Returns:
            A dataset for one epoch: `model.fit(train.from_step(40), initial_epoch=3, epochs=4)`.
        """
        if not 0 <= first_step < len(self.plan(self.epoch)):
            raise ValueError(
                f"`first_step` must be one of the {len(self.plan(self.epoch))} steps of an epoch. Received: {first_step}"
            )
        rest = copy.copy(self)
        rest.first_step = first_step
        return rest

    # What it is.

    @property
    def fingerprint(self) -> dict:
        """What every epoch is made of, for JSON: digests of the sentences' ids and of the tokenizer, and the options.

        A checkpoint notes it, so that no training goes on with other data. The shard is left out: another number of hosts may
        go on.
        """
        return {
            "source": self.store.digest("source"),
            "target": self.store.digest("target"),
            "tokenizer": self.tokenizer.fingerprint,
            "batch_tokens": self.batch_tokens,
            "seed": self.seed,
            "num_shapes": self.num_shapes,
            "subword_sampling": self.subword_sampling and asdict(self.subword_sampling),
            "batches_per_update": self.batches_per_update,
            "copies": self.copies,
        }

    @property
    def statistics(self) -> Statistics:
        """Pairs kept and dropped and why, lengths, words."""
        return self.store.statistics

    @property
    def num_pairs(self) -> int:
        """Number of pairs in an epoch."""
        return len(self.store)

    def shapes(self) -> list[BatchShape]:
        """Returns the different shapes of the batches of all shards together."""
        return sorted(set(self.plan(self.epoch).shapes))

    def padding_share(self) -> float:
        """Returns which share of all positions of an epoch, source and target, is padding."""
        positions = sum(shape.rows * (shape.source_length + shape.target_length) for shape in self.plan(self.epoch).shapes)
        tokens = sum(getattr(self.store, side).total() + self.num_pairs for side in ("source", "target"))
        return 1 - tokens / positions

    def describe(self) -> str:
        """Says in a few lines what is in the corpus and in its batches."""
        plan = self.plan(self.epoch)
        return (
            f"{self.statistics.describe()}\n"
            f"batches     {len(plan):,} an epoch in {len(set(plan.shapes))} shapes, {self.padding_share():.1%} of their "
            f"positions padding"
            f"{f'; {self.batches_per_update} make an update' if self.batches_per_update > 1 else ''}"
        )

    # For `Transformer.fit` and `evaluate`.

    def fit_arguments(self, arguments: dict) -> dict:
        """Returns the arguments of `fit` as they should be when this dataset is its `x`."""
        return fit_arguments(self, arguments)

    def fit_input(self):
        """Returns what Keras is to iterate over in an evaluation: the batches in their order, each counting for itself."""
        return fit_input(self if self.batches_per_update == 1 else self.without_updates())

    def without_updates(self) -> "ParallelDataset":
        """Returns a dataset of the same batches without weights and without batches of nothing but padding."""
        plain = copy.copy(self)
        plain.batches_per_update, plain._plan_epoch, plain._update_rows = 1, None, (None, [])
        return plain
