"""Greedy search and sampling: one hypothesis, lengthened by the best token or by one that is drawn."""

from keras import ops

from keras_transformer.decoding.gathering import expand_like, index_dtype, put, take_beams
from keras_transformer.decoding.limits import IMPOSSIBLE, Limits, log_probabilities_of
from keras_transformer.decoding.options import SearchOptions


class TokenByToken:
    """One step of greedy search or of sampling.

    A state is a dictionary of `position` (), `ids` (B, 1), `tokens` and `token_log_probs` (B, 1, L), `log_probs` and `lengths`
    (B, 1), `done` (B,) and `cache`; see `BeamSearch`.

    Args:
        decoder: What `make_decoder` returned, for beams of 1.
        options: `SearchOptions`. With a `temperature`, tokens are drawn.
        limits: `Limits` of this batch.
        start_id: The token that all targets start with.
        end_id: The token that ends them.
        chances: Float tensor `(B, steps)` from 0 to 1, which decides what is drawn at each step. Not needed without drawing.
    """

    def __init__(self, decoder, options: SearchOptions, limits: Limits, start_id: int, end_id: int, chances=None):
        self.decoder, self.options, self.limits = decoder, options, limits
        self.start_id, self.end_id, self.chances = start_id, end_id, chances

    def initial_state(self, cache: dict, batch_size, capacity) -> dict:
        """Returns the state before the first step."""
        return {
            "position": ops.zeros((), "int32"),
            "ids": ops.full((batch_size, 1), self.start_id, index_dtype()),
            "tokens": ops.zeros((batch_size, 1, capacity), index_dtype()),
            "token_log_probs": ops.zeros((batch_size, 1, capacity), "float32"),
            "log_probs": ops.zeros((batch_size, 1), "float32"),
            "lengths": ops.zeros((batch_size, 1), index_dtype()),
            "done": ops.zeros((batch_size,), "bool"),
            "cache": cache,
        }

    def step(self, state: dict) -> dict:
        """Lengthens each hypothesis by a token."""
        position = state["position"]
        logits, cache = self.decoder.step(state["ids"], position, state["cache"])
        log_probs, allowed = log_probabilities_of(logits, position, self.options, self.end_id)  # (B, 1, V)
        ids = self.draw(allowed[:, 0], position) if self.options.is_sampling else ops.argmax(allowed[:, 0], axis=-1)
        forced = self.limits.forced_ids(position, self.end_id)
        ids = ops.where(forced >= 0, forced, ops.cast(ids, index_dtype()))[:, None]  # (B, 1)
        chosen = self.limits.cost(take_beams(log_probs[:, 0], ids), position, self.options)  # (B, 1)
        new = {
            "tokens": put(state["tokens"], position, ids),
            "token_log_probs": put(state["token_log_probs"], position, chosen),
            "log_probs": state["log_probs"] + chosen,
            "lengths": state["lengths"] + 1,
        }
        kept = {name: ops.where(expand_like(state["done"], value), state[name], value) for name, value in new.items()}
        done = ops.logical_or(state["done"], ids[:, 0] == self.end_id)
        return {"position": position + 1, "ids": ids, **kept, "done": done, "cache": cache}

    def draw(self, log_probs, position):
        """Draws a token from the distribution that temperature, `top_k` and `top_p` leave, `(B, V)` -> `(B,)`."""
        below_best = log_probs - ops.max(log_probs, axis=-1, keepdims=True)  # Or what is banned might be likelier, scaled.
        scaled = ops.where(log_probs > IMPOSSIBLE / 2, below_best / self.options.temperature, IMPOSSIBLE)
        probabilities = ops.softmax(scaled, axis=-1)
        count = min(self.options.top_k or log_probs.shape[-1], log_probs.shape[-1])
        sorted_probabilities, ids = ops.top_k(probabilities, count)  # (B, k)
        reached = ops.cumsum(sorted_probabilities, axis=-1)
        if self.options.top_p is not None:
            # The one that reaches the threshold is still among them.
            before = reached - sorted_probabilities
            sorted_probabilities = ops.where(before < self.options.top_p, sorted_probabilities, 0.0)
            reached = ops.cumsum(sorted_probabilities, axis=-1)
        chance = ops.take(self.chances, position, axis=1)[:, None] * reached[:, -1:]  # (B, 1)
        place = ops.sum(ops.cast(reached <= chance, index_dtype()), axis=-1, keepdims=True)
        last = ops.sum(ops.cast(sorted_probabilities > 0, index_dtype()), axis=-1, keepdims=True) - 1
        return take_beams(ids, ops.minimum(place, last))[:, 0]

    def result(self, state: dict) -> dict:
        """Returns the hypothesis: `tokens`, `token_log_probs` `(B, 1, L)`, `scores`, `log_probs`, `lengths` `(B, 1)`."""
        scores = state["log_probs"] / self.options.penalty_of(state["lengths"])
        kept = ("tokens", "token_log_probs", "log_probs", "lengths")
        return {**{name: state[name] for name in kept}, "scores": scores}
