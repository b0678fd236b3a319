"""What a search may write: lengths, banned tokens, and a prefix that is given."""

from dataclasses import dataclass

import numpy as np
from keras import ops

IMPOSSIBLE = -1e9  # The log-probability of what must not be; finite, so that sums of it stay numbers.


@dataclass(frozen=True)
class Limits:
    """Bounds of the translations of a batch.

    Attributes:
        max_lengths: Integer tensor `(B,)`, the most tokens without the end.
        prefix_ids: Integer tensor `(B, P)`, tokens that each translation begins with, or `None`.
        prefix_lengths: Integer tensor `(B,)`, how many of them count, or `None`.
    """

    max_lengths: object
    prefix_ids: object = None
    prefix_lengths: object = None

    def forced_ids(self, position, end_id: int):
        """Returns the token that must stand at a position, `(B,)`; -1 where any may."""
        forced = ops.where(ops.greater_equal(position, self.max_lengths), end_id, -1)
        forced = ops.cast(forced, self.max_lengths.dtype)
        if self.prefix_ids is None:
            return forced
        place = ops.minimum(position, ops.shape(self.prefix_ids)[1] - 1)
        given = ops.take(self.prefix_ids, place, axis=1)  # (B,)
        return ops.where(ops.less(position, self.prefix_lengths), given, forced)


def allowed_log_probabilities(log_probabilities, position, options, end_id: int):
    """Makes banned tokens impossible, and the end while a translation is too short.

    Args:
        log_probabilities: Float tensor `(B, K, V)`.
        position: Integer scalar, where the token is to stand.
        options: `SearchOptions`.
        end_id: The end.

    Returns:
        The log-probabilities, `(B, K, V)`; not rescaled.
    """
    vocabulary_size = log_probabilities.shape[-1]
    if options.banned_ids:
        log_probabilities = log_probabilities + impossible(options.banned_ids, vocabulary_size)
    if options.min_length > 0:
        is_short = ops.cast(position < options.min_length, "float32")
        log_probabilities = log_probabilities + is_short * impossible([end_id], vocabulary_size)
    return log_probabilities


def impossible(ids, vocabulary_size: int):
    """Returns a tensor `(V,)` that makes these ids impossible when it is added to log-probabilities."""
    values = np.zeros(vocabulary_size, "float32")
    values[[id for id in ids if id < vocabulary_size]] = IMPOSSIBLE
    return ops.convert_to_tensor(values)
