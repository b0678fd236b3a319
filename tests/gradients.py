"""Values and gradients of a Keras model on whichever backend runs."""

import keras
import numpy as np


def numpy_of(tensor):
    return np.asarray(keras.ops.convert_to_numpy(tensor))


def values_and_gradients(model, inputs, cotangent, wanted=None):
    """Runs `model` on a list of arrays and differentiates the sum of its output times `cotangent`.

    Args:
        model: A built functional model of a list of inputs.
        inputs: A list of arrays.
        cotangent: An array of the output's shape.
        wanted: Indices of the inputs to differentiate by.

    Returns:
        A tuple: the output, the gradients by trainable variable path, the gradients by wanted input.
    """
    wanted = [] if wanted is None else wanted
    differentiate = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[keras.backend.backend()]
    return differentiate(model, inputs, cotangent, wanted)


def _tensorflow(model, inputs, cotangent, wanted):
    import tensorflow as tf

    inputs = [tf.convert_to_tensor(x) for x in inputs]
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
        for index in wanted:
            tape.watch(inputs[index])
        output = model(inputs)
        total = tf.reduce_sum(output * cotangent)
    gradients = tape.gradient(total, [[v.value for v in variables], [inputs[i] for i in wanted]])
    by_path = {v.path: tf.convert_to_tensor(g).numpy() for v, g in zip(variables, gradients[0], strict=True)}
    return output.numpy(), by_path, [g.numpy() for g in gradients[1]]


def _jax(model, inputs, cotangent, wanted):
    import jax

    trainable = [v.value for v in model.trainable_variables]
    fixed = [v.value for v in model.non_trainable_variables]

    def total(trainable, chosen):
        given = list(inputs)
        for index, x in zip(wanted, chosen, strict=True):
            given[index] = x
        output, _ = model.stateless_call(trainable, fixed, given)
        return (output * cotangent).sum(), output

    chosen = [np.asarray(inputs[i]) for i in wanted]
    (_, output), gradients = jax.jit(jax.value_and_grad(total, argnums=(0, 1), has_aux=True))(trainable, chosen)
    by_path = {v.path: np.asarray(g) for v, g in zip(model.trainable_variables, gradients[0], strict=True)}
    return np.asarray(output), by_path, [np.asarray(g) for g in gradients[1]]


def _torch(model, inputs, cotangent, wanted):
    import torch

    inputs = [torch.tensor(np.asarray(x)) for x in inputs]
    for index in wanted:
        inputs[index].requires_grad_(True)
    for variable in model.trainable_variables:
        variable.value.grad = None
    output = model(inputs)
    (output * torch.tensor(cotangent)).sum().backward()
    by_path = {v.path: v.value.grad.numpy() for v in model.trainable_variables}
    return output.detach().numpy(), by_path, [inputs[i].grad.numpy() for i in wanted]
