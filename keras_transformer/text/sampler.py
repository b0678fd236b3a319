"""What both ways of subword sampling share."""

import random
import re
from functools import lru_cache
from itertools import groupby

from keras_transformer.text.piece_model import SPACE_MARK, PieceModel

_CACHED_WORDS = 100_000
_LONGEST_CACHED_WORD = 50


class Sampler:
    """Cuts normalized text into pieces at random; a function of the text, the model and the state of `chance` alone.

    SentencePiece has samplers of its own, but what they draw from a seed differs from process to process. Here pieces are drawn
    word by word, which comes to the same as long as no piece spans two words, and what a word needs is computed once.

    Args:
        model: The SentencePiece model.
        alpha: See `SubwordSampling`.
    """

    def __init__(self, model: PieceModel, alpha: float):
        self.model = model
        self.alpha = alpha
        self.vocabulary = model.vocabulary
        spans_words = any(SPACE_MARK in piece[1:] for piece in self.vocabulary)
        self.word_pattern = re.compile("(?s).+" if spans_words else f"{SPACE_MARK}[^{SPACE_MARK}]*|[^{SPACE_MARK}]+")
        self.prepare_once = lru_cache(_CACHED_WORDS)(self.prepare)

    def encode(self, normalized: str, chance: random.Random) -> list[int]:
        """Draws the ids of one text."""
        pieces = []
        state = self.begin(chance)
        for word in self.word_pattern.findall(normalized):
            prepare = self.prepare_once if len(word) <= _LONGEST_CACHED_WORD else self.prepare
            pieces.extend(self.cut(word, prepare(word), state))
        return self.to_ids(pieces)

    def begin(self, chance: random.Random):
        """Makes the state that is handed from word to word."""
        return chance

    def prepare(self, word: str):
        """Computes what is the same each time a word is cut."""
        raise NotImplementedError

    def cut(self, word: str, prepared, state) -> list[str]:
        """Draws the pieces of one word."""
        raise NotImplementedError

    def to_ids(self, pieces: list[str]) -> list[int]:
        """Looks pieces up; characters without one become bytes or, in a model without bytes, one unknown for all in a row."""
        ids = []
        for is_known, group in groupby(pieces, self.vocabulary.__contains__):
            if is_known:
                ids.extend(self.vocabulary[piece][0] for piece in group)
            elif self.model.byte_ids:
                ids.extend(self.model.byte_ids[byte] for piece in group for byte in piece.encode())
            else:
                ids.append(self.model.special_ids["unknown"])
        return ids
