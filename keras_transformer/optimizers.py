"""Optimizers: Adam in one pass over the weights."""

import keras


@keras.saving.register_keras_serializable("keras_transformer")
class FusedAdam(keras.optimizers.Adam):
    """Adam whose update reads and writes each weight once, on every backend.

    Keras writes Adam as a dozen small operations. A compiler merges them (JAX, or `jit_compile=True`), and Keras itself batches
    them on torch; in a TensorFlow graph that is not compiled each is a pass of its own over all weights and both moments. Here
    TensorFlow's fused kernel does the whole update:

        m <- m + (1 - beta_1) (g - m)
        v <- v + (1 - beta_2) (g^2 - v)
        w <- w - rate sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon)

    The arguments, the saved state and everything around the update (clipping, weight decay, averages, accumulation) are those
    of `keras.optimizers.Adam`, which also takes over for `amsgrad=True`. The numbers are too, but for one case: on TensorFlow,
    Keras' Adam treats the gradient of an embedding's rows apart (rows that did not occur keep their moments, and a row that
    occurred twice has its two gradients squared one by one). Here an embedding is a weight like any other, on every backend.

    Args:
        *args: As for `keras.optimizers.Adam`.
        **kwargs: As for `keras.optimizers.Adam`.

    Example:

        optimizer = FusedAdam(1e-4, beta_2=0.98, epsilon=1e-9)
        model.compile(optimizer=optimizer, loss="mse")
    """

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable."""
        if keras.backend.backend() == "tensorflow" and not self.amsgrad:
            self._fused_update_step(gradient, variable, learning_rate)
        else:
            super().update_step(gradient, variable, learning_rate)

    def _fused_update_step(self, gradient, variable, learning_rate):
        import tensorflow as tf  # noqa: TID251

        index = self._get_variable_index(variable)
        moments = [tensor_variable(moment[index]) for moment in (self._momentums, self._velocities)]
        variable = tensor_variable(variable)
        beta_1, beta_2, epsilon, rate, step = (
            tf.cast(number, variable.dtype)
            for number in (self.beta_1, self.beta_2, self.epsilon, learning_rate, self.iterations + 1)
        )
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=moments[0].handle,
            v=moments[1].handle,
            beta1_power=beta_1**step,
            beta2_power=beta_2**step,
            lr=rate,
            beta1=beta_1,
            beta2=beta_2,
            epsilon=epsilon,
            grad=tf.cast(tf.convert_to_tensor(gradient), variable.dtype),  # Rows of an embedding become a whole matrix.
        )


def tensor_variable(variable):
    """Returns the TensorFlow variable that a Keras variable stands for."""
    return variable.value if isinstance(variable, keras.Variable) else variable
