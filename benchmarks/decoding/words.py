"""Names for ids, for systems that want to see words."""

from benchmarks.random_batches import FIRST_WORD_ID


def words_of(vocabulary_size: int) -> list[str]:
    """Returns a vocabulary."""
    return ["<pad>", "<s>", "</s>", "<unk>", *(f"w{number}" for number in range(FIRST_WORD_ID, vocabulary_size))]
