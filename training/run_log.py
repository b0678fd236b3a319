"""What a run remembers of itself, epoch by epoch, also when it was stopped in between."""

import csv
import io
import math
import os
import time
from collections.abc import Callable

from keras_transformer.callbacks.moments import Moments
from keras_transformer.callbacks.processes import is_writer
from keras_transformer.text.files import write_bytes

PARTS = 20  # Of an epoch, each with a row of its own.
BEGINNING = {
    "rows": [],
    "parts": [],
    "part": {"epoch": -1, "start": 0, "steps": 0, "loss": 0.0, "nll": 0.0},  # Of the current epoch, what has a row already.
    "seconds": 0.0,
    "train_seconds": 0.0,
    "step": 0,
}


class RunLog(Moments):
    """Keeps a row for each epoch, and a row for each twentieth of it, and writes them to two files.

    Beside what Keras logs, the row of an epoch has the number of updates done, the learning rate of the last of them, the
    target tokens seen so far, and the seconds spent so far on training and on everything. The rows within an epoch are the
    training loss and perplexity since the row before. Of several processes that train together, the first one writes.

    Args:
        history: The `.csv` file of epochs.
        steps: The `.csv` file of parts of epochs.
        dataset: The `ParallelDataset` that is trained on.
        batches_per_update: How many batches go into an update.
        rate: The learning rate of an update, counted from 1.
        clock: Returns seconds.
    """

    def __init__(
        self,
        history: str | os.PathLike,
        steps: str | os.PathLike,
        dataset,
        batches_per_update: int,
        rate: Callable[[int], float],
        clock: Callable[[], float] = time.perf_counter,
    ):
        super().__init__(max(1, len(dataset.plan(0)) // PARTS), 1)
        self.history, self.steps, self.dataset = history, steps, dataset
        self.batches_per_update, self.rate, self.clock = batches_per_update, rate, clock
        self.set_state(BEGINNING)
        self._mark: float | None = None  # When the seconds were last counted.
        self._is_training = False

    def on_train_begin(self, logs=None):
        """Is called by Keras."""
        super().on_train_begin(logs)
        self.set_state(BEGINNING)
        self._mark, self._is_training = self.clock(), False

    def on_epoch_begin(self, epoch, logs=None):
        """Is called by Keras."""
        super().on_epoch_begin(epoch, logs)
        if self.part["epoch"] != epoch:  # Else the epoch goes on that was stopped.
            self.part = {"epoch": epoch, "start": self.step, "steps": 0, "loss": 0.0, "nll": 0.0}
        self._count_seconds()
        self._is_training = True

    def on_test_begin(self, logs=None):
        """Is called by Keras before it looks at the validation set."""
        self._count_seconds()
        self._is_training = False

    def on_epoch_end(self, epoch, logs=None):
        """Is called by Keras."""
        self._count_seconds()
        self._is_training = False
        super().on_epoch_end(epoch, logs)

    def on_moment(self, epoch: int, logs: dict | None):
        """Adds the row of a part of an epoch, and that of an epoch that has ended."""
        self._add_part(self.model.get_metrics_result() if logs is None else logs)
        if logs is not None:
            self._add_row(epoch, logs)
        if logs is not None and is_writer():
            write_rows(self.history, self.rows)
            write_rows(self.steps, self.parts)

    @property
    def updates(self) -> int:
        """Number of updates done."""
        return self.step // self.batches_per_update

    def _add_part(self, means: dict):
        """Adds the difference between the means of the epoch until now and those until the row before."""
        before, steps = self.part, self.step - self.part["start"]
        now = {"loss": float(means["loss"]) * steps, "nll": math.log(float(means.get("perplexity", 1.0))) * steps}
        if steps > before["steps"]:
            mean = {name: (now[name] - before[name]) / (steps - before["steps"]) for name in now}
            row = {"updates": self.updates, "loss": mean["loss"], "perplexity": math.exp(mean["nll"])}
            self.parts = [*self.parts, row]
            self.part = {**before, "steps": steps, **now}

    def _add_row(self, epoch: int, logs: dict):
        row = {
            "epoch": epoch + 1,
            "updates": self.updates,
            "learning_rate": self.rate(max(1, self.updates)),
            "tokens": self.tokens_seen(epoch),
            "train_seconds": round(self.train_seconds, 3),
            "seconds": round(self.seconds, 3),
            **{name: float(value) for name, value in logs.items()},
        }
        self.rows = [*self.rows, row]

    def tokens_seen(self, epoch: int) -> int:
        """Returns how many target tokens, ends included, were seen until now, at the end of an epoch or of a part of it."""
        whole = self.dataset.statistics.tokens("target") + self.dataset.num_pairs
        share = (self.step - self.part["start"]) / len(self.dataset.plan(epoch))
        return epoch * whole + round(whole * min(1.0, share))

    def _count_seconds(self):
        now = self.clock()
        passed = 0.0 if self._mark is None else now - self._mark
        self.seconds += passed
        self.train_seconds += passed if self._is_training else 0.0
        self._mark = now

    def get_state(self) -> dict:
        """Returns what a checkpoint should keep."""
        self._count_seconds()
        return {name: getattr(self, name) for name in BEGINNING}

    def set_state(self, state: dict):
        """Restores what `get_state` returned."""
        for name, value in state.items():
            setattr(self, name, value)


def write_rows(path: str | os.PathLike, rows: list[dict]):
    """Writes rows to a `.csv` file, which is replaced all at once."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())


class StopAfter(Moments):
    """Ends training after a number of steps, in the middle of an epoch if need be.

    Args:
        steps: Number of steps, counted over all epochs.
    """

    def __init__(self, steps: int):
        super().__init__(None, 1)
        self.steps = steps

    def on_train_begin(self, logs=None):
        """Is called by Keras."""
        super().on_train_begin(logs)
        self.step = 0

    def on_train_batch_begin(self, batch, logs=None):
        """Is called by Keras, which looks whether to stop after the step that begins now."""
        super().on_train_batch_begin(batch, logs)
        if self.step + 1 >= self.steps:
            self.model.stop_training = True

    def on_moment(self, epoch: int, logs: dict | None):
        """Does nothing: the steps are counted."""

    def get_state(self) -> dict:
        """Returns what a checkpoint should keep."""
        return {"step": self.step, "stopped": self.step >= self.steps}

    def set_state(self, state: dict):
        """Restores what `get_state` returned."""
        self.step = state["step"]
