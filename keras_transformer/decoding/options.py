"""What a search looks for, and when it ends."""

from dataclasses import dataclass, replace

from keras import ops

from keras_transformer.checks import check_fields, choice, flag, number, optional, refusal, several, whole

MOST_HYPOTHESES = 1024  # Each sees the past of all others in the same cache: memory grows with the square of their number.
MOST_TOKENS = 100_000  # Of a translation. Room for the positions of some models, and for what is drawn, is taken at once.
CHECKS = {
    "beam_size": whole(1, MOST_HYPOTHESES),
    "num_hypotheses": whole(1, MOST_HYPOTHESES),
    "length_penalty": number(-1.0, 5.0),
    "penalty": choice("google", "power"),
    "min_length": whole(0, MOST_TOKENS),
    "max_length": optional(whole(0, MOST_TOKENS, "`None`, or an integer")),
    "extra_length": whole(0, MOST_TOKENS),
    "stopping": choice("bound", "heuristic", "first"),
    "banned_ids": several(whole(0, 2**31 - 1)),
    "rescale": flag,
    "ends_within_beam": flag,
    "free_last_end": flag,
    "temperature": optional(number(1e-6, 1e6, "`None` to search, or a number")),
    "top_k": optional(whole(1, 2**31 - 1, "`None`, or an integer")),
    "top_p": optional(number(1e-6, 1.0, "`None`, or a number")),
}


@dataclass(frozen=True)
class SearchOptions:
    """How translations are searched for.

    The score of a translation is its log-probability divided by a penalty for its length n, which counts its end:
    ((5 + n) / 6)^a for `penalty="google"` (Wu et al., 2016, as in the paper), n^a for `penalty="power"`.

    Args:
        beam_size: Number of hypotheses that are kept (K), at most 1024. With 1 the search is greedy.
        num_hypotheses: How many translations are returned for each sentence, best first; at most `beam_size`, or when drawing,
            at most 1024.
        length_penalty: The exponent a, from -1 to 5. 0 compares plain log-probabilities; larger values favour longer
            translations.
        penalty: Form of the penalty.
        min_length: The least number of tokens of a translation, without its end.
        max_length: The most tokens of a translation, without its end; 100,000 at most. `None` allows `extra_length` more than
            the source has.
        extra_length: See `max_length`; the paper allows 50.
        stopping: When a sentence is done. `"bound"`: when no hypothesis that is still alive can become better than those found.
            `"heuristic"`: when `beam_size` were found and none alive would be better if it ended now. `"first"`: when
            `beam_size` were found. The last two are what other systems do.
        banned_ids: Tokens that never occur in a translation, unless it was told to begin with them. The end cannot be banned;
            with all others banned, translations are empty.
        rescale: Whether probabilities are rescaled for the absence of tokens that must not be: those that are banned, and the
            end before `min_length`. One of them costs nothing where there is no choice, in a given beginning or at a limit.
        ends_within_beam: Whether only the K best continuations of a step can end a translation. Otherwise the 2K best can.
        free_last_end: Whether the end costs nothing where `max_length` leaves no choice. Otherwise it counts with its
            log-probability. This and the two before it are there for models that are to be searched as other systems do.
        temperature: Draws each token at random instead of searching, from probabilities sharpened (below 1) or flattened (above
            1) by it, from 1e-6 to 1e6. `None` searches.
        top_k: When drawing, only among the k likeliest tokens.
        top_p: When drawing, only among the likeliest tokens that together have at least this probability, from 1e-6 to 1.

    Example:

    >>> SearchOptions(beam_size=4, length_penalty=0.6).beam_size
    4
    """

    beam_size: int = 4
    num_hypotheses: int = 1
    length_penalty: float = 0.6
    penalty: str = "google"
    min_length: int = 0
    max_length: int | None = None
    extra_length: int = 50
    stopping: str = "bound"
    banned_ids: tuple[int, ...] = ()
    rescale: bool = False
    ends_within_beam: bool = False
    free_last_end: bool = False
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self):
        check_fields(self, CHECKS)
        if self.num_hypotheses > self.beam_size and not self.is_sampling:
            expected = f"from 1 to `beam_size` = {self.beam_size}: a search cannot return more than it keeps"
            raise refusal("num_hypotheses", self.num_hypotheses, expected)
        if self.max_length is not None and self.min_length > self.max_length:
            raise refusal("min_length", self.min_length, f"at most `max_length` = {self.max_length}")
        for name in ("top_k", "top_p"):
            if getattr(self, name) is not None and not self.is_sampling:
                raise refusal(name, getattr(self, name), "`None` without a `temperature`, for only drawing uses it")

    @property
    def is_sampling(self) -> bool:
        """Whether tokens are drawn at random."""
        return self.temperature is not None

    def override(self, **changes) -> "SearchOptions":
        """Returns the options with some of them changed."""
        return replace(self, **changes)

    def penalty_of(self, length):
        """Returns the penalty of a length, which counts the end: a float32 tensor."""
        return self.penalty_base(length) ** self.length_penalty

    def penalty_base(self, length):
        """Returns what is raised to the power of `length_penalty`."""
        length = ops.cast(length, "float32")
        return (5.0 + length) / 6.0 if self.penalty == "google" else ops.maximum(length, 1.0)
