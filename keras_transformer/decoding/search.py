"""From source ids to target ids, for a batch of sentences."""

import functools

import keras
import numpy as np
from keras import ops, tree

from keras_transformer.decoding.beam import BeamSearch
from keras_transformer.decoding.gathering import add_zeros, index_dtype, take
from keras_transformer.decoding.length_groups import SOURCE_LENGTHS, encode_by_length
from keras_transformer.decoding.limits import Limits, check_bans
from keras_transformer.decoding.mixed_beam import MixedBeamSearch
from keras_transformer.decoding.model_cache import make_decoder
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.token_by_token import TokenByToken
from keras_transformer.layers import SinusoidalPositionalEncoding
from keras_transformer.layers.divided_kernel import divided_kernels
from keras_transformer.layers.lean_norm import lean_norms
from keras_transformer.layers.sinusoidal_positional_encoding import EncodedPositions
from keras_transformer.layers.spaced_kernel import spaced_kernels, use_kernels, weights_in_use

SEGMENT = {"tensorflow": 4}  # Number of target positions that caches have room for at first, and by which they grow.
GROWTH = 8  # In a TensorFlow graph, long caches grow by this part of what they have, so that all copies together stay short.
# Sizes of a batch in a TensorFlow graph, as sentences leave it: few, for products are prepared anew for each.
BATCH_SIZES = sorted({0, *(size << power for size in (1, 3) for power in range(24))})


def segment() -> int:
    """Returns how many positions are added at once: few where it costs little, more where each size is another program."""
    return SEGMENT.get(keras.backend.backend(), 16)


class Search:
    """A search with given options: begin, go on in larger caches while sentences are not done, and take the result.

    Inputs are a dictionary of tensors: `source_ids` `(B, S)`, padded with the model's `pad_id`; `max_lengths` `(B,)`, the most
    tokens of each translation without its end; and where they are wanted, `prefix_ids` `(B, P)` and `prefix_lengths` `(B,)`,
    with which each translation begins; `chances` `(B, steps)`, numbers from 0 to 1 that decide what is drawn; `beam_sizes` and
    `length_penalties` `(B,)`, with which each sentence has a search of its own, of at most `options.beam_size` hypotheses, and
    with these, `num_wanted` `(B,)`, how many of `options.num_hypotheses` it is searched for.

    A result is a dictionary of `tokens` and `token_log_probs` `(B, n, L)`, `scores`, `log_probs` and `lengths` `(B, n)`.
    Lengths count the end, and what stands beyond them means nothing. A hypothesis that was not found has length 0.

    Args:
        model: A `Transformer`.
        options: `SearchOptions`. Bans that the model's vocabulary does not allow are a `ValueError`.
        spaces_kernels: Whether `graph_run` copies the decoder's kernels into a layout that is faster on a CPU.
        groups_lengths: Whether `graph_run` encodes sources of about the same length at a time. It pays on a CPU, for batches of
            short and long sources.
        num_threads: How many threads `graph_run` divides the decoder's large kernels among. It pays on a CPU, for one sentence.
    """

    def __init__(
        self,
        model,
        options: SearchOptions,
        spaces_kernels: bool = False,
        groups_lengths: bool = False,
        num_threads: int = 1,
    ):
        check_bans(options, model.config.target_vocabulary_size, model.config.end_id)
        self.model, self.options, self.spaces_kernels, self.num_threads = model, options, spaces_kernels, num_threads
        self.encode = functools.partial(encode_by_length, model) if groups_lengths else model.encode
        self.decoder = make_decoder(model, 1 if options.is_sampling else options.beam_size)

    def strategy(self, inputs: dict) -> BeamSearch | TokenByToken:
        """Makes the search for these inputs."""
        limits = Limits(inputs["max_lengths"], inputs.get("prefix_ids"), inputs.get("prefix_lengths"))
        ids = self.model.config.start_id, self.model.config.end_id
        if self.decoder.beam_size == 1 and "beam_sizes" not in inputs:
            return TokenByToken(self.decoder, self.options, limits, *ids, inputs.get("chances"))
        if "beam_sizes" in inputs:
            own = inputs["beam_sizes"], inputs["length_penalties"], inputs.get("num_wanted")
            return MixedBeamSearch(self.decoder, self.options, limits, *ids, *own)
        return BeamSearch(self.decoder, self.options, limits, *ids)

    def capacities(self, max_lengths):
        """Returns for how many target positions caches need room at first and at last."""
        last = (ops.cast(ops.max(max_lengths), "int32") + segment()) // segment() * segment()  # The end needs room as well.
        return (segment(), last) if self.decoder.can_grow else (last, last)

    def start(self, inputs: dict, capacity) -> dict:
        """Encodes the sources and returns the first state."""
        cache = self.decoder.start(inputs["source_ids"], capacity, self.encode)
        return self.strategy(inputs).initial_state(cache, ops.shape(inputs["source_ids"])[0], capacity)

    def begin(self, inputs: dict, capacity) -> dict:
        """Encodes the sources and searches until all sentences are done or there is no more room."""
        return run_steps(self.strategy(inputs), self.start(inputs, capacity))

    def go_on(self, inputs: dict, state: dict, capacity, fewest=0) -> dict:
        """Searches on in larger caches, while more than `fewest` sentences are not done."""
        return run_steps(self.strategy(inputs), self.grow(state, capacity), fewest)

    def grow(self, state: dict, capacity, rows=None) -> dict:
        """Makes room for more positions in a state; of the sentences, those in `rows` stay, or all."""
        added = capacity - capacity_of(state)
        cache = self.decoder.grow(state["cache"], state["position"], capacity, rows)
        state = {name: value for name, value in state.items() if name != "cache"}
        state = state if rows is None else take_rows(state, rows)
        histories = {name: add_zeros(value, added, axis=2) for name, value in state.items() if "token" in name}
        return {**state, **histories, "cache": cache}

    def result(self, inputs: dict, state: dict) -> dict:
        """Returns what was found."""
        return self.strategy(inputs).result(state)

    def run(self, inputs: dict) -> dict:
        """Searches to the end, step by step."""
        capacity, last = (int(one) for one in self.capacities(inputs["max_lengths"]))
        state = self.begin(inputs, capacity)
        found = self.result(inputs, state)
        rows = np.flatnonzero(~ops.convert_to_numpy(state["done"]))  # Of the sentences that are not done.
        state = take_rows(state, rows)
        while len(rows) and capacity_of(state) < last:
            mine = take_rows(inputs, rows)
            state = self.go_on(mine, state, capacity_of(state) + segment())
            found = put_rows(found, rows, self.result(mine, state))
            alive = np.flatnonzero(~ops.convert_to_numpy(state["done"]))
            state, rows = take_rows(state, alive), rows[alive]
        return found

    def kernels(self) -> dict:
        """Lays out the kernels of the decoder as `graph_run` is to multiply by them; see `spaced_kernels`."""
        parts = self.model.parts
        if self.num_threads > 1:
            return divided_kernels([*parts.decoder_blocks, parts.logits], self.num_threads)
        return spaced_kernels(parts.decoder_blocks) if self.spaces_kernels else {}

    def fewer_operations(self, capacity) -> dict:
        """Returns what computes the same as layers of the decoder with fewer operations, for `use_kernels`."""
        parts = self.model.parts
        lean = lean_norms([*parts.decoder_blocks, *([] if parts.decoder_norm is None else [parts.decoder_norm])])
        positions = parts.target_positions
        if type(positions) is not SinusoidalPositionalEncoding:
            return lean
        return {**lean, id(positions): EncodedPositions(positions.encode(ops.arange(capacity)))}

    def graph_run(self, inputs: dict) -> dict:
        """Searches to the end within a TensorFlow graph, where only TensorFlow's own loop lets tensors change their size."""
        import tensorflow as tf  # noqa: TID251

        inputs = {name: tf.cast(x, index_dtype()) if x.dtype.is_integer else x for name, x in inputs.items()}
        length = tf.shape(inputs["source_ids"])[1]
        added = -length % SOURCE_LENGTHS
        if self.model.config.positions == "learned":  # There are none beyond the last.
            added = tf.maximum(tf.minimum(added, self.model.config.max_length - length), 0)
        inputs["source_ids"] = tf.pad(inputs["source_ids"], [[0, 0], [0, added]], constant_values=self.model.config.pad_id)
        first, last = self.capacities(inputs["max_lengths"])
        state = self.start(inputs, first)
        if not self.decoder.can_grow:
            return self.result(inputs, run_steps(self.strategy(inputs), state))

        def has_more(state, rows, found):
            return tf.logical_and(tf.size(rows) > 0, state["position"] < last)

        def body(state, rows, found):
            mine = take_rows(inputs, rows)
            fewer = tf.reduce_max(tf.where(sizes < tf.size(rows, index_dtype()), sizes, 0))
            state = run_steps(self.strategy(mine), state, fewer)
            found = put_rows(found, rows, self.result(mine, state))
            # Sentences that are done leave the batch, as many as make it one of the sizes.
            alive, done = (tf.reshape(tf.where(which), (-1,)) for which in (~state["done"], state["done"]))
            size = tf.reduce_min(tf.where(sizes < tf.size(alive, index_dtype()), sizes[-1], sizes))
            kept = tf.sort(tf.concat([alive, done], axis=0)[:size])
            capacity = capacity_of(state)
            added = tf.minimum(tf.maximum(segment(), capacity // GROWTH), last - capacity)
            is_full = tf.cast(state["position"] >= capacity, "int32")
            state = self.grow(state, capacity + is_full * added, kept)
            return state, tf.gather(rows, kept), found

        sizes = tf.constant(BATCH_SIZES, index_dtype())
        rows = tf.range(tf.shape(inputs["source_ids"], index_dtype())[0])
        start = state, rows, self.result(inputs, state)
        with use_kernels({**self.kernels(), **self.fewer_operations(last)}):
            # Weights are read once, and not in every step.
            weights = [(variable, tf.convert_to_tensor(variable.value)) for variable in weights_in_use(self.model)]
            with keras.StatelessScope(state_mapping=weights):
                return tf.while_loop(has_more, body, start, shape_invariants=tree.map_structure(with_open_sizes, start))[2]


def run_steps(strategy: BeamSearch | TokenByToken, state: dict, fewest=0) -> dict:
    """Takes steps while more than `fewest` sentences are not done, until the caches are full."""

    def has_more(state):
        num_alive = ops.sum(ops.cast(ops.logical_not(state["done"]), index_dtype()))
        return ops.logical_and(num_alive > fewest, state["position"] < capacity_of(state))

    return ops.while_loop(has_more, lambda state: (strategy.step(state),), (state,))[0]


def capacity_of(state: dict):
    """Returns the number of positions that a state has room for."""
    return ops.shape(state["tokens"])[-1]


def is_done(state: dict) -> bool:
    """Tells whether all sentences are done."""
    return bool(ops.convert_to_numpy(ops.all(state["done"])))


def with_open_sizes(x):
    """Returns the shape of a tensor with those axes open whose size may change: the batch, and the third, the length."""
    import tensorflow as tf  # noqa: TID251

    return tf.TensorShape([None if axis in (0, 2) else size for axis, size in enumerate(x.shape)])


def take_rows(tensors: dict, rows) -> dict:
    """Takes some sentences of a batch; what is no tensor of sentences stays as it is."""
    return tree.map_structure(lambda x: take(x, rows) if len(x.shape) else x, tensors)


def put_rows(found: dict, rows, new: dict) -> dict:
    """Puts the results of some sentences in their places among those of all.

    Args:
        found: Results of all sentences, `(B, n, L)` or `(B, n)`; they are lengthened where the new ones are longer.
        rows: Integer tensor, the sentences that the new results belong to.
        new: The new results, as many as there are `rows`.

    Returns:
        The results of all sentences.
    """
    rows = ops.convert_to_tensor(rows)
    return {name: ops.scatter_update(lengthened(value, new[name]), rows[:, None], new[name]) for name, value in found.items()}


def lengthened(value, like):
    """Pads a tensor `(B, n, L)` to the length of another; one without lengths stays as it is."""
    if len(value.shape) < 3:
        return value
    return add_zeros(value, ops.shape(like)[2] - ops.shape(value)[2], axis=2)
