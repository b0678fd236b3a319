"""What a search looks for, and when it ends."""

from dataclasses import dataclass, replace

from keras import ops

STOPPING = ("bound", "heuristic", "first")
PENALTIES = ("google", "power")


@dataclass(frozen=True)
class SearchOptions:
    """How translations are searched for.

    The score of a translation is its log-probability divided by a penalty for its length n, which counts its end:
    ((5 + n) / 6)^a for `penalty="google"` (Wu et al., 2016, as in the paper), n^a for `penalty="power"`.

    Args:
        beam_size: Number of hypotheses that are kept (K). With 1 the search is greedy.
        num_hypotheses: How many translations are returned for each sentence, best first; at most `beam_size`.
        length_penalty: The exponent a. 0 compares plain log-probabilities; larger values favour longer translations.
        penalty: Form of the penalty.
        min_length: The least number of tokens of a translation, without its end.
        max_length: The most tokens of a translation, without its end. `None` allows `extra_length` more than the source has.
        extra_length: See `max_length`; the paper allows 50.
        stopping: When a sentence is done. `"bound"`: when no hypothesis that is still alive can become better than those found.
            `"heuristic"`: when `beam_size` were found and none alive would be better if it ended now. `"first"`: when
            `beam_size` were found. The last two are what other systems do.
        banned_ids: Tokens that never occur in a translation.
        rescale: Whether probabilities are rescaled for the absence of tokens that must not be: those that are banned, and the
            end before `min_length`.
        ends_within_beam: Whether only the K best continuations of a step can end a translation. Otherwise the 2K best can.
        free_last_end: Whether the end costs nothing where `max_length` leaves no choice. Otherwise it counts with its
            log-probability. This and the two before it are there for models that are to be searched as other systems do.
        temperature: Draws each token at random instead of searching, from probabilities sharpened (below 1) or flattened (above
            1) by it. `None` searches.
        top_k: When drawing, only among the k likeliest tokens.
        top_p: When drawing, only among the likeliest tokens that together have at least this probability.

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
        self._check(self.beam_size >= 1, "`beam_size` must be a positive integer", "beam_size")
        self._check(
            1 <= self.num_hypotheses <= self.beam_size or self.is_sampling,
            f"`num_hypotheses` must be from 1 to `beam_size` = {self.beam_size}: a search cannot return more than it keeps",
            "num_hypotheses",
        )
        self._check(self.num_hypotheses >= 1, "`num_hypotheses` must be a positive integer", "num_hypotheses")
        self._check(self.length_penalty == self.length_penalty, "`length_penalty` must be a number", "length_penalty")
        self._check(self.penalty in PENALTIES, f"`penalty` must be one of {PENALTIES}", "penalty")
        self._check(self.min_length >= 0, "`min_length` must not be negative", "min_length")
        if self.max_length is not None:
            self._check(self.max_length >= 0, "`max_length` must not be negative, or `None`", "max_length")
            self._check(self.min_length <= self.max_length, f"`min_length` must be at most {self.max_length}", "min_length")
        object.__setattr__(self, "banned_ids", tuple(self.banned_ids))  # A list cannot be looked up.
        self._check(min(self.banned_ids, default=0) >= 0, "`banned_ids` must not be negative", "banned_ids")
        self._check(self.extra_length >= 0, "`extra_length` must not be negative", "extra_length")
        self._check(self.stopping in STOPPING, f"`stopping` must be one of {STOPPING}", "stopping")
        self._check_sampling()

    def _check_sampling(self):
        if self.temperature is None:
            for name in ("top_k", "top_p"):
                self._check(getattr(self, name) is None, f"`{name}` needs `temperature`, for only drawing uses it", name)
            return
        self._check(self.temperature > 0, "`temperature` must be positive, or `None` to search", "temperature")
        if self.top_k is not None:
            self._check(self.top_k >= 1, "`top_k` must be a positive integer, or `None`", "top_k")
        if self.top_p is not None:
            self._check(0 < self.top_p <= 1, "`top_p` must be above 0 and at most 1, or `None`", "top_p")

    def _check(self, is_right: bool, message: str, name: str):
        if not is_right:
            raise ValueError(f"{message}. Received: {name}={getattr(self, name)!r}")

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
