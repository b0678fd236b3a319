"""What happens to a text before it is cut into pieces."""

import functools
import itertools
import sys
import unicodedata
from collections.abc import Iterator

import sentencepiece

# Blank: the spaces of Unicode, tabs and line ends, and the mark that stands for a space inside a model.
_BLANKS = "\t\n\v\f\r\x85\u2028\u2029\u2581"
# Invisible: byte order mark, zero width space, soft hyphen. Joiners stay; emoji and several scripts need them.
_INVISIBLE = "\ufeff\u200b\u00ad"

NORMALIZATIONS = {
    "nfc": "nfc",
    "nfkc": "nmt_nfkc",
    "nfkc_casefold": "nmt_nfkc_cf",
    "identity": "identity",
}


def make_normalizer(name: str) -> sentencepiece.SentencePieceNormalizer:
    """Makes the normalizer that a model is trained with and then carries in its file.

    Args:
        name: `"nfc"`, `"nfkc"`, `"nfkc_casefold"` or `"identity"`; see `Tokenizer.train`.

    Returns:
        A SentencePiece normalizer.
    """
    if name not in NORMALIZATIONS:
        names = ", ".join(f'"{known}"' for known in NORMALIZATIONS)
        raise ValueError(f"`normalization` must be one of {names}. Received: normalization={name!r}")
    sentencepiece.set_min_log_level(2)
    rules = {"norm_map": nfc_rules()} if name == "nfc" else {"rule_name": NORMALIZATIONS[name]}
    return sentencepiece.SentencePieceNormalizer(
        **rules, add_dummy_prefix=True, escape_whitespaces=True, remove_extra_whitespaces=name != "identity"
    )


@functools.cache
def nfc_rules() -> list[tuple[str, str]]:
    """Lists what `"nfc"` replaces: decomposed characters, blanks by a space, invisible characters by nothing."""
    rules = dict(composition_rules())
    for character in map(chr, range(1, sys.maxunicode + 1)):  # (A rule for NUL cannot be written.)
        category = unicodedata.category(character)
        if character in _BLANKS or (category == "Zs" and character != " "):
            rules[character] = " "
        elif character in _INVISIBLE or category == "Cc":
            rules[character] = ""
    return sorted(rules.items())


def composition_rules() -> Iterator[tuple[str, str]]:
    """Yields every spelling of a composed character and the character itself, as Unicode's normal form C has it."""
    for character in map(chr, range(sys.maxunicode + 1)):
        parts = unicodedata.normalize("NFD", character)
        if parts == character:
            continue
        composed = unicodedata.normalize("NFC", character)
        for spelling in spellings(character, parts):
            if spelling != composed and unicodedata.normalize("NFC", spelling) == composed:
                yield spelling, composed


def spellings(character: str, parts: str) -> Iterator[str]:
    """Yields ways to write a character: its parts in any order, the first few of them composed or not."""
    yield character
    is_hangul = "\uac00" <= character <= "\ud7a3"
    for order in [parts] if is_hangul else map("".join, itertools.permutations(parts)):
        for count in range(1, len(order)):
            yield unicodedata.normalize("NFC", order[:count]) + order[count:]
