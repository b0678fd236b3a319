"""Progress for log files: what a long epoch says of itself where there is no terminal with a bar."""

import time
from collections.abc import Callable

import keras

from keras_transformer.callbacks.processes import num_processes

from .report import duration
from .run_log import RunLog

EVERY_SECONDS = 60.0


class ProgressLines(keras.callbacks.Callback):
    """Prints a line about every minute within an epoch; an epoch that is shorter says nothing.

    Args:
        log: The `RunLog` of the run, which comes before this callback in the list.
        epochs: The number of epochs.
        steps: The number of steps of the whole training.
        clock: Returns seconds.
    """

    def __init__(self, log: RunLog, epochs: int, steps: int, clock: Callable[[], float] = time.monotonic):
        super().__init__()
        self.log, self.epochs, self.steps, self.clock = log, epochs, steps, clock
        self._begun: float | None = None  # When the first epoch began, at the step that a checkpoint said.

    def on_epoch_begin(self, epoch, logs=None):
        """Is called by Keras."""
        if self._begun is None:
            self._begun, self._first_step = self.clock(), self.log.step
        self._epoch = epoch
        self._mark()

    def on_train_batch_begin(self, batch, logs=None):
        """Is called by Keras."""
        if self.clock() - self._said >= EVERY_SECONDS:
            print(self.line(), flush=True)
            self._mark()

    def line(self) -> str:
        """Returns what there is to say now."""
        now, step, epoch = self.clock(), self.log.step, self._epoch
        done, whole = step - self.log.part["start"], len(self.log.dataset.plan(epoch))
        speed = (self.log.tokens_seen(epoch) - self._tokens) / (now - self._said)
        # Evaluations between epochs count, too.
        left = (self.steps - step) * (now - self._begun) / max(1, step - self._first_step)
        # Between processes, looking at the loss would take all of them at the same step.
        loss = f"loss {float(self.model.get_metrics_result()['loss']):.4f}, " if num_processes() == 1 else ""
        place = f"epoch {epoch + 1}/{self.epochs}, step {done:,}/{whole:,}"
        return f"{place}, {loss}{speed:,.0f} tokens/s, about {duration(left)} left"

    def _mark(self):
        self._said, self._tokens = self.clock(), self.log.tokens_seen(self._epoch)
