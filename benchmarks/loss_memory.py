"""The memory of the loss: `python -m benchmarks.loss_memory`.

Computes a smoothed cross-entropy and its gradient from logits, with `SmoothedCrossEntropy` and with Keras' own loss of one-hot
labels, each in a process of its own, and reads how much memory that took beyond the logits. `--write` puts the results into a
document.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.page import machine, version_of, write_section

SMOOTHING = 0.1
ROWS = 8
WAYS = {"ours": "`SmoothedCrossEntropy`", "keras": "`CategoricalCrossentropy` of `one_hot` labels"}
BACKENDS = {  # What the three backends call their modes, and the environment of a process.
    "tensorflow": ("TensorFlow, graph", {"KERAS_BACKEND": "tensorflow"}),
    "tensorflow-xla": ("TensorFlow, XLA", {"KERAS_BACKEND": "tensorflow", "LOSS_MEMORY_XLA": "1"}),
    "jax": ("JAX", {"KERAS_BACKEND": "jax"}),
    "torch": ("torch", {"KERAS_BACKEND": "torch"}),
}

NOTES = """\
Loss and gradient of {tokens:,} tokens with a vocabulary of {vocabulary_size:,} and label smoothing 0.1; the logits are
{logits:,.0f} MiB. Memory is the peak of a process of its own during the step, minus what it had before, logits included: the
gradient, which is as large as the logits, and all that was needed on the way to it. Keras' loss is
`CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)` with labels from `keras.ops.one_hot`, made within the step."""


def main():
    """Measures both losses on every backend and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=4096, help="number of tokens in the batch, a multiple of 8")
    parser.add_argument("--vocabulary-size", type=int, default=37_000)
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--write", type=Path, help="a document whose section on the memory of the loss is replaced")
    parser.add_argument("--measure", choices=WAYS, help=argparse.SUPPRESS)  # In a process of its own.
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.tokens, options.vocabulary_size)))
        return
    results = {name: compared(name, options.tokens, options.vocabulary_size) for name in options.backends}
    section = report(results, options.tokens, options.vocabulary_size)
    print(section)
    if options.write:
        write_section(options.write, "loss_memory", section)


def compared(backend: str, tokens: int, vocabulary_size: int) -> dict[str, float]:
    """Returns the MiB that each of the two ways takes on a backend."""
    return {way: measured(backend, way, tokens, vocabulary_size) for way in WAYS}


def measured(backend: str, way: str, tokens: int, vocabulary_size: int) -> float:
    """Starts a process that measures one way on one backend, and returns its MiB."""
    command = [sys.executable, "-m", "benchmarks.loss_memory", "--measure", way]
    command += ["--tokens", str(tokens), "--vocabulary-size", str(vocabulary_size)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **BACKENDS[backend][1]}
    root = Path(__file__).parents[1]
    finished = subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, text=True)
    return json.loads(finished.stdout.splitlines()[-1])


# Within the process.


def measure(way: str, tokens: int, vocabulary_size: int) -> float:
    """Returns how many MiB a step takes beyond what the process has before it, logits and all that is loaded included."""
    step = make_step(make_loss(way, vocabulary_size))
    step(*random_batch(ROWS, vocabulary_size))  # Loads and makes whatever is made once.
    logits, labels = random_batch(tokens, vocabulary_size)
    before = start_peak()
    step(logits, labels)
    return peak_mib() - before


def make_loss(way: str, vocabulary_size: int) -> Callable:
    """Returns a function from labels and logits to the loss."""
    import keras

    from keras_transformer.losses import SmoothedCrossEntropy

    if way == "ours":
        return SmoothedCrossEntropy(SMOOTHING, pad_id=-1)
    keras_loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=SMOOTHING)
    return lambda labels, logits: keras_loss(keras.ops.one_hot(labels, vocabulary_size), logits)


def make_step(loss: Callable) -> Callable:
    """Returns a function that computes the loss and its gradient and waits for them."""
    import keras

    return {"tensorflow": tensorflow_step, "jax": jax_step, "torch": torch_step}[keras.backend.backend()](loss)


def tensorflow_step(loss: Callable) -> Callable:
    import tensorflow as tf

    @tf.function(jit_compile="LOSS_MEMORY_XLA" in os.environ)
    def value_and_gradient(logits, labels):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(labels, logits)
        return value, tape.gradient(value, logits)

    return lambda logits, labels: float(value_and_gradient(logits, labels)[0])


def jax_step(loss: Callable) -> Callable:
    import jax

    value_and_gradient = jax.jit(jax.value_and_grad(lambda logits, labels: loss(labels, logits)))
    return lambda logits, labels: jax.block_until_ready(value_and_gradient(logits, labels))


def torch_step(loss: Callable) -> Callable:
    def value_and_gradient(logits, labels):
        logits.requires_grad_(True)
        value = loss(labels, logits)
        value.backward()
        return value, logits.grad

    return value_and_gradient


def random_batch(tokens: int, vocabulary_size: int) -> tuple:
    """Returns normal logits and random labels, made without leaving behind anything else of their size."""
    import keras
    import numpy as np

    random = np.random.default_rng(0)
    shape = (ROWS, tokens // ROWS)
    logits = keras.ops.convert_to_tensor(random.standard_normal((*shape, vocabulary_size), dtype="float32"))
    float(logits[0, 0, 0])  # JAX copies in the background: wait for it.
    return logits, keras.ops.convert_to_tensor(random.integers(0, vocabulary_size, shape, dtype="int32"))


def start_peak() -> float:
    """Lets Linux forget the peak of this process so far, and returns the MiB it has now."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory_mib("VmRSS")


def peak_mib() -> float:
    """Returns the most MiB that this process has had since `start_peak`."""
    return memory_mib("VmHWM")


def memory_mib(name: str) -> float:
    """Reads a line of what Linux says about this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


# The table.


def report(results: dict[str, dict[str, float]], tokens: int, vocabulary_size: int) -> str:
    """Returns the section of the document."""
    logits = tokens * vocabulary_size * 4 / 2**20
    rows = [
        f"| {BACKENDS[name][0]} | {cell(result['ours'], logits)} | {cell(result['keras'], logits)} "
        f"| {result['ours'] / result['keras']:.2f} |"
        for name, result in results.items()
    ]
    versions = ", ".join(f"{package} {version_of(package)}" for package in ("keras", "tensorflow", "jax", "torch"))
    return "\n".join(
        [
            "## Memory of the loss",
            "",
            NOTES.format(tokens=tokens, vocabulary_size=vocabulary_size, logits=logits),
            "",
            f"| backend | {WAYS['ours']} | {WAYS['keras']} | ours / Keras' |",
            "| --- | ---: | ---: | ---: |",
            *rows,
            "",
            f"Measured on {datetime.date.today()}, {machine()}, {versions}, with",
            "",
            "    python -m benchmarks.loss_memory --write docs/benchmarks.md",
        ]
    )


def cell(mib: float, logits: float) -> str:
    """Writes an amount in MiB and in sizes of the logits."""
    return f"{mib:,.0f} MiB ({mib / logits:.1f} x logits)"


if __name__ == "__main__":
    main()
