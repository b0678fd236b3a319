"""Stopping as soon as the loss is no number."""

import math

import keras

ADVICE = (
    "Lower the learning rate or warm up longer, clip gradients (`global_clipnorm=1.0`), under float16 try bfloat16, or look "
    "for bad pairs in the data"
)


class StopOnNonFinite(keras.callbacks.Callback):
    """Ends training with a `FloatingPointError` when the loss is NaN or infinite.

    `keras.callbacks.TerminateOnNaN` ends it as if all were well, and whatever comes last (averaging, saving) goes on with
    weights that are lost. `kt.callbacks.fit` has one of these by itself.

    Example:

        model.fit(train, epochs=20, callbacks=[kt.callbacks.StopOnNonFinite()])
    """

    async_safe = True  # So that Keras need not wait for the loss of a step before it begins the next.

    def __init__(self):
        super().__init__()
        self._epoch = 0

    def on_epoch_begin(self, epoch, logs=None):
        """Is called by Keras."""
        self._epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        """Is called by Keras."""
        check_loss((logs or {}).get("loss"), f"in epoch {self._epoch + 1}, {batch + 1} steps after `fit` began with it")


def check_loss(loss: float | None, when: str):
    """Raises a `FloatingPointError` if a loss is given and is NaN or infinite."""
    if loss is not None and not math.isfinite(loss):
        raise FloatingPointError(f"The loss became {float(loss)} {when}, and training ends here. {ADVICE}")
