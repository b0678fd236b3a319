"""What a person wants to know of a corpus."""

from dataclasses import asdict, dataclass, field

import numpy as np

REASONS = {
    "without": "held out",
    "empty": "source or target empty or blank",
    "too_long": "longer than the limit",
    "ratio": "lengths that cannot belong together",
}


@dataclass
class Statistics:
    """Counts of a corpus after tokenization.

    Attributes:
        read: Number of pairs read.
        kept: Number of pairs kept.
        dropped: How many were dropped for which of `REASONS`.
        source_words, target_words: Words (between blanks) in the kept pairs.
        source_lengths, target_lengths: From a length in tokens, without start and end, to the number of kept sentences of it.
    """

    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    source_words: int = 0
    target_words: int = 0
    source_lengths: dict[int, int] = field(default_factory=dict)
    target_lengths: dict[int, int] = field(default_factory=dict)

    def as_json(self) -> dict:
        """Returns the counts as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict) -> "Statistics":
        """Makes them from what `as_json` returned and a JSON file gave back."""
        lengths = {
            name: {int(length): count for length, count in values[name].items()}
            for name in ("source_lengths", "target_lengths")
        }
        return cls(**{**values, **lengths})

    def tokens(self, side: str) -> int:
        """Returns the number of tokens of the `"source"` or the `"target"`."""
        return sum(length * count for length, count in getattr(self, f"{side}_lengths").items())

    def tokens_per_word(self, side: str) -> float:
        """Returns into how many tokens a word falls on average."""
        return self.tokens(side) / max(1, getattr(self, f"{side}_words"))

    def length_at(self, side: str, share: float) -> int:
        """Returns the length that this share of the sentences does not exceed."""
        lengths = sorted(getattr(self, f"{side}_lengths").items())
        reached = np.cumsum([count for _, count in lengths])
        return lengths[int(np.searchsorted(reached, share * reached[-1]))][0]

    def describe(self) -> str:
        """Says it all in a few lines."""
        lines = [f"pairs       {self.read:,} read, {self.kept:,} kept"]
        lines += [f"            {count:,} dropped: {REASONS[reason]}" for reason, count in self.dropped.items() if count]
        for side in ("source", "target"):
            lengths = ", ".join(f"{share:.0%} up to {self.length_at(side, share)}" for share in (0.5, 0.95, 1.0))
            tokens = f"{self.tokens(side):,} tokens, {self.tokens_per_word(side):.2f} a word"
            lines.append(f"{side}      {tokens}; sentences of {lengths} tokens")
        return "\n".join(lines)


def add_lengths(histogram: dict[int, int], lengths: np.ndarray):
    """Counts lengths into a histogram."""
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        histogram[int(length)] = histogram.get(int(length), 0) + int(count)
