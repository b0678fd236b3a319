"""Reversed digit strings: a task that a tiny model learns in a minute, for tests and first steps."""

import random

from keras_transformer.data.corpora.corpus import Corpus, Pairs


def reverse(num_pairs: int = 10_000, seed: int = 0, min_length: int = 3, max_length: int = 10) -> Corpus:
    """Generates strings of digits and their reversals, such as `3 1 4` and `4 1 3`.

    All strings are distinct, so that the splits are disjoint. A tenth of them is for validation, another for the test.

    Args:
        num_pairs: Number of pairs in all splits together.
        seed: What the choice of strings depends on, and nothing else.
        min_length: Number of digits of the shortest strings.
        max_length: Number of digits of the longest strings.

    Returns:
        A `Corpus` with the splits `train`, `validation` and `test`.

    Example:

    >>> corpus = reverse(num_pairs=100)
    >>> len(corpus.train), len(corpus.validation), len(corpus.test)
    (80, 10, 10)
    """
    if not 1 <= min_length <= max_length:
        raise ValueError(
            f"Lengths must be positive, the shortest first. Received: min_length={min_length}, max_length={max_length}"
        )
    room = sum(10**length for length in range(min_length, max_length + 1))
    if not 10 <= num_pairs <= room:
        raise ValueError(
            f"There are {room} strings of {min_length} to {max_length} digits, and every split needs at least one. "
            f"`num_pairs` must lie between 10 and {room}. Received: num_pairs={num_pairs}"
        )
    strings = distinct_strings(num_pairs, random.Random(seed), min_length, max_length)
    held_out = num_pairs // 10
    return Corpus(
        name="reverse",
        source_language="digits",
        target_language="reversed",
        splits={
            "train": reversed_pairs(strings[2 * held_out :]),
            "validation": reversed_pairs(strings[:held_out]),
            "test": reversed_pairs(strings[held_out : 2 * held_out]),
        },
    )


def distinct_strings(count: int, generator: random.Random, min_length: int, max_length: int) -> list[str]:
    """Draws distinct strings of digits; all lengths that have strings left are equally likely."""
    left = {length: 10**length for length in range(min_length, max_length + 1)}
    strings: dict[str, None] = {}  # A set would not keep the order.
    while len(strings) < count:
        length = generator.choice([length for length, number in left.items() if number])
        string = f"{generator.randrange(10**length):0{length}d}"
        if string not in strings:
            strings[string] = None
            left[length] -= 1
    return list(strings)


def reversed_pairs(strings: list[str]) -> Pairs:
    """Sets each string, its digits apart, beside its reversal."""
    return Pairs([" ".join(string) for string in strings], [" ".join(reversed(string)) for string in strings])
