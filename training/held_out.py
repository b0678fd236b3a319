"""Pairs that are held out of the text to train on: to watch training with, and to test."""

import hashlib
from collections.abc import Iterable

import keras_transformer as kt


def choose_held_out(pairs: Iterable[tuple[str, str]], count: int) -> kt.data.Pairs:
    """Chooses pairs with distinct sources, those whose sources have the smallest digests.

    Which they are depends on the sentences alone, and not on their order or number of copies. Lines in a row, which are often
    of one text, are not chosen together.

    Args:
        pairs: All pairs.
        count: How many to choose.

    Returns:
        The pairs, in the order of the digests.

    Example:

    >>> len(choose_held_out([("a", "b"), ("a", "c"), ("d", "e"), ("", "f")], count=5))
    2
    """
    kept: dict[bytes, tuple[str, str]] = {}
    largest = b""
    for source, target in pairs:
        if not source.strip() or not target.strip():
            continue
        digest = hashlib.sha256(source.encode()).digest()
        if digest in kept or (len(kept) == count and digest > largest):
            continue
        kept[digest] = source, target
        if len(kept) > count:
            del kept[max(kept)]
        if len(kept) == count:
            largest = max(kept)
    sources, targets = zip(*(kept[digest] for digest in sorted(kept)), strict=True) if kept else ((), ())
    return kt.data.Pairs(list(sources), list(targets))


def dealt_out(pairs: kt.data.Pairs, count: int) -> list[kt.data.Pairs]:
    """Deals pairs out into equal parts."""
    return [kt.data.Pairs(pairs.source[number::count], pairs.target[number::count]) for number in range(count)]
