"""Searches and scores as each backend runs them best: a graph on TensorFlow, programs on JAX, step by step on torch."""

import operator
import threading

import keras
import numpy as np
from keras import ops

from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.scoring import log_probabilities
from keras_transformer.decoding.search import Search, capacity_of, is_done
from keras_transformer.decoding.threads import in_parts
from keras_transformer.layers.spaced_kernel import have_slow_dense
from keras_transformer.threads import num_parts

MANY_HYPOTHESES = 16  # From about here on, steps gain more than the copies cost.


def compile_search(model, options: SearchOptions):
    """Returns a function from inputs to a result; see `Search`.

    Args:
        model: A `Transformer`. The function always uses the weights that the model has when it is called, also those that
            LoRA or quantization has given it meanwhile.
        options: `SearchOptions`.

    Returns:
        A function from a dictionary of numpy arrays to a dictionary of numpy arrays.
    """
    search = Search(model, options)
    if keras.backend.backend() == "tensorflow":
        alone = Search(model, options, num_threads=num_parts())
        return in_parts(tensorflow_search(search), num_parts(), tensorflow_function(model, alone.graph_run))
    if keras.backend.backend() == "jax":
        return jax_search(model, search)
    return torch_function(search.run)


def compile_scoring(model):
    """Returns a function from `{"source_ids", "target_ids", "labels"}` to `{"log_probs"}`; see `log_probabilities`."""

    def score(inputs: dict) -> dict:
        return {"log_probs": log_probabilities(model, **inputs)}

    if keras.backend.backend() == "tensorflow":
        return tensorflow_function(model, score)
    if keras.backend.backend() == "jax":
        compiled = jax_function(model, score)
        return lambda inputs: {name: np.asarray(value) for name, value in compiled(weights_of(model), inputs).items()}
    return torch_function(score)


def tensorflow_search(search: Search):
    """Returns a search in a graph; on a CPU, in one of two: with many hypotheses, it is worth copying the kernels first."""
    import tensorflow as tf  # noqa: TID251

    few = tensorflow_function(search.model, search.graph_run)
    if tf.config.list_physical_devices("GPU") or not have_slow_dense(search.model.parts.decoder_blocks):
        return few
    many = tensorflow_function(search.model, Search(search.model, search.options, spaces_kernels=True).graph_run)

    def run(inputs: dict) -> dict:
        num_hypotheses = len(inputs["source_ids"]) * search.decoder.beam_size
        return (many if num_hypotheses >= MANY_HYPOTHESES else few)(inputs)

    return run


def tensorflow_function(model, function):
    """Returns a function as a graph, traced once for all batch sizes and lengths, and anew if the model has other variables."""
    import tensorflow as tf  # noqa: TID251

    programs, traced, lock = {}, [], threading.Lock()  # `traced` are the variables that programs were traced with.

    def program(inputs: dict):
        specs = {name: tf.TensorSpec([None] * array.ndim, array.dtype) for name, array in inputs.items()}
        with lock:
            if not are_same(traced, model.variables):
                programs.clear()
                traced[:] = model.variables
            if tuple(specs) not in programs:
                programs[tuple(specs)] = tf.function(function, autograph=False).get_concrete_function(specs)
            return programs[tuple(specs)]

    def run(inputs: dict) -> dict:
        found = program(inputs)({name: tf.constant(array) for name, array in inputs.items()})
        return {name: value.numpy() for name, value in found.items()}

    return run


def are_same(variables: list[keras.Variable], others: list[keras.Variable]) -> bool:
    """Tells whether two lists hold the same variables; their values may have changed."""
    return len(variables) == len(others) and all(map(operator.is_, variables, others))


def weights_of(model) -> list:
    """Returns the values of all variables of a model."""
    return [variable.value for variable in model.variables]


def jax_function(model, function):
    """Returns a compiled function whose first argument is the weights: it would go on using old ones otherwise."""
    import jax  # noqa: TID251

    def stateless(weights, *args, **kwargs):
        with keras.StatelessScope(state_mapping=list(zip(model.variables, weights, strict=True))):
            return function(*args, **kwargs)

    return jax.jit(stateless, static_argnames="capacity")


def jax_search(model, search: Search):
    """Returns a search of compiled programs, one for each shape of its inputs and caches."""
    begin, go_on = jax_function(model, search.begin), jax_function(model, search.go_on)

    def run(inputs: dict) -> dict:
        weights = weights_of(model)
        capacity, last = (int(one) for one in search.capacities(inputs["max_lengths"]))
        state = begin(weights, inputs, capacity=capacity)
        while not is_done(state) and capacity_of(state) < last:
            state = go_on(weights, inputs, state, capacity=2 * capacity_of(state))  # Few sizes, and few programs.
        return {name: np.asarray(value) for name, value in search.result(inputs, state).items()}

    return run


def torch_function(function):
    """Returns a function that runs step by step, without gradients."""
    import torch  # noqa: TID251

    def run(inputs: dict) -> dict:
        with torch.no_grad():
            found = function({name: ops.convert_to_tensor(array) for name, array in inputs.items()})
            return {name: ops.convert_to_numpy(value) for name, value in found.items()}

    return run
