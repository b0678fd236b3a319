"""Runs on several devices, in processes of their own: JAX and TensorFlow want to know of devices before they begin.

`python -m tests.training.device_runs '[["digits.toml", "--output", "one"], ...]'` gives one process the command lines of
several runs, one after the other. `["unfinish", "one", "two"]` makes of a finished run one that is not.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from keras_transformer.callbacks.arrays import names_of, open_arrays
from keras_transformer.callbacks.checkpoint_files import checkpoints_in
from tests.conftest import PROVING

ROOT = Path(__file__).parents[2]
NUM_SHAPES = 2 if PROVING else 1
QUICK_XLA = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"

# No dropout, which is drawn otherwise on each number of devices; no biases, for that of a key has no gradient but rounding
# errors, which Adam makes as large as any other.
RECIPE = f"""
[data]
train_source = "train.digits"
train_target = "train.reversed"
batch_tokens = 80
num_shapes = {NUM_SHAPES}

[tokenizer]
vocabulary_size = 280

[model]
preset = "tiny"
num_encoder_layers = 1
num_decoder_layers = 1
model_dim = 16
feed_forward_dim = 32
num_heads = 2
dropout = 0.0
use_bias = false

[optimization]
epochs = 5
schedule = "inverse_sqrt"
peak_rate = 0.001
warmup_updates = 10
average_checkpoints = 1
checkpoint_every_updates = 5
"""


def environment(folder: Path, backend: str, devices: int = 1) -> dict[str, str]:
    """Returns the environment of a process on a backend with so many devices."""
    flags = f"{QUICK_XLA} --xla_force_host_platform_device_count={devices}" if devices > 1 else QUICK_XLA
    own = {"KERAS_BACKEND": backend, "XLA_FLAGS": flags, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return {**os.environ, **own, "KERAS_TRANSFORMER_CACHE": str(folder / "cache")}


def start(folder: Path, words: list[str], **options) -> subprocess.Popen:
    """Starts a Python process in a folder."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, "-m", *words], cwd=folder, **streams, **options)


def finished(process: subprocess.Popen) -> str:
    """Waits for a process that is to end well, and returns what it said."""
    output, _ = process.communicate(timeout=1200)
    assert process.returncode == 0, output
    return output


def run_all(folder: Path, backend: str, devices: int, *commands: list[str]) -> str:
    """Runs several command lines of `training.train` in one process."""
    words = ["tests.training.device_runs", json.dumps(commands)]
    return finished(start(folder, words, env=environment(folder, backend, devices)))


def newest(run: Path) -> Path:
    """Returns the newest checkpoint of a run."""
    return checkpoints_in(run / "checkpoints")[-1]


def arrays_of(run: Path, group: str) -> dict[str, np.ndarray]:
    """Returns the arrays of a group in the newest checkpoint of a run."""
    with open_arrays(newest(run)) as archive:
        return {name.split("/", 2)[2]: archive[name] for name in names_of(archive, group)}


def difference(run: Path, other: Path, group: str = "weights") -> float:
    """Returns the largest relative difference between the variables of two runs, each by its norm."""
    ours, theirs = arrays_of(run, group), arrays_of(other, group)
    assert ours.keys() == theirs.keys() and newest(run).name == newest(other).name
    return max(float(np.linalg.norm(ours[name] - theirs[name]) / np.linalg.norm(ours[name])) for name in ours)


def column(run: Path, name: str) -> list[float]:
    """Returns a column of a run's history."""
    return [float(row[name]) for row in csv.DictReader((run / "history.csv").open())]


def tokens_in_epoch(run: Path) -> float:
    """Returns how many tokens the metrics counted in the last epoch, over all devices."""
    with open_arrays(newest(run)) as archive:
        counts = [archive[name].sum() for name in names_of(archive, "metrics") if name.endswith("token_accuracy/count")]
    return float(counts[0])


def unfinish(run: Path, stopped: Path) -> int:
    """Copies a run and takes away its last checkpoint and all that came after."""
    shutil.copytree(run, stopped)
    shutil.rmtree(newest(stopped))
    (stopped / "report.md").unlink()
    return 0


def main(commands: list[list[str]]) -> int:
    from training.train import main as train

    codes = (unfinish(*map(Path, words[1:])) if words[0] == "unfinish" else train(words) for words in commands)
    return next((code for code in codes if code != 0), 0)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
