"""Beam search: the K best hypotheses that are alive, and the K best that have ended."""

from keras import ops

from keras_transformer.decoding.gathering import expand_like, index_dtype, of_one_token, put, take_beams, top_k
from keras_transformer.decoding.limits import IMPOSSIBLE, Limits, log_probabilities_of
from keras_transformer.decoding.options import SearchOptions


class BeamSearch:
    """One step of beam search for a batch of sentences, and what surrounds it.

    A state is a dictionary:

    | name | shape | what |
    |---|---|---|
    | `position` | () | number of tokens each live hypothesis has, and where the next one will stand |
    | `ids` | (B, K) | the newest token of each live hypothesis |
    | `tokens`, `token_log_probs` | (B, K, L) | all its tokens, and their log-probabilities |
    | `log_probs` | (B, K) | their sum |
    | `ended_tokens`, `ended_token_log_probs` | (B, K, L) | hypotheses that have ended, best first |
    | `ended_scores`, `ended_log_probs`, `ended_lengths` | (B, K) | their scores, log-probabilities and lengths with the end |
    | `done` | (B,) | sentences whose result is settled |
    | `cache` | | the decoder's |

    Each step takes the 2K best continuations of the K live hypotheses: whatever ends among them joins the ended ones, which
    are frozen from then on, and K remain to live on.

    Args:
        decoder: What `make_decoder` returned.
        options: `SearchOptions`.
        limits: `Limits` of this batch.
        start_id: The token that all targets start with.
        end_id: The token that ends them.
    """

    def __init__(self, decoder, options: SearchOptions, limits: Limits, start_id: int, end_id: int):
        self.decoder, self.options, self.limits = decoder, options, limits
        self.start_id, self.end_id = start_id, end_id
        self.beam_size = options.beam_size

    def initial_state(self, cache: dict, batch_size, capacity) -> dict:
        """Returns the state after the first step, which all hypotheses have in common."""
        both, room = (batch_size, self.beam_size), (batch_size, self.beam_size, capacity)
        ended = {
            "ended_tokens": ops.zeros(room, index_dtype()),
            "ended_token_log_probs": ops.zeros(room, "float32"),
            "ended_scores": ops.full(both, IMPOSSIBLE, "float32"),
            "ended_log_probs": ops.full(both, IMPOSSIBLE, "float32"),
            "ended_lengths": ops.zeros(both, index_dtype()),
        }
        alive = {
            "position": ops.zeros((), "int32"),
            "ids": ops.full((batch_size, 1), self.start_id, index_dtype()),
            "tokens": ops.zeros((batch_size, 1, capacity), index_dtype()),
            "token_log_probs": ops.zeros((batch_size, 1, capacity), "float32"),
            "log_probs": ops.zeros((batch_size, 1), "float32"),
        }
        return self.step({**alive, **ended, "done": ops.zeros((batch_size,), "bool"), "cache": cache})

    def step(self, state: dict) -> dict:
        """Lengthens every live hypothesis by a token."""
        position = state["position"]
        logits, cache = self.decoder.step(state["ids"], position, state["cache"])
        logits = logits[:, : state["ids"].shape[1]]  # (B, K, V); the first step has one hypothesis only
        candidates = self.candidates(state, logits)
        ended = self.join_ended(state, candidates)

        # Those that live on.
        alive_log_probs, chosen = ops.top_k(
            ops.where(candidates["ends"], IMPOSSIBLE, candidates["log_probs"]), self.beam_size
        )  # (B, K)
        alive_log_probs = self.within_beam(alive_log_probs)
        alive = {name: take_beams(candidates[name], chosen) for name in ("tokens", "token_log_probs", "ids", "parents")}
        done = self.newly_done(state, ended, alive_log_probs, position + 1)
        return {
            "position": position + 1,
            "ids": alive["ids"],
            "tokens": alive["tokens"],
            "token_log_probs": alive["token_log_probs"],
            "log_probs": alive_log_probs,
            **ended,
            "done": ops.logical_or(state["done"], done),
            "cache": self.decoder.reorder(cache, alive["parents"]),
        }

    def candidates(self, state: dict, logits) -> dict:
        """Finds the 2K best continuations of the live hypotheses.

        Returns:
            A dictionary of `parents`, `ids`, `log_probs`, `ends`, `(B, 2K)`, and `tokens`, `token_log_probs`, `(B, 2K, L)`.
        """
        position, width = state["position"], logits.shape[1]
        log_probs, open_log_probs = log_probabilities_of(logits, position, self.options, self.end_id)  # (B, K, V)
        count = min(2 * self.beam_size, logits.shape[-1])
        best, ids = top_k(open_log_probs, count)  # (B, K, 2K)
        best, ids = self.apply_forced(best, ids, log_probs, position)

        # The best 2K of all.
        totals = ops.reshape(state["log_probs"][:, :, None] + best, (-1, width * count))
        missing = 2 * self.beam_size - width * count  # A vocabulary smaller than the beam.
        if missing > 0:
            totals = ops.pad(totals, [(0, 0), (0, missing)], constant_values=IMPOSSIBLE)
        totals, places = ops.top_k(totals, 2 * self.beam_size)  # (B, 2K)
        places = ops.minimum(ops.cast(places, index_dtype()), width * count - 1)
        parents = places // count
        chosen_ids = take_beams(ops.reshape(ids, (-1, width * count)), places)
        chosen_log_probs = take_beams(ops.reshape(best, (-1, width * count)), places)
        return {
            "parents": parents,
            "ids": chosen_ids,
            "log_probs": totals,
            "ends": chosen_ids == self.end_id,
            "tokens": put(take_beams(state["tokens"], parents), position, chosen_ids),
            "token_log_probs": put(take_beams(state["token_log_probs"], parents), position, chosen_log_probs),
        }

    def apply_forced(self, best, ids, log_probs, position):
        """Leaves a hypothesis one continuation where there is no choice."""
        forced = self.limits.forced_ids(position, self.end_id)  # (B,)
        is_forced = forced[:, None, None] >= 0
        only = self.limits.cost(of_one_token(log_probs, ops.maximum(forced, 0)), position, self.options)  # (B, K, 1)
        is_first = ops.arange(best.shape[2]) == 0
        best = ops.where(is_forced, ops.where(is_first, only, IMPOSSIBLE), best)
        return best, ops.where(is_forced, forced[:, None, None], ids)

    def join_ended(self, state: dict, candidates: dict) -> dict:
        """Merges the hypotheses that end now with those that have ended before; those of a sentence that is done stay."""
        length = state["position"] + 1
        log_probs = candidates["log_probs"]
        counts = ops.logical_and(self.within_candidates(candidates["ends"]), log_probs > IMPOSSIBLE / 2)
        new = {
            "ended_tokens": candidates["tokens"],
            "ended_token_log_probs": candidates["token_log_probs"],
            "ended_scores": ops.where(counts, log_probs / self.penalty_of(length), IMPOSSIBLE),
            "ended_log_probs": ops.where(counts, log_probs, IMPOSSIBLE),
            "ended_lengths": ops.where(counts, ops.cast(length, index_dtype()), 0),
        }
        all_ended = {name: ops.concatenate([state[name], new[name]], axis=1) for name in new}
        _, chosen = ops.top_k(all_ended["ended_scores"], self.beam_size)
        merged = {name: take_beams(value, chosen) for name, value in all_ended.items()}
        merged["ended_scores"] = self.within_beam(merged["ended_scores"])
        return {name: ops.where(expand_like(state["done"], value), state[name], value) for name, value in merged.items()}

    def newly_done(self, state: dict, ended: dict, alive_log_probs, length):
        """Tells for which sentences the search can stop, `(B,)`; `length` is that of the live hypotheses."""
        best_alive = alive_log_probs[:, :1]  # (B, 1)
        scores = ended["ended_scores"]
        last = self.last_of_beam(scores)
        if self.options.stopping == "first":
            done = last > IMPOSSIBLE / 2
        elif self.options.stopping == "heuristic":
            done = ops.logical_and(last > IMPOSSIBLE / 2, last >= best_alive / self.penalty_of(length))
        else:
            wanted = self.last_wanted(scores)
            done = ops.logical_and(wanted > IMPOSSIBLE / 2, wanted >= best_alive / self.kindest_penalty(length))
        done = ops.logical_or(done, best_alive <= IMPOSSIBLE / 2)  # None is left, as there are no tokens to go on with.
        return ops.logical_or(done[:, 0], ops.greater(length, self.limits.max_lengths))

    def kindest_penalty(self, length):
        """Returns the penalty that does a live hypothesis most good: the largest, for a log-probability never rises."""
        longest = self.limits.max_lengths[:, None] + 1  # (B, 1)
        return ops.maximum(self.penalty_of(longest), self.penalty_of(length + 1))

    # What may differ from one sentence to the next: see `MixedBeamSearch`.

    def penalty_of(self, length):
        """Returns the penalty of a length, which counts the end."""
        return self.options.penalty_of(length)

    def within_beam(self, log_probs):
        """Makes those hypotheses `(B, K)` impossible that are too many."""
        return log_probs

    def within_candidates(self, ends):
        """Leaves those flags `(B, 2K)` out that do not belong to candidates for an end."""
        if not self.options.ends_within_beam:
            return ends
        return ops.logical_and(ends, ops.arange(ends.shape[1]) < self.beam_size)

    def last_of_beam(self, scores):
        """Returns the last score of those `(B, K)` that are kept, `(B, 1)`."""
        return scores[:, -1:]

    def last_wanted(self, scores):
        """Returns the last score of those `(B, K)` that are asked for, `(B, 1)`."""
        return scores[:, self.options.num_hypotheses - 1 :][:, :1]

    def result(self, state: dict) -> dict:
        """Returns the best hypotheses: `tokens`, `token_log_probs` `(B, n, L)`, `scores`, `log_probs`, `lengths` `(B, n)`."""
        wanted = self.options.num_hypotheses
        return {name.removeprefix("ended_"): value[:, :wanted] for name, value in state.items() if name.startswith("ended_")}
