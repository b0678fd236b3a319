"""Doing something every few steps or epochs of `fit`."""

import keras


class Moments(keras.callbacks.Callback):
    """The base of callbacks that act every few steps or epochs.

    They act when a step begins, which is when nothing of the one before is left to do, and when an epoch ends. They ask for
    no numbers after each step, so that Keras need not wait for them.

    Args:
        every_steps: Number of steps between two moments, counted over all epochs; `None` for none within an epoch.
        every_epochs: Number of epochs between two moments; `None` for none at their ends but for those of `every_steps`.
    """

    def __init__(self, every_steps: int | None, every_epochs: int | None):
        super().__init__()
        for name, number in (("every_steps", every_steps), ("every_epochs", every_epochs)):
            if number is not None and number < 1:
                raise ValueError(f"`{name}` must be a positive integer, or `None`. Received: {name}={number}")
        if every_steps is None and every_epochs is None:
            raise ValueError("Give `every_steps`, `every_epochs` or both. Received: None for both")
        self.every_steps, self.every_epochs = every_steps, every_epochs
        self.step = 0  # Number of steps done, over all epochs.
        self.steps_in_epoch = 0  # Of those, in the current call of `fit` and its current epoch.
        self._stride = 1
        self._begun = 0

    def on_moment(self, epoch: int, logs: dict | None):
        """Is called at each moment.

        Args:
            epoch: The current epoch, counted from 0.
            logs: What Keras says of the epoch if it is at its end, else `None`.
        """
        raise NotImplementedError

    def is_due(self, epoch: int) -> bool:
        """Tells whether the end of an epoch is a moment, whatever the number of steps."""
        return self.every_epochs is not None and (epoch + 1) % self.every_epochs == 0

    def on_train_begin(self, logs=None):
        """Is called by Keras."""
        self._stride = self.model.steps_per_execution

    def on_epoch_begin(self, epoch, logs=None):
        """Is called by Keras."""
        self.epoch, self.steps_in_epoch, self._begun = epoch, 0, 0

    def on_train_batch_begin(self, batch, logs=None):
        """Is called by Keras."""
        self._begun = batch + self._stride
        if self._count(batch):
            self.on_moment(self.epoch, None)

    def on_epoch_end(self, epoch, logs=None):
        """Is called by Keras."""
        planned = self.params.get("steps")
        by_steps = self._count(self._begun if planned is None else min(self._begun, planned))
        if by_steps or self.is_due(epoch):
            self.on_moment(epoch, logs or {})

    def _count(self, steps_in_epoch: int) -> bool:
        """Notes how many steps of the epoch are done, and tells whether a multiple of `every_steps` has been reached."""
        before = self.step
        self.step += steps_in_epoch - self.steps_in_epoch
        self.steps_in_epoch = steps_in_epoch
        return self.every_steps is not None and self.step // self.every_steps > before // self.every_steps
