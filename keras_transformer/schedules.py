"""Learning rates that rise during a warm-up and then fall with the inverse square root of the updates."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_transformer")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of the paper (section 5.3).

        rate = factor M^-0.5 min(s^-0.5, s warmup_steps^-1.5),  s the number of the update, from 1

    It rises linearly for `warmup_steps` updates to `factor / sqrt(M warmup_steps)`, and falls from there.

    Args:
        model_dim: The width M of the model.
        warmup_steps: Number of updates until the rate is highest.
        factor: What the rate is multiplied by; 1 in the paper.
        steps_per_update: How many batches make an update. An optimizer with `gradient_accumulation_steps=N` counts batches when
            it asks for the rate: with `steps_per_update=N` the schedule goes on counting updates.

    Call arguments:
        step: Number of batches that came before, an integer.

    Returns:
        A float32 scalar.

    Example:

    >>> schedule = WarmupSchedule(model_dim=512, warmup_steps=4000)
    >>> [f"{float(schedule(update - 1)):.2e}" for update in (1, 4000, 16000)]
    ['1.75e-07', '6.99e-04', '3.49e-04']
    """

    def __init__(self, model_dim: int, warmup_steps: int = 4000, factor: float = 1.0, steps_per_update: int = 1):
        check_positive(model_dim=model_dim, warmup_steps=warmup_steps, steps_per_update=steps_per_update)
        self.model_dim = model_dim
        self.warmup_steps = warmup_steps
        self.factor = factor
        self.steps_per_update = steps_per_update

    def __call__(self, step):
        """Returns the rate of the update that the batch after `step` others belongs to."""
        update = update_number(step, self.steps_per_update)
        return self.factor * self.model_dim**-0.5 * ops.minimum(ops.rsqrt(update), update * self.warmup_steps**-1.5)

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {
            "model_dim": self.model_dim,
            "warmup_steps": self.warmup_steps,
            "factor": self.factor,
            "steps_per_update": self.steps_per_update,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class InverseSquareRootSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """The same curve, given by its highest rate.

        rate = initial_rate + (peak_rate - initial_rate) s / warmup_steps       for s <= warmup_steps
        rate = peak_rate sqrt(warmup_steps / s)                                 after it

    with s the number of the update, from 1. `WarmupSchedule(M, w)` is `InverseSquareRootSchedule((M * w) ** -0.5, w)`.
    Where the end of the training is known, the rate can fall to nothing in its last updates, in a straight line.

    Args:
        peak_rate: The highest rate, that of update `warmup_steps`.
        warmup_steps: Number of updates until then.
        initial_rate: Where the rise begins, at an update 0 that never comes.
        steps_per_update: How many batches make an update, as in `WarmupSchedule`.
        total_steps: Number of updates of the whole training, for `cooldown_steps`.
        cooldown_steps: In how many updates at the end the rate falls to 0: that of update s is multiplied by
            (total_steps + 1 - s) / cooldown_steps there.

    Call arguments:
        step: Number of batches that came before, an integer.

    Returns:
        A float32 scalar.

    Example:

    >>> schedule = InverseSquareRootSchedule(peak_rate=0.005, warmup_steps=2000)
    >>> [f"{float(schedule(update - 1)):.4f}" for update in (1000, 2000, 8000)]
    ['0.0025', '0.0050', '0.0025']
    """

    def __init__(
        self,
        peak_rate: float,
        warmup_steps: int,
        initial_rate: float = 0.0,
        steps_per_update: int = 1,
        total_steps: int | None = None,
        cooldown_steps: int = 0,
    ):
        check_positive(peak_rate=peak_rate, warmup_steps=warmup_steps, steps_per_update=steps_per_update)
        if cooldown_steps and (total_steps is None or not 0 < cooldown_steps <= total_steps):
            raise ValueError(
                "`cooldown_steps` are the last ones of `total_steps`: give both, the latter at least as large. "
                f"Received: cooldown_steps={cooldown_steps}, total_steps={total_steps}"
            )
        self.peak_rate = peak_rate
        self.warmup_steps = warmup_steps
        self.initial_rate = initial_rate
        self.steps_per_update = steps_per_update
        self.total_steps = total_steps
        self.cooldown_steps = cooldown_steps

    def __call__(self, step):
        """Returns the rate of the update that the batch after `step` others belongs to."""
        update = update_number(step, self.steps_per_update)
        rising = self.initial_rate + (self.peak_rate - self.initial_rate) / self.warmup_steps * update
        falling = self.peak_rate * self.warmup_steps**0.5 * ops.rsqrt(update)
        rate = ops.where(update < self.warmup_steps, rising, falling)
        if not self.cooldown_steps:
            return rate
        return rate * ops.clip((self.total_steps + 1 - update) / self.cooldown_steps, 0.0, 1.0)

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {
            "peak_rate": self.peak_rate,
            "warmup_steps": self.warmup_steps,
            "initial_rate": self.initial_rate,
            "steps_per_update": self.steps_per_update,
            "total_steps": self.total_steps,
            "cooldown_steps": self.cooldown_steps,
        }


def update_number(step, steps_per_update: int):
    """Returns the number of an update, from 1, as a float32 tensor: the one that the batch after `step` others belongs to."""
    return ops.cast(ops.floor_divide(ops.convert_to_tensor(step), steps_per_update) + 1, "float32")


def check_positive(**arguments: float):
    """Raises a `ValueError` for numbers that are not above 0, naming them."""
    for name, value in arguments.items():
        if not value > 0:
            raise ValueError(f"`{name}` must be above 0. Received: {name}={value}")
