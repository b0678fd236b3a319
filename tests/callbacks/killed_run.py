"""A small training in a process of its own that can be told when to die.

python -m tests.callbacks.killed_run FOLDER [MOMENT]

It goes on from what is in the folder. A moment is `KIND:NUMBER`, counted in this process:

    step:5      the fifth step is done
    epoch:1     the first epoch's end is reached, and its checkpoint not yet written
    arrays:3    the third checkpoint's arrays are half written
    sums:3      its arrays and its state are written, its checksums not
    rename:3    it is complete, and about to get its name
    removal:2   it is there, and the second old one to be removed is half gone
    average:2   the second file for the average is half written
"""

import json
import os
import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

import keras_transformer as kt
from keras_transformer.callbacks import Checkpoints, EarlyStopping, WeightAveraging, arrays, checkpoint_files, fit

EPOCHS = 3
COMPILED = keras.backend.backend() == "jax"


# The batches that the model gets.


def summed_up(batch, backend=keras.ops):
    """Makes one number of all ids and weights of a batch, their places included; it may overflow."""
    total = 0
    for array in keras.tree.flatten(batch):
        numbers = array * 10_000 if "float" in str(array.dtype) else array
        numbers = backend.reshape(numbers, (-1,))
        numbers = numbers.astype("int32") if backend is np else backend.cast(numbers, "int32")
        places = backend.arange(backend.size(numbers), dtype="int32")
        total = total * 31 + backend.sum((numbers + 1) * (places % 8191 + 1))
    return total


class Seeing(kt.Transformer):
    """A model that logs a number for each batch it was trained on."""

    def train_step(self, *args):
        logs, *state = found if isinstance(found := super().train_step(*args), tuple) else (found,)
        logs = {**logs, "batch": summed_up(args[-1])}
        return (logs, *state) if state else logs


class BatchLog(keras.callbacks.Callback):
    """Appends a line for each step to a file, at once."""

    def __init__(self, path: Path, checkpoints: Checkpoints):
        super().__init__()
        self.path, self.checkpoints = path, checkpoints

    def write(self, **line):
        with open(self.path, "a", encoding="utf8") as file:
            file.write(json.dumps(line) + "\n")

    def on_train_begin(self, logs=None):
        path = self.checkpoints.latest()
        position = checkpoint_files.read_state(path)["position"] if path else {"epoch": 0, "step": 0}
        self.write(begin=[position["epoch"], position["step"]])

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        self.write(at=[self.epoch, self.checkpoints.first_step + batch], batch=int(logs.pop("batch")))


# Dying.


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """Ends the process at the n-th call."""

    def __init__(self, number: int):
        self.left = number

    def __call__(self, *args, **kwargs):
        self.left -= 1
        if self.left == 0:
            die()


class DieAt(keras.callbacks.Callback):
    def __init__(self, kind: str, number: int):
        super().__init__()
        self.countdown = Countdown(number)
        setattr(self, {"step": "on_train_batch_end", "epoch": "on_epoch_end"}[kind], self.countdown)


def die_while_writing(kind: str, number: int):
    """Lets the process end within a function that writes or removes files."""
    countdown = Countdown(number)

    def on_entry(archive, info, *_, **__):
        own = ("checkpoints" in archive.filename) == (kind == "arrays")
        wanted = {"arrays": "optimizer/00003/", "average": "weights/00003/"}[kind]
        if own and wanted in getattr(info, "filename", ""):
            countdown()

    def on_digest(path):
        if path.name == "state.json" and path.parent.parent.name.startswith("."):
            countdown()

    def on_rename(old, new):
        if checkpoint_files.NAME.fullmatch(Path(new).name):
            countdown()

    def on_removal(path, **__):
        if Path(path).name.endswith(".removed") and Path(path).exists():
            if countdown.left == 1:
                (Path(path) / "state.json").unlink()
            countdown()

    places = {
        "arrays": (arrays.zipfile.ZipFile, "open", on_entry),
        "average": (arrays.zipfile.ZipFile, "open", on_entry),
        "sums": (checkpoint_files, "file_digest", on_digest),
        "rename": (os, "rename", on_rename),
        "removal": (checkpoint_files.shutil, "rmtree", on_removal),
    }
    before(*places[kind])


def before(owner, name: str, action):
    function = getattr(owner, name)

    def replacement(*args, **kwargs):
        action(*args, **kwargs)
        return function(*args, **kwargs)

    setattr(owner, name, replacement)


# The run.


def make_tokenizer():
    corpus = kt.data.reverse(num_pairs=100)
    return kt.Tokenizer.train(iter([*corpus.train.source, *corpus.train.target]), vocabulary_size=275)


def make_dataset(tokenizer):
    pairs = kt.data.reverse(num_pairs=100, max_length=5).train
    options = {"batch_tokens": 64, "num_shapes": 1, "batches_per_update": 2, "progress": False}
    return kt.data.parallel_dataset(pairs.source, pairs.target, tokenizer, **options)


def make_model(tokenizer) -> kt.Transformer:
    keras.utils.set_random_seed(11)
    config = kt.TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        model_dim=8,
        feed_forward_dim=16,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dropout=0.2,
        attention_dropout=0.1,
        use_bias=False,
    )
    model = Seeing(config)
    model.compile(
        kt.optimizers.paper_adam(config.model_dim, warmup_steps=10, factor=0.1, batches_per_update=2),
        kt.losses.SmoothedCrossEntropy(0.1),
        metrics=[kt.metrics.TokenAccuracy(), kt.metrics.Perplexity()],
        jit_compile=COMPILED,
    )
    return model


def run(folder: Path, moment: str | None):
    kind, number = moment.split(":") if moment else ("", 0)
    tokenizer = make_tokenizer()
    checkpoints = Checkpoints(folder / "checkpoints", every_steps=3)
    callbacks = [
        BatchLog(folder / "batches.jsonl", checkpoints),
        WeightAveraging(3, folder / "averages", every_steps=4),
        EarlyStopping("loss", patience=50),
    ]
    if kind in ("step", "epoch"):
        callbacks.append(DieAt(kind, int(number)))
    elif kind:
        die_while_writing(kind, int(number))
    model = make_model(tokenizer)
    history = fit(model, make_dataset(tokenizer), EPOCHS, checkpoints, callbacks, verbose=0)
    (folder / "history.json").write_text(json.dumps(history.history), encoding="utf8")
    np.savez(folder / "final.npz", *model.get_weights())


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
