"""From source ids to target ids, for a batch of sentences."""

from keras import ops, tree

from keras_transformer.decoding.beam import BeamSearch
from keras_transformer.decoding.limits import Limits
from keras_transformer.decoding.model_cache import make_decoder
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.token_by_token import TokenByToken

SEGMENT = 16  # Number of target positions that caches have room for at first, and by which they grow.


class Search:
    """A search with given options: begin, go on in larger caches while sentences are not done, and take the result.

    Inputs are a dictionary of tensors: `source_ids` `(B, S)`, padded with the model's `pad_id`; `max_lengths` `(B,)`, the most
    tokens of each translation without its end; and where they are wanted, `prefix_ids` `(B, P)` and `prefix_lengths` `(B,)`,
    with which each translation begins, and `chances` `(B, steps)`, numbers from 0 to 1 that decide what is drawn.

    A result is a dictionary of `tokens` and `token_log_probs` `(B, n, L)`, `scores`, `log_probs` and `lengths` `(B, n)`.
    Lengths count the end, and what stands beyond them means nothing. A hypothesis that was not found has length 0.

    Args:
        model: A `Transformer`.
        options: `SearchOptions`.
    """

    def __init__(self, model, options: SearchOptions):
        self.model, self.options = model, options
        self.decoder = make_decoder(model, 1 if options.is_sampling else options.beam_size)

    def strategy(self, inputs: dict) -> BeamSearch | TokenByToken:
        """Makes the search for these inputs."""
        limits = Limits(inputs["max_lengths"], inputs.get("prefix_ids"), inputs.get("prefix_lengths"))
        ids = self.model.config.start_id, self.model.config.end_id
        if self.decoder.beam_size == 1:
            return TokenByToken(self.decoder, self.options, limits, *ids, inputs.get("chances"))
        return BeamSearch(self.decoder, self.options, limits, *ids)

    def capacities(self, max_lengths):
        """Returns for how many target positions caches need room at first and at last."""
        last = (ops.max(max_lengths) + SEGMENT) // SEGMENT * SEGMENT  # The end needs room as well.
        return (SEGMENT, last) if self.decoder.can_grow else (last, last)

    def start(self, inputs: dict, capacity) -> dict:
        """Encodes the sources and returns the first state."""
        cache = self.decoder.start(inputs["source_ids"], capacity)
        return self.strategy(inputs).initial_state(cache, ops.shape(inputs["source_ids"])[0], capacity)

    def begin(self, inputs: dict, capacity) -> dict:
        """Encodes the sources and searches until all sentences are done or there is no more room."""
        return run_steps(self.strategy(inputs), self.start(inputs, capacity))

    def go_on(self, inputs: dict, state: dict, capacity) -> dict:
        """Searches on in larger caches."""
        return run_steps(self.strategy(inputs), self.grow(state, capacity))

    def grow(self, state: dict, capacity) -> dict:
        """Makes room for more positions in a state."""
        added = capacity - capacity_of(state)
        histories = {name: ops.pad(value, [(0, 0), (0, 0), (0, added)]) for name, value in state.items() if "token" in name}
        return {**state, **histories, "cache": self.decoder.grow(state["cache"], capacity)}

    def result(self, inputs: dict, state: dict) -> dict:
        """Returns what was found."""
        return self.strategy(inputs).result(state)

    def run(self, inputs: dict) -> dict:
        """Searches to the end, step by step."""
        capacity, last = (int(one) for one in self.capacities(inputs["max_lengths"]))
        state = self.begin(inputs, capacity)
        while not is_done(state) and capacity_of(state) < last:
            state = self.go_on(inputs, state, capacity_of(state) + SEGMENT)
        return self.result(inputs, state)

    def graph_run(self, inputs: dict) -> dict:
        """Searches to the end within a TensorFlow graph, where only TensorFlow's own loop lets tensors grow."""
        import tensorflow as tf  # noqa: TID251

        first, last = self.capacities(inputs["max_lengths"])
        state = self.start(inputs, first)
        if not self.decoder.can_grow:
            return self.result(inputs, run_steps(self.strategy(inputs), state))

        def has_more(state):
            return tf.logical_and(~tf.reduce_all(state["done"]), state["position"] < last)

        def body(state):
            is_full = tf.cast(state["position"] >= capacity_of(state), "int32")
            return (self.go_on(inputs, state, capacity_of(state) + is_full * SEGMENT),)

        shapes = tree.map_structure(with_open_length, state)
        return self.result(inputs, tf.while_loop(has_more, body, (state,), shape_invariants=(shapes,))[0])


def run_steps(strategy: BeamSearch | TokenByToken, state: dict) -> dict:
    """Takes steps until all sentences are done or the caches are full."""

    def has_more(state):
        return ops.logical_and(ops.logical_not(ops.all(state["done"])), state["position"] < capacity_of(state))

    return ops.while_loop(has_more, lambda state: (strategy.step(state),), (state,))[0]


def capacity_of(state: dict):
    """Returns the number of positions that a state has room for."""
    return ops.shape(state["tokens"])[-1]


def is_done(state: dict) -> bool:
    """Tells whether all sentences are done."""
    return bool(ops.convert_to_numpy(ops.all(state["done"])))


def with_open_length(x):
    """Returns the shape of a tensor of a state with the axis open that grows: the third of histories and caches."""
    import tensorflow as tf  # noqa: TID251

    return tf.TensorShape([None if axis == 2 else size for axis, size in enumerate(x.shape)])
