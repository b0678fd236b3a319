"""The loop of a search on each backend: steps until all is done, with caches that grow from time to time."""

import keras
from keras import ops, tree

SEGMENT = 16  # Steps between two growths of the cache.


def run(search, cache: dict, batch_size, first_capacity, last_capacity) -> dict:
    """Runs a search to its end, as part of a TensorFlow graph or step by step.

    Args:
        search: A `BeamSearch` or `TokenByToken`.
        cache: The decoder's cache.
        batch_size: Number of sentences.
        first_capacity: Number of positions that the cache has room for.
        last_capacity: Number of positions that are needed at most; a multiple of `SEGMENT` above the first.

    Returns:
        The final state.
    """
    state = search.initial_state(cache, batch_size, first_capacity)
    if keras.backend.backend() == "tensorflow":
        return run_tensorflow(search, state, last_capacity)
    state = run_segment(search, state)
    while capacity_of(state) < last_capacity and bool(search.is_running(state)):
        state = run_segment(search, grow(search, state, capacity_of(state) + SEGMENT))
    return state


def run_segment(search, state: dict) -> dict:
    """Takes steps until all sentences are done or the cache is full."""

    def has_room(state):
        return ops.logical_and(search.is_running(state), state["position"] < capacity_of(state))

    return ops.while_loop(has_room, lambda state: (search.step(state),), (state,))[0]


def grow(search, state: dict, capacity) -> dict:
    """Makes room for more positions in a state."""
    added = capacity - capacity_of(state)
    histories = {name: ops.pad(value, [(0, 0), (0, 0), (0, added)]) for name, value in state.items() if "token" in name}
    return {**state, **histories, "cache": search.decoder.grow(state["cache"], capacity)}


def capacity_of(state: dict):
    """Returns the number of positions that a state has room for."""
    return ops.shape(state["tokens"])[-1]


def run_tensorflow(search, state: dict, last_capacity) -> dict:
    """Does the same in a TensorFlow graph, where only its own loop lets tensors grow."""
    import tensorflow as tf  # noqa: TID251

    def has_more(state):
        return tf.logical_and(search.is_running(state), capacity_of(state) < last_capacity)

    def body(state):
        return (run_segment(search, grow(search, state, capacity_of(state) + SEGMENT)),)

    state = run_segment(search, state)
    if not search.decoder.can_grow:
        return state
    shapes = tree.map_structure(lambda x: tf.TensorShape([None if axis == 2 else n for axis, n in enumerate(x.shape)]), state)
    return tf.while_loop(has_more, body, (state,), shape_invariants=(shapes,))[0]
