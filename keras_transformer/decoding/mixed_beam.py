"""Beam search for a batch of sentences that were asked for with different options."""

from keras import ops

from keras_transformer.decoding.beam import BeamSearch
from keras_transformer.decoding.limits import IMPOSSIBLE, Limits
from keras_transformer.decoding.options import SearchOptions


class MixedBeamSearch(BeamSearch):
    """Beam search with a size of the beam and a length penalty for each sentence.

    Each sentence gets what a search with its own options would find: of the K hypotheses that there is room for, only the best
    k of the sentence count, and of the 2K candidates the best 2k. With k = 1 the search is greedy, as it is in `TokenByToken`:
    there is one candidate, and if it is the end the sentence is done.

    Args:
        decoder: What `make_decoder` returned.
        options: `SearchOptions`; `beam_size` and `num_hypotheses` are the largest of all.
        limits: `Limits` of this batch.
        start_id: The token that all targets start with.
        end_id: The token that ends them.
        beam_sizes: Integer tensor `(B,)`, from 1 to `options.beam_size`.
        length_penalties: Float tensor `(B,)`, the exponents.
        num_wanted: Integer tensor `(B,)`, how many hypotheses have to be the best that there are, up to each sentence's beam.
            Those behind them are whatever was found on the way. Defaults to `options.num_hypotheses`.
    """

    def __init__(
        self,
        decoder,
        options: SearchOptions,
        limits: Limits,
        start_id: int,
        end_id: int,
        beam_sizes,
        length_penalties,
        num_wanted=None,
    ):
        super().__init__(decoder, options, limits, start_id, end_id)
        self.beam_sizes, self.length_penalties = beam_sizes[:, None], length_penalties[:, None]  # (B, 1)
        self.num_wanted = None if num_wanted is None else num_wanted[:, None]  # (B, 1)

    def penalty_of(self, length):
        """Returns the penalty of a length, `(B, 1)`."""
        return self.options.penalty_base(length) ** self.length_penalties

    def within_beam(self, log_probs):
        """Leaves each sentence its own number of hypotheses."""
        ranks = ops.arange(log_probs.shape[1], dtype=self.beam_sizes.dtype)
        return ops.where(ranks < self.beam_sizes, log_probs, IMPOSSIBLE)

    def within_candidates(self, ends):
        """Leaves each sentence its own number of candidates."""
        wide = self.beam_sizes if self.options.ends_within_beam else 2 * self.beam_sizes
        counts = ops.where(self.beam_sizes == 1, 1, wide)
        return ops.logical_and(ends, ops.arange(ends.shape[1], dtype=counts.dtype) < counts)

    def last_of_beam(self, scores):
        """Returns the score of rank k."""
        return score_of_rank(scores, self.beam_sizes)

    def last_wanted(self, scores):
        """Returns the score of the last rank that is wanted."""
        return super().last_wanted(scores) if self.num_wanted is None else score_of_rank(scores, self.num_wanted)

    def newly_done(self, state: dict, ended: dict, alive_log_probs, length):
        """Tells for which sentences the search can stop, `(B,)`."""
        done = super().newly_done(state, ended, alive_log_probs, length)
        greedy_end = ops.logical_and(self.beam_sizes == 1, ended["ended_scores"][:, :1] > IMPOSSIBLE / 2)
        return ops.logical_or(done, greedy_end[:, 0])


def score_of_rank(scores, ranks):
    """Picks out of scores `(B, K)` those of ranks `(B, 1)`, counted from 1: `(B, 1)`."""
    is_it = ops.arange(scores.shape[1], dtype=ranks.dtype) == ranks - 1
    return ops.max(ops.where(is_it, scores, IMPOSSIBLE), axis=1, keepdims=True)
