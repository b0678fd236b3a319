"""What a search may write: lengths, banned tokens, and a prefix that is given."""

from dataclasses import dataclass

import numpy as np
from keras import ops

from keras_transformer.decoding.gathering import expand_like

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

    def is_reached(self, position):
        """Tells for which sentences a position is behind the last token, so that only the end can stand there, `(B,)`."""
        return ops.greater_equal(position, self.max_lengths)

    def cost(self, log_probs, position, options):
        """Returns the log-probabilities of tokens, one or several for each sentence, as they count at a position."""
        if options.rescale and (options.banned_ids or options.min_length):  # All that can stand here may be a banned token.
            log_probs = ops.where(log_probs > IMPOSSIBLE / 2, log_probs, 0.0)
        if options.free_last_end:
            log_probs = ops.where(expand_like(self.is_reached(position), log_probs), 0.0, log_probs)
        return log_probs

    def forced_ids(self, position, end_id: int):
        """Returns the token that must stand at a position, `(B,)`; -1 where any may."""
        forced = ops.where(self.is_reached(position), end_id, -1)
        forced = ops.cast(forced, self.max_lengths.dtype)
        if self.prefix_ids is None:
            return forced
        place = ops.minimum(position, ops.shape(self.prefix_ids)[1] - 1)
        given = ops.take(self.prefix_ids, place, axis=1)  # (B,)
        return ops.where(ops.less(position, self.prefix_lengths), given, forced)


def check_bans(options, vocabulary_size: int, end_id: int):
    """Raises a `ValueError` if tokens are banned that there are not, or that translations need.

    Args:
        options: `SearchOptions`.
        vocabulary_size: Number of tokens that the model can write.
        end_id: The end.
    """
    banned = set(options.banned_ids)
    beyond = sorted(id for id in banned if id >= vocabulary_size)
    if beyond:
        raise ValueError(
            f"`banned_ids` must be ids of the vocabulary that the model writes, from 0 to {vocabulary_size - 1}. Take the "
            f"others out. Received: {beyond!s:.200}"
        )
    if end_id in banned:
        raise ValueError(
            "The end of translations cannot be banned, for each has one. Take it out; `min_length` keeps translations from "
            f"ending early. Received: banned_ids with the end, {end_id}"
        )
    if options.min_length and len(banned) == vocabulary_size - 1:
        raise ValueError(
            "`banned_ids` leaves a translation no token but its end. Set `min_length=0`, or take a token out. "
            f"Received: min_length={options.min_length} and {len(banned)} banned tokens of {vocabulary_size}"
        )


def log_probabilities_of(logits, position, options, end_id: int):
    """Turns logits into log-probabilities, and makes banned tokens impossible, and the end while a translation is too short.

    Args:
        logits: Float tensor `(B, K, V)`.
        position: Integer scalar, where the token is to stand.
        options: `SearchOptions`.
        end_id: The end.

    Returns:
        A tuple of tensors `(B, K, V)`: the log-probabilities, and the same with what must not be made impossible. With
        `options.rescale` what is left has a probability of 1 in both.
    """
    if not (options.banned_ids or options.min_length):
        log_probabilities = ops.log_softmax(logits, axis=-1)
        return log_probabilities, log_probabilities
    bans = impossible(options.banned_ids, logits.shape[-1])
    if options.min_length > 0:
        bans += ops.cast(position < options.min_length, "float32") * impossible([end_id], logits.shape[-1])
    if options.rescale:
        log_probabilities = ops.log_softmax(logits + bans, axis=-1)
        return log_probabilities, log_probabilities
    log_probabilities = ops.log_softmax(logits, axis=-1)
    return log_probabilities, log_probabilities + bans


def impossible(ids, vocabulary_size: int):
    """Returns a tensor `(V,)` that makes these ids impossible when it is added to log-probabilities."""
    values = np.zeros(vocabulary_size, "float32")
    values[list(ids)] = IMPOSSIBLE
    return ops.convert_to_tensor(values)
