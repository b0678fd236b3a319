"""A training whose disk is full: it says so, and goes on once there is room."""

import shutil

import pytest

import keras_transformer as kt
from tests.dying import full_disk
from training.train import main


@pytest.fixture
def run_in(recipe, capsys):
    """Trains in a folder, on a disk with so much room for a file, and returns the only line that it says."""

    def run(folder, room):
        with full_disk(room):
            assert main([str(recipe), "--output", str(folder), "--resume"]) == 2
        (line,) = (line for line in capsys.readouterr().err.splitlines() if not line.startswith("warning: "))
        return line

    return run


def rooms(folder, count: int) -> list[int]:
    """Returns sizes from 0 to one byte less than the largest file in a folder has."""
    largest = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return [(largest - 1) * part // (count - 1) for part in range(count)]


@pytest.mark.proof(
    "A run whose disk is full, when it begins, trains or ends, exits with 2 and one line, and goes on with more room"
)
def test_a_run_says_that_the_disk_is_full_and_goes_on(recipe, run_in, tmp_path, size, seen):
    whole, full = tmp_path / "whole", tmp_path / "full"
    assert main([str(recipe), "--output", str(whole)]) == 0
    shutil.rmtree(tmp_path / "cache")

    said = [run_in(full, room) for room in rooms(whole / "checkpoints", size(3, full=20))]
    assert main([str(recipe), "--output", str(full), "--resume"]) == 0
    for name in ("results.json", "report.md"):
        (full / name).unlink()
    said += [run_in(full, room) for room in rooms(whole / "translator", size(2, full=20))]
    kt.Translator.load(full / "translator")  # The old one.
    assert main([str(recipe), "--output", str(full), "--resume"]) == 0

    assert all(line.startswith("error: ") and "ake room" in line for line in said)
    assert [path.name for path in sorted(full.iterdir())] == [path.name for path in sorted(whole.iterdir())]
    parts = {
        name: sum(f"/full/{name}" in line for line in said) for name in ("recipe", "tokenizer", "checkpoints", "translator")
    }
    assert all(parts.values()) and sum(parts.values()) == len(said)
    seen(f"{len(said)} sizes; what could not be written: {parts}")
