"""Subword sampling for unigram models: one of all ways to cut a word is drawn (arXiv 1804.10959)."""

import bisect
import math
from itertools import accumulate

from keras_transformer.text.piece_model import PieceModel
from keras_transformer.text.sampler import Sampler

_UNKNOWN_PENALTY = 10.0  # SentencePiece's own: an unknown character scores that much below the least likely piece.


class LatticeSampling(Sampler):
    """Draws a cut of a word with a chance proportional to (the product of its pieces' probabilities) ** alpha.

    Going forward, the weights of all cuts of each beginning of the word are summed up; going back from its end, pieces are
    drawn by their share in those sums.
    """

    def __init__(self, model: PieceModel, alpha: float):
        super().__init__(model, alpha)
        self.longest = max(map(len, self.vocabulary), default=1)
        self.unknown_score = min((score for _, score in self.vocabulary.values()), default=0.0) - _UNKNOWN_PENALTY

    def prepare(self, word):
        """Lists, for each end of a piece, where it can begin and the running sum of the chances."""
        total = [0.0]  # The logarithm of the summed weights of all cuts of word[:end].
        choices = [((), ())]
        for end in range(1, len(word) + 1):
            options = list(self.options(word, end))
            weights = [total[start] + self.alpha * score for start, score in options]
            highest = max(weights)
            chances = list(accumulate(math.exp(weight - highest) for weight in weights))
            total.append(highest + math.log(chances[-1]))
            choices.append(([start for start, _ in options], chances))
        return choices

    def options(self, word: str, end: int):
        """Yields where a piece that ends at `end` can begin, and its score."""
        for start in range(max(0, end - self.longest), end):
            known = self.vocabulary.get(word[start:end])
            if known is not None:
                yield start, known[1]
            elif start == end - 1:
                yield start, self.unknown_score

    def cut(self, word, prepared, state):
        """Draws the pieces of one word, from its end to its beginning."""
        pieces = []
        end = len(word)
        while end:
            starts, chances = prepared[end]
            # The product can be rounded up to the whole sum, and there is nothing beyond the last choice.
            choice = min(bisect.bisect_right(chances, state.random() * chances[-1]), len(starts) - 1)
            pieces.append(word[starts[choice] : end])
            end = starts[choice]
        return pieces[::-1]
