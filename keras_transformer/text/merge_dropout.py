"""Subword sampling for BPE models: merges are left out at random (BPE-dropout, arXiv 1910.13267)."""

import heapq
import math
import random

from keras_transformer.text.piece_model import PieceModel
from keras_transformer.text.sampler import Sampler


class Drops:
    """Decides which merges are left out.

    The number of merges up to the next one left out is drawn at once, so that most words need no random number.

    Args:
        rate: The chance of each merge to be left out.
        chance: Where random numbers come from; `None` leaves out nothing.
    """

    def __init__(self, rate: float, chance: random.Random | None):
        self.rate = rate if chance else 0.0
        self.chance = chance
        self.merges_left = self.draw()

    def draw(self) -> float:
        """Draws the number of merges that happen before the next one that does not."""
        if self.rate in (0.0, 1.0):
            return math.inf if self.rate == 0.0 else 0
        return int(math.log1p(-self.chance.random()) / math.log1p(-self.rate))

    def next(self) -> bool:
        """Tells whether the next merge is left out."""
        if self.merges_left:
            self.merges_left -= 1
            return False
        self.merges_left = self.draw()
        return True


class MergeDropout(Sampler):
    """Merges a word's characters pair by pair, best pair first, and leaves out some of the merges."""

    def __init__(self, model: PieceModel, alpha: float):
        super().__init__(model, alpha)
        if alpha > 1:
            raise ValueError(
                f"For a BPE model `alpha` is the chance of a merge to be left out, at most 1. Received: alpha={alpha}"
            )

    def begin(self, chance):
        """Makes the state that is handed from word to word: the coming drops."""
        return Drops(self.alpha, chance)

    def prepare(self, word):
        """Merges a word with nothing left out; returns the pieces and the number of merges."""
        return self.merge(word, Drops(0.0, None))

    def cut(self, word, prepared, state):
        """Draws the pieces of one word."""
        pieces, num_merges = prepared
        if num_merges <= state.merges_left:
            state.merges_left -= num_merges
            return pieces
        return self.merge(word, state)[0]

    def merge(self, word: str, drops: Drops) -> tuple[list[str], int]:
        """Merges the characters of a word.

        Args:
            word: The word, with its space mark.
            drops: Decides which merges are left out.

        Returns:
            The pieces, and how many merges were made.
        """
        pieces = list(word)  # A piece that was merged into the one before it is "".
        after = [*range(1, len(word)), None]
        before = [None, *range(len(word) - 1)]
        agenda = []
        num_merges = 0

        def consider(left, right):
            if left is not None and right is not None:
                merged = pieces[left] + pieces[right]
                if merged in self.vocabulary:
                    heapq.heappush(agenda, (-self.vocabulary[merged][1], left, merged))

        for left in range(len(word) - 1):
            consider(left, left + 1)
        while agenda:
            _, left, merged = heapq.heappop(agenda)
            right = after[left]
            is_stale = right is None or not pieces[left] or pieces[left] + pieces[right] != merged
            if is_stale or drops.next():
                continue
            num_merges += 1
            pieces[left], pieces[right] = merged, ""
            after[left] = after[right]
            if after[right] is not None:
                before[after[right]] = left
            consider(before[left], left)
            consider(left, after[left])
        return [piece for piece in pieces if piece], num_merges
