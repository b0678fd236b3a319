"""What is decoded: sentences of random words, and how long their translations are."""

from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.random_batches import FIRST_WORD_ID, PAD_ID

START_ID, END_ID = 1, 2
SHORTEST, LONGEST = 20, 60  # Of the realistic lengths, ends included.
NUM_LENGTHS = LONGEST - SHORTEST + 1
SOURCE_LENGTH = 24  # Where translations have a fixed length.
LIMIT = 120  # The most tokens of a translation that ends by itself: never reached.
FEWEST_SENTENCES = 4  # A batch of one sentence says little about lengths that differ.

REALISTIC = "realistic"


@dataclass(frozen=True)
class Job:
    """Some sentences to be translated, batch by batch.

    Attributes:
        workload: `"realistic"`, or the number of tokens that each translation has.
        beam_size: Number of hypotheses; 1 is greedy search.
        batch_size: Number of sentences that are translated at once.
    """

    workload: str
    beam_size: int
    batch_size: int

    @property
    def fixed_length(self) -> int | None:
        """How many tokens each translation has, its end included; `None` where the model decides."""
        return None if self.workload == REALISTIC else int(self.workload)

    @property
    def title(self) -> str:
        """Says what is decoded and how, in a few words."""
        lengths = "realistic lengths" if self.fixed_length is None else f"{self.fixed_length} tokens"
        return f"{lengths}, {'greedy' if self.beam_size == 1 else f'beam {self.beam_size}'}"

    def to_dict(self) -> dict:
        """Returns the fields by name."""
        return asdict(self)

    def drawn_lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Draws the lengths of sources and translations, ends included; the same for every contender."""
        if self.fixed_length is not None:
            return np.full(self.batch_size, SOURCE_LENGTH), np.full(self.batch_size, self.fixed_length)
        generator = np.random.default_rng(0)
        count = max(self.batch_size, FEWEST_SENTENCES)
        sources = generator.integers(SHORTEST, LONGEST + 1, count)
        return sources, np.clip(sources + generator.integers(-8, 9, count), SHORTEST, LONGEST)

    def natural_length(self, target_length: int) -> int:
        """Returns where a translation would end by itself: late where its length is fixed."""
        return target_length if self.fixed_length is None else LONGEST

    def batches(self, vocabulary_size: int) -> list[list[list[int]]]:
        """Draws the sentences: batches of rows of ids, each of which ends in the end."""
        generator = np.random.default_rng(1)
        source_lengths, target_lengths = self.drawn_lengths()
        rows = [
            [*random_words(generator, source - 1, self.natural_length(target), vocabulary_size), END_ID]
            for source, target in zip(source_lengths, target_lengths, strict=True)
        ]
        return [rows[first : first + self.batch_size] for first in range(0, len(rows), self.batch_size)]


def random_words(generator, count: int, target_length: int, vocabulary_size: int) -> list[int]:
    """Draws words, all of which ask for a translation of one length; see `length_classes`."""
    words = FIRST_WORD_ID + np.flatnonzero(length_classes(vocabulary_size) == target_length - SHORTEST)
    return generator.choice(words, count).tolist()


def length_classes(vocabulary_size: int) -> np.ndarray:
    """Returns for every word id which length of a translation it asks for, as the distance from `SHORTEST`."""
    return np.arange(vocabulary_size - FIRST_WORD_ID) % NUM_LENGTHS


def padded(rows: list[list[int]]) -> np.ndarray:
    """Returns rows as one array `(B, S)`."""
    ids = np.full((len(rows), max(map(len, rows))), PAD_ID, "int32")
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
    return ids
