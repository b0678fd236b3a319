"""`training.train` as one of several processes, of which one kills itself.

`python -m tests.training.dying_run VICTIM STEPS ...` takes the number of the process and after how many steps it dies; what
follows is the command line.
"""

import os
import signal
import sys

import keras

from training import train, trainer


class Death(keras.callbacks.Callback):
    """Kills the process after some steps, counted over all epochs."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def on_train_batch_begin(self, batch, logs=None):
        self.steps -= 1
        if self.steps < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main():
    victim, steps, *words = sys.argv[1:]
    sys.argv[1:] = words
    if train.parse_arguments(words).process_id == int(victim):
        make_callbacks = trainer.make_callbacks
        trainer.make_callbacks = lambda *arguments: [*make_callbacks(*arguments), Death(int(steps))]
    sys.exit(train.run_as_program())


if __name__ == "__main__":
    main()
