"""Optimizers: Adam in one pass over the weights, and with the numbers of the paper."""

import keras
from keras import ops

from keras_transformer.schedules import WarmupSchedule, check_positive


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

    With `gradient_accumulation_steps=N` and `use_ema=True`, the moving average takes the weights in once an update. Keras' own
    does it at every batch, N times as fast.

    Args:
        *args: As for `keras.optimizers.Adam`.
        **kwargs: As for `keras.optimizers.Adam`.

    Example:

    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    >>> model.compile(optimizer=FusedAdam(1e-4, beta_2=0.98, epsilon=1e-9), loss="mse")
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

    def _update_model_variables_moving_average(self, trainable_variables):
        """Is called by Keras at every batch; the weights move at every N-th one."""
        if not self.gradient_accumulation_steps:
            super()._update_model_variables_moving_average(trainable_variables)
            return
        is_update = ops.equal((self._iterations + 1) % self.gradient_accumulation_steps, 0)
        momentum = ops.where(ops.equal(self.iterations, 0), 0.0, self.ema_momentum)  # The first average is the first weights.
        momentum = ops.where(is_update, momentum, 1.0)
        for variable, average in zip(trainable_variables, self._model_variables_moving_average, strict=True):
            if average is not None:
                kept = ops.cast(momentum, average.dtype)
                average.assign(kept * average + (1 - kept) * variable)


def paper_adam(
    model_dim: int = 512,
    warmup_steps: int = 4000,
    factor: float = 1.0,
    batches_per_update: int = 1,
    learning_rate: float | keras.optimizers.schedules.LearningRateSchedule | None = None,
    **options,
) -> FusedAdam:
    """Makes the optimizer of the paper (section 5.3): Adam with beta 0.9 and 0.98, epsilon 1e-9, and its learning rate.

    Args:
        model_dim: The width of the model, on which the learning rate depends.
        warmup_steps: Number of updates until the learning rate is highest.
        factor: What the learning rate is multiplied by.
        batches_per_update: How many batches make an update: their gradients are accumulated, and the schedule counts updates.
            Give the same number to `parallel_dataset`, whose batches then say how much each of them counts.
        learning_rate: A number or a schedule to take instead of the paper's. A schedule of Keras' own counts batches, not
            updates; those of `keras_transformer.schedules` take `steps_per_update=batches_per_update`.
        **options: Further arguments of `keras.optimizers.Adam`, or other values for the above: `clipnorm`, `global_clipnorm`,
            `weight_decay`, `use_ema=True` with `ema_momentum`, ... With `use_ema` the model has the moving average of its
            weights after `fit`; `keras.callbacks.SwapEMAWeights` puts it in for validations as well.

    Returns:
        A `FusedAdam`.

    Example:

    >>> optimizer = paper_adam(model_dim=512, warmup_steps=4000, batches_per_update=4, global_clipnorm=1.0)
    >>> optimizer.gradient_accumulation_steps, optimizer.beta_2, optimizer.epsilon
    (4, 0.98, 1e-09)
    """
    check_positive(batches_per_update=batches_per_update)
    if "gradient_accumulation_steps" in options:
        raise ValueError(
            "Say `batches_per_update` instead of `gradient_accumulation_steps`: the learning rate depends on it as well. "
            f"Received: gradient_accumulation_steps={options['gradient_accumulation_steps']}"
        )
    if batches_per_update > 1:
        check_accumulation(batches_per_update, learning_rate, options)
        options["gradient_accumulation_steps"] = batches_per_update
    if learning_rate is None:
        learning_rate = WarmupSchedule(model_dim, warmup_steps, factor, batches_per_update)
    return FusedAdam(**{"learning_rate": learning_rate, "beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9, **options})


def check_accumulation(batches_per_update: int, learning_rate, options: dict):
    """Raises a `ValueError` for what would not count updates where several batches make one."""
    steps = getattr(learning_rate, "steps_per_update", batches_per_update)
    if steps != batches_per_update:
        raise ValueError(
            "The schedule would not count updates. Give it as many `steps_per_update` as there are `batches_per_update`. "
            f"Received: batches_per_update={batches_per_update}, learning_rate.steps_per_update={steps}"
        )
    if options.get("ema_overwrite_frequency"):
        raise ValueError(
            "Keras would overwrite the weights between the batches of an update. Leave out `ema_overwrite_frequency`, or set "
            f"`batches_per_update=1`. Received: batches_per_update={batches_per_update}, "
            f"ema_overwrite_frequency={options['ema_overwrite_frequency']}"
        )


def tensor_variable(variable):
    """Returns the TensorFlow variable that a Keras variable stands for."""
    return variable.value if isinstance(variable, keras.Variable) else variable
