"""The ids of pairs, as they are stored or cut anew in every epoch, and how they are put together to a batch."""

import numpy as np

from keras_transformer.data.shapes import BatchShape
from keras_transformer.data.store import Store
from keras_transformer.text import SubwordSampling

Ids = tuple[dict[str, np.ndarray], np.ndarray]


class PairIds:
    """Ids and lengths of the sentences of a store.

    Args:
        store: The tokenized pairs, with their texts if they are to be sampled.
        tokenizer: What they were tokenized with.
        sampling: Cuts each sentence anew in every epoch; `None` keeps the ids as they are stored.
        seed: What sampling depends on, beside the epoch.
    """

    def __init__(self, store: Store, tokenizer, sampling: SubwordSampling | None, seed: int):
        self.store, self.tokenizer, self.sampling, self.seed = store, tokenizer, sampling, seed

    def planned_lengths(self, side: str) -> np.ndarray:
        """Returns the length of each sentence, its end or start included; with sampling, the length that is kept free."""
        lengths = getattr(self.store, side).lengths()
        if self.sampling is not None:
            lengths = np.ceil(lengths * self._growth(side)).astype(np.int32) + 1
        lengths += 1
        return lengths

    def _growth(self, side: str, num_samples: int = 500) -> float:
        """Measures how much longer sampled sentences are than usual ones, with room for the less likely ones."""
        numbers = np.linspace(0, len(self.store) - 1, min(num_samples, len(self.store))).astype(int)
        sampled = self.sample(side, self.store.texts(side, numbers), seed=0)
        usual = getattr(self.store, side).lengths()[numbers]
        ratios = np.array([len(row) for row in sampled]) / usual
        return max(1.0, float(ratios.mean() + ratios.std()))

    def rows(self, side: str, numbers: np.ndarray, width: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns ids `(B, width - 1)`, arbitrary beyond the ends, and the lengths."""
        if len(numbers) == 0:
            return np.zeros((0, width - 1), np.int32), np.zeros(0, np.int64)
        values, lengths = getattr(self.store, side).padded(numbers, width - 1)
        if self.sampling is not None:
            self._draw(side, numbers, values, lengths, epoch)
        return values, lengths

    def _draw(self, side: str, numbers: np.ndarray, values: np.ndarray, lengths: np.ndarray, epoch: int):
        """Puts sampled sentences in the place of the usual ones; one that finds no room stays as it is."""
        seed = int(np.random.SeedSequence([self.seed, epoch, int(numbers[0])]).generate_state(1)[0])
        for row, ids in enumerate(self.sample(side, self.store.texts(side, numbers), seed)):
            if 0 < len(ids) <= values.shape[1]:
                values[row, : len(ids)] = ids
                lengths[row] = len(ids)

    def sample(self, side: str, texts: list[str], seed: int) -> list[list[int]]:
        """Cuts texts of one side in some other way."""
        return getattr(self.tokenizer, side).encode(texts, sample=self.sampling, seed=seed)


def assemble(source, source_lengths, target, target_lengths, shape: BatchShape, tokenizer) -> Ids:
    """Adds start and end to rows of ids and pads them to a shape."""
    rows = len(source_lengths)
    source_ids = np.full((shape.rows, shape.source_length), tokenizer.source.pad_id, np.int32)
    target_ids = np.full((shape.rows, shape.target_length), tokenizer.target.pad_id, np.int32)
    labels = target_ids.copy()
    place = np.arange(shape.source_length - 1)
    np.copyto(source_ids[:rows, :-1], source, where=place < source_lengths[:, None])
    source_ids[np.arange(rows), source_lengths] = tokenizer.source.end_id
    is_token = np.arange(shape.target_length - 1) < target_lengths[:, None]
    np.copyto(labels[:rows, :-1], target, where=is_token)
    labels[np.arange(rows), target_lengths] = tokenizer.target.end_id
    np.copyto(target_ids[:rows, 1:], target, where=is_token)
    target_ids[:rows, 0] = tokenizer.target.start_id
    return {"source_ids": source_ids, "target_ids": target_ids}, labels
