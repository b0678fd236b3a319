"""Runs that are killed, and go on as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.callbacks.killed_run import EPOCHS, make_dataset, make_tokenizer, summed_up

ROOT = Path(__file__).parents[2]
TWO_MOMENTS = ["step:11", "arrays:3"]
TEN_MOMENTS = [
    "step:5",
    "arrays:2",
    "step:8",
    "average:1",
    "epoch:1",
    "sums:2",
    "rename:2",
    "removal:2",
    "step:1",
    "arrays:3",
]


def run(folder: Path, *moment: str) -> int:
    """Runs the training in a process of its own; returns its exit code."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.callbacks.killed_run", folder, *moment]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode in (0, -signal.SIGKILL), process.stderr[-4000:]
    return process.returncode


def trained_on(folder: Path) -> list[tuple]:
    """Reads what was trained on, without what a process did after its last checkpoint."""
    kept = []
    for line in (folder / "batches.jsonl").read_text(encoding="utf8").splitlines():
        line = json.loads(line)
        if "begin" in line:
            kept = [entry for entry in kept if entry[:2] < tuple(line["begin"])]
        else:
            kept.append((*line["at"], line["batch"]))
    return kept


def every_batch() -> list[tuple]:
    """Returns the epoch, the step and the sum of every batch there is to train on, in order."""
    dataset = make_dataset(make_tokenizer())
    return [
        (epoch, step, in_32_bits(summed_up(batch, np)))
        for epoch in range(EPOCHS)
        for step, batch in enumerate(dataset.batches(epoch))
    ]


def in_32_bits(number: int) -> int:
    """Lets a number overflow as it does in a model."""
    return (int(number) + 2**31) % 2**32 - 2**31


def checksums(folder: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in (folder / "checkpoints").glob("step-*/SHA256SUMS")}


@pytest.mark.proof(
    "A run killed with kill -9 (within an epoch, between accumulation steps, while a checkpoint is written, named or removed) "
    "goes on without repeating or leaving out a batch, and ends with the weights, bit for bit, of the run never killed"
)
def test_a_killed_run_ends_like_one_never_killed(tmp_path, size, seen):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(whole) == 0
    moments = size(TWO_MOMENTS, full=TEN_MOMENTS)
    for moment in moments:
        assert run(killed, moment) == -signal.SIGKILL, moment
        assert not (killed / "final.npz").exists()
    assert run(killed) == 0

    assert trained_on(whole) == trained_on(killed) == every_batch()
    with np.load(whole / "final.npz") as expected, np.load(killed / "final.npz") as found:
        assert expected.files == found.files
        assert all(np.array_equal(expected[name], found[name]) for name in expected.files)
    assert checksums(killed) == checksums(whole)  # Optimizer, seeds, metrics, history and averaging window too.
    assert (killed / "history.json").read_text() == (whole / "history.json").read_text()
    twice = (killed / "batches.jsonl").read_text().count('"at"') - len(every_batch())
    seen(f"{len(moments)} kills ({', '.join(moments)}) in {len(every_batch())} steps, {twice} of them done again")
