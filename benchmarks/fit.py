"""How much of the bare step's speed `fit` reaches: `python -m benchmarks.fit`.

Both train the same model on the same batches. The bare step has them ready in memory, and plain cross-entropy; `fit` has the
data pipeline, the smoothed loss, metrics and callbacks, as a recipe has them. They take turns, epoch by epoch.
"""

import argparse
import datetime
import json
import shlex
import sys
import tempfile
import time
from pathlib import Path

import keras

import keras_transformer as kt
from benchmarks.data import generate
from benchmarks.our_config import config_of
from benchmarks.page import machine, write_section
from benchmarks.shapes import SHAPES, Shape
from training.run_log import RunLog

NUM_PAIRS = {"tiny": 1_500, "base": 60}  # A few seconds an epoch: of many short ones, some are not disturbed.
NOTES = """\
An epoch of generated sentences through `kt.callbacks.fit` with a `parallel_dataset`, `SmoothedCrossEntropy`, `paper_adam`,
`TokenAccuracy`, `Perplexity` and the log of a run, beside the bare step of `benchmarks.train_step` (plain cross-entropy, no
metrics, no callbacks) on the same batches, kept in memory. They take turns; each counts with its fastest epoch. Tokens are real
target tokens. A checkpoint is written after each epoch; it is timed by itself."""


class EpochTimer(keras.callbacks.Callback):
    """Notes how long each epoch took, from its first batch until its loss is known."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def on_epoch_begin(self, epoch, logs=None):
        self.started = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        float(logs["loss"])  # Waits for backends that compute asynchronously.
        self.seconds.append(time.perf_counter() - self.started)
        self.ended = time.perf_counter()


class BareStep:
    """Training without anything around it."""

    def __init__(self, shape: Shape, dataset: kt.data.ParallelDataset):
        self.model = make_model(shape, dataset)
        self.model.compile(
            optimizer=kt.optimizers.FusedAdam(1e-4),
            loss=kt.losses.SmoothedCrossEntropy(0.0),
            jit_compile=jit_compile(),
        )
        self.batches = in_memory(list(dataset.batches(0)))
        self.seconds = []

    def run_epoch(self):
        timer = EpochTimer()
        self.model.fit(self.batches, epochs=1, shuffle=False, verbose=0, callbacks=[timer])
        self.seconds += timer.seconds


class WholeFit:
    """Training as a recipe does it."""

    def __init__(self, shape: Shape, dataset: kt.data.ParallelDataset, folder: Path):
        self.model, self.dataset = make_model(shape, dataset), dataset
        self.model.compile(
            optimizer=kt.optimizers.paper_adam(shape.model_dim),
            loss=kt.losses.SmoothedCrossEntropy(0.1),
            metrics=[kt.metrics.TokenAccuracy(), kt.metrics.Perplexity()],
            jit_compile=jit_compile(),
        )
        self.checkpoints = folder / "checkpoints"
        self.log = RunLog(folder / "history.csv", folder / "steps.csv", dataset, 1, lambda update: 1e-4)
        self.seconds, self.checkpoint_seconds, self.epochs = [], [], 0

    def run_epoch(self):
        timer = EpochTimer()
        self.epochs += 1
        kt.callbacks.fit(
            self.model, self.dataset, self.epochs, self.checkpoints, callbacks=[self.log, timer], shuffle=False, verbose=0
        )
        self.checkpoint_seconds.append(time.perf_counter() - timer.ended)
        self.seconds += timer.seconds


def main():
    """Measures what the command line asks for, and prints or writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES), help="models to measure")
    parser.add_argument("--rounds", type=int, default=8, help="epochs of each, after one in which programs are compiled")
    parser.add_argument("--pairs", type=int, help="size of the generated corpus")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Markdown page whose section is to be replaced")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    results = [measure(SHAPES[name], options.pairs or NUM_PAIRS[name], options.rounds) for name in options.shapes]
    print(json.dumps(results, indent=2) if options.json else table(results))
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.fit", *sys.argv[1:]])
        write_section(options.write, "fit", section(results, command))


def measure(shape: Shape, num_pairs: int, rounds: int) -> dict:
    """Lets both take turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder, num_pairs, num_tokenizer_lines=num_pairs)
        dataset = kt.data.parallel_dataset(
            folder / "source", folder / "target", kt.Tokenizer.load(folder / "tokenizer"), shape.target_tokens
        )
        dataset.set_epoch(0)
        contenders = [BareStep(shape, dataset), WholeFit(shape, dataset, folder)]
        for _ in range(rounds + 1):
            for contender in contenders:
                contender.run_epoch()
    tokens = sum(int((labels != 0).sum()) for _, labels in dataset.batches(0))
    bare, fit = (tokens / min(contender.seconds[1:]) for contender in contenders)
    checkpoint = min(contenders[1].checkpoint_seconds[1:])
    return {
        "shape": shape.name,
        "batches": len(dataset),
        "bare": bare,
        "fit": fit,
        "share": fit / bare,
        "checkpoint": checkpoint,
    }


def make_model(shape: Shape, dataset: kt.data.ParallelDataset) -> kt.Transformer:
    """Makes the model of a shape for the words of a dataset."""
    keras.utils.set_random_seed(0)
    return kt.Transformer(
        config_of(
            shape,
            vocabulary_size=dataset.tokenizer.vocabulary_size,
            dropout=shape.dropout,
        )
    )


def jit_compile() -> bool | str:
    """Returns how models are compiled: on TensorFlow as graphs, which need not be compiled for each shape."""
    return False if keras.backend.backend() == "tensorflow" else "auto"


def in_memory(batches: list):
    """Returns batches in the form that costs the backend least."""
    if keras.backend.backend() != "tensorflow":
        return KeptBatches(batches)
    import tensorflow as tf

    ids = tf.TensorSpec((None, None), tf.int32)
    signature = ({"source_ids": ids, "target_ids": ids}, ids)
    kept = tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=signature).cache()
    return kept.apply(tf.data.experimental.assert_cardinality(len(batches)))


class KeptBatches(keras.utils.PyDataset):
    """Batches that are ready."""

    def __init__(self, batches: list):
        super().__init__()
        self.batches = batches

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.batches[index]


def table(results: list[dict]) -> str:
    """Makes a Markdown table."""
    lines = [
        "| shape | batches | bare step, tokens/s | `fit`, tokens/s | share | a checkpoint, s |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for one in results:
        lines.append(
            f"| {one['shape']} | {one['batches']} | {one['bare']:,.0f} | {one['fit']:,.0f} | {one['share']:.0%} "
            f"| {one['checkpoint']:.1f} |"
        )
    return "\n".join(lines)


def section(results: list[dict], command: str) -> str:
    """Returns the section of the page."""
    return f"""## `fit` beside the bare step

{NOTES}

{table(results)}

Measured on {datetime.date.today()}, {machine()}, {keras.backend.backend()}, with

    {command}"""


if __name__ == "__main__":
    main()
