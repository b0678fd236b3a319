"""From the pieces of a tokenizer to words, and to labels that can be read."""

import re
from collections.abc import Sequence

import numpy as np

SPACE_MARK = "\u2581"  # SentencePiece's: a piece that begins with it begins a word.
CONTINUED = "##"  # WordPiece's: a piece that begins with it does not.
BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
JOINER = "\u200d"  # Holds emoji together.
SPECIAL = re.compile(r"</?[a-z]+>|\[[A-Z]+\]")  # <s>, </s>, <pad>, [START]


def word_groups(tokens: Sequence[str]) -> list[list[int]]:
    """Finds the pieces that make a word.

    Args:
        tokens: Pieces, as a tokenizer shows them. Ends and starts of sentences are words of their own, and so are marks after a
            word.

    Returns:
        For each word, the places of its pieces.

    Example:

    >>> word_groups(["▁The", "▁ani", "mal", ".", "</s>"])
    [[0], [1, 2], [3], [4]]
    """
    groups = []
    for place, begins in enumerate(word_beginnings(tokens)):
        if begins or not groups:
            groups.append([])
        groups[-1].append(place)
    return [part for group in groups for part in without_punctuation(tokens, group)]


def without_punctuation(tokens: Sequence[str], group: list[int]) -> list[list[int]]:
    """Takes the marks that follow a word apart from it."""
    end = len(group)
    while end > 1 and not any(character.isalnum() for character in tokens[group[end - 1]]):
        end -= 1
    return [group[:end], *([place] for place in group[end:])]


def word_beginnings(tokens: Sequence[str]) -> list[bool]:
    """Tells of each piece whether it begins a word."""
    special = [bool(SPECIAL.fullmatch(token)) for token in tokens]
    if is_marked(tokens):
        begins = [token.startswith(SPACE_MARK) for token in tokens]
    else:
        is_word_piece = any(token.startswith(CONTINUED) for token in tokens)
        begins = [not (is_word_piece and token.startswith(CONTINUED)) for token in tokens]
    before = [True, *special[:-1]]
    return [any(one) for one in zip(begins, special, before, strict=False)]


def is_marked(tokens: Sequence[str]) -> bool:
    """Tells pieces of SentencePiece, which say where words begin, from those of others and from whole words."""
    return any(token.startswith(SPACE_MARK) or BYTE.fullmatch(token) for token in tokens)


def join_pieces(tokens: Sequence[str]) -> str:
    """Puts the pieces of a text together; bytes that make no character become U+FFFD.

    Args:
        tokens: Pieces of one word, or of several.

    Returns:
        The text, without spaces at its ends.

    Example:

    >>> join_pieces(["▁caf", "<0xC3>", "<0xA9>"])
    'café'
    """
    joined = b"".join(surface(token) for token in tokens)
    return joined.decode("utf8", "replace").strip(" ")


def text_of(tokens: Sequence[str]) -> str:
    """Returns the text of a sentence's pieces, or of its words."""
    if is_marked(tokens):
        return join_pieces(tokens)
    return " ".join(join_pieces([tokens[place] for place in group]) for group in word_groups(tokens))


def surface(token: str) -> bytes:
    """Returns what a piece adds to a text."""
    byte = BYTE.fullmatch(token)
    if byte:
        return bytes([int(byte.group(1), 16)])
    return token.removeprefix(CONTINUED).replace(SPACE_MARK, " ").encode("utf8", "replace")


def labels(tokens: Sequence[str]) -> list[str]:
    """Makes labels of pieces for people: no mark where a word begins, a dot where one goes on, no control characters.

    Args:
        tokens: Pieces.

    Returns:
        A label for each of them.

    Example:

    >>> labels(["▁ani", "mal", ".", "</s>"])
    ['ani', '·mal', '.', '</s>']
    """
    return [
        printable(token.replace(SPACE_MARK, " ").strip(" ") if begins else continued(token))
        for token, begins in zip(tokens, word_beginnings(tokens), strict=True)
    ]


def continued(token: str) -> str:
    """Returns the label of a piece in the middle of a word."""
    token = token.removeprefix(CONTINUED)
    return f"·{token}" if token[:1].isalnum() else token


def printable(text: str) -> str:
    """Replaces what has no visible form."""
    return "".join(one if one.isprintable() or one == JOINER else "\ufffd" for one in text) or "␣"


def sum_keys(weights: np.ndarray, groups: list[list[int]]) -> np.ndarray:
    """Adds up the weights of the pieces of each word: what a word gets is what its pieces get, `(..., keys)`."""
    return np.stack([weights[..., group].sum(axis=-1) for group in groups], axis=-1)


def mean_queries(weights: np.ndarray, groups: list[list[int]]) -> np.ndarray:
    """Averages the rows of the pieces of each word, so that a row still sums to 1, `(..., queries, keys)`."""
    return np.stack([weights[..., group, :].mean(axis=-2) for group in groups], axis=-2)
