"""Breaks the package in one place at a time and shows that the suite notices.

python -m tests.mutants [NAME ...]      # all by default; exits 1 if a mutant survives
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEAR, ALL = ("tests/foreign", "tests/layers", "tests/models"), ("tests",)  # Where mutants live; the whole suite.


@dataclass(frozen=True)
class Mutant:
    """One line of the package, and what to put in its place."""

    name: str
    file: str
    line: str
    replacement: str


MUTANTS = [
    Mutant(
        "no 1/sqrt(d_k)",
        "layers/scaled_dot_product.py",
        "query * query.shape[-1] ** -0.5",
        "query",
    ),
    Mutant(
        "causal mask shifted by one",
        "masks.py",
        "return ops.less_equal(",
        "return ops.less(",
    ),
    Mutant(
        "sine and cosine swapped",
        "layers/sinusoidal_positional_encoding.py",
        "np.stack([np.sin(angles), np.cos(angles)], axis=1)",
        "np.stack([np.cos(angles), np.sin(angles)], axis=1)",
    ),
    Mutant(
        "cross-attention without padding mask",
        "layers/decoder_block.py",
        "y = self.cross_attention(y, encoded, key_mask=encoded_mask,",
        "y = self.cross_attention(y, encoded,",
    ),
]


def failing_test(mutant: Mutant, *selections: tuple[str, ...]) -> str | None:
    """Runs tests on a copy with the mutant in it, one selection after the other; returns the first that fails, or None."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("keras_transformer", "tests", "training", "benchmarks", "docs"):
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "Makefile", "CONTRIBUTING.md", "constraints.txt"):
            shutil.copy(ROOT / name, folder)
        file = Path(folder) / "keras_transformer" / mutant.file
        text = file.read_text(encoding="utf8")
        if text.count(mutant.line) != 1:
            raise ValueError(f"{mutant.name}: {mutant.file} should contain this once: {mutant.line}")
        file.write_text(text.replace(mutant.line, mutant.replacement), encoding="utf8")
        found = (first_failure(mutant, folder, selection) for selection in selections or (NEAR, ALL))
        return next(filter(None, found), None)


def first_failure(mutant: Mutant, folder: str, selection: tuple[str, ...]) -> str | None:
    """Runs some tests in a folder until one fails."""
    environment = {**os.environ, "PROVE": "0", "EVIDENCE": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *selection]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if result.returncode not in (0, 1):
        raise RuntimeError(f"{mutant.name}: pytest did not run: {result.stdout[-2000:]}{result.stderr[-2000:]}")
    failed = [line for line in result.stdout.splitlines() if line.startswith("FAILED ")]
    return failed[0].split()[1] if failed else None


def main(names: list[str]) -> int:
    survivors = 0
    for mutant in MUTANTS:
        if not names or mutant.name in names:
            test = failing_test(mutant)
            survivors += test is None
            print(f"{mutant.name}: {'SURVIVES' if test is None else 'caught by ' + test}", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
