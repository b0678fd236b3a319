"""Stopping when the score no longer gets better."""

import math
import os
import warnings

import keras

from keras_transformer.callbacks.averaging import average_weights
from keras_transformer.callbacks.weight_files import WeightFiles

LARGER_IS_BETTER = ("bleu", "chrf", "acc")
SMALLER_IS_BETTER = ("loss", "perplexity", "error")


class EarlyStopping(keras.callbacks.Callback):
    """Stops training when a number in the logs has not become better for a while.

    Epochs that do not have the number, as those between two evaluations of BLEU, do not count. What writes the number has to
    come before this callback in the list. Unlike the one of Keras, it goes on with its counts in `kt.callbacks.fit`.

    Args:
        monitor: The name of the number: `"val_bleu"`, `"val_loss"`, ...
        patience: After how many values in a row that are not better training stops.
        mode: `"max"` or `"min"`. `None` finds out from the name.
        min_delta: By how much a value has to be better than the best.
        restore_best: Whether to end with the weights of the best epoch.
        directory: Where those weights are kept, if they are. `None` takes a temporary one, which a killed process cannot go
            on with.
        verbose: Whether to say when and why it stops.

    Example:

        callbacks = [
            kt.callbacks.BleuEvaluation("validation.en", "validation.de", tokenizer),
            kt.callbacks.EarlyStopping("val_bleu", patience=5),
        ]
    """

    def __init__(
        self,
        monitor: str = "val_bleu",
        patience: int = 5,
        mode: str | None = None,
        min_delta: float = 0.0,
        restore_best: bool = False,
        directory: str | os.PathLike | None = None,
        verbose: int = 1,
    ):
        super().__init__()
        if patience < 1 or min_delta < 0:
            raise ValueError(
                "`patience` must be a positive integer and `min_delta` not negative. "
                f"Received: patience={patience}, min_delta={min_delta}"
            )
        self.monitor, self.patience, self.mode = monitor, patience, find_mode(monitor, mode)
        self.min_delta, self.restore_best, self.verbose = min_delta, restore_best, verbose
        self.files = WeightFiles(directory, "best") if restore_best else None
        self.best: float | None = None
        self.best_epoch: int | None = None
        self.best_file: str | None = None
        self.wait = 0
        self.stopped = False
        self._names: set[str] = set()

    def on_train_begin(self, logs=None):
        """Is called by Keras."""
        self.best, self.best_epoch, self.best_file, self.wait, self.stopped = None, None, None, 0, False
        self._names = set()

    def on_epoch_end(self, epoch, logs=None):
        """Is called by Keras."""
        logs = logs or {}
        self._names |= set(logs)
        if logs.get(self.monitor) is None:
            return
        if self.is_better(logs[self.monitor]):
            self.best, self.best_epoch, self.wait = float(logs[self.monitor]), epoch, 0
            self._keep_weights(epoch)
        else:
            self.wait += 1
        if self.wait >= self.patience:
            self._stop(epoch)

    def is_better(self, value: float) -> bool:
        """Tells whether a value is better than the best one; NaN never is."""
        if self.best is None:
            return not math.isnan(value)
        gain = value - self.best if self.mode == "max" else self.best - value
        return gain > self.min_delta

    def _keep_weights(self, epoch: int):
        if self.files is not None:
            self.best_file = self.files.write(self.model, epoch)
            self.files.remove_all_but([self.best_file])

    def _stop(self, epoch: int):
        self.model.stop_training = self.stopped = True
        if self.verbose:
            best = "" if self.best is None else f" than {self.best:.6g} (epoch {self.best_epoch + 1})"
            print(f"\nTraining stops after epoch {epoch + 1}: no better {self.monitor}{best} in {self.wait} evaluations")

    def on_train_end(self, logs=None):
        """Is called by Keras."""
        if self.best_file is not None:
            self.model.set_weights(average_weights(self.files.paths([self.best_file])))
            self.files.remove_all_but([self.best_file])
        if self._names and self.monitor not in self._names and self.best is None:
            warnings.warn(
                f"EarlyStopping never saw {self.monitor}. What writes it has to come before it in the list of callbacks. "
                f"There were: {', '.join(sorted(self._names))}",
                stacklevel=2,
            )

    def get_state(self) -> dict:
        """Returns what a checkpoint should keep."""
        if self.files is not None:
            self.files.note([self.best_file])
        return {name: getattr(self, name) for name in ("best", "best_epoch", "best_file", "wait", "stopped")}

    def set_state(self, state: dict):
        """Restores what `get_state` returned."""
        for name, value in state.items():
            setattr(self, name, value)
        if self.files is None:
            self.best_file = None
        else:
            self.files.recall([self.best_file] if self.best_file else [], "EarlyStopping")


def find_mode(monitor: str, mode: str | None) -> str:
    """Returns whether a larger (`"max"`) or a smaller (`"min"`) number of a name is the better one."""
    if mode in ("max", "min"):
        return mode
    if mode is None and any(word in monitor for word in LARGER_IS_BETTER):
        return "max"
    if mode is None and any(word in monitor for word in SMALLER_IS_BETTER):
        return "min"
    raise ValueError(
        f'Say with `mode` whether a larger number is better ("max") or a smaller one ("min"). Received: monitor={monitor!r}, '
        f"mode={mode!r}"
    )
