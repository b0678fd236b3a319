"""Runs every proof at full size on every backend and writes docs/evidence.md.

python -m tests.prove [tests or other pytest arguments]

With arguments, only the rows of the proofs that ran are written anew.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
BACKENDS = ("tensorflow", "jax", "torch")
PAGE = ROOT / "docs" / "evidence.md"
HEAD = """# Evidence

What the README and the documents claim, the test that shows it, and what was seen. Written by `make prove` on {date}
({machine}, Python {python}), which runs every test marked as a proof at full size on every backend. `make test` runs
the same tests at the size of a sample. To run one row: `PROVE=1 KERAS_BACKEND=jax .venv/bin/python -m pytest TEST`.

| claim | shown by | seen |
|---|---|---|
"""


def run_proofs(backend: str, evidence: Path, arguments: list[str]) -> int:
    environment = {**os.environ, "KERAS_BACKEND": backend, "PROVE": "1", "EVIDENCE": str(evidence)}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--only-proofs", *arguments]
    print(f"== {backend}: {' '.join(command[1:])}", flush=True)
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def rows(records: list[dict]) -> dict[str, str]:
    """Makes a table row for each claim, in the order of first appearance."""
    lines = {}
    for claim in dict.fromkeys(record["claim"] for record in records):
        mine = [record for record in records if record["claim"] == claim]
        tests = dict.fromkeys(record["test"].split("[")[0] for record in mine)
        cell = "<br>".join(seen_on(backend, mine) for backend in BACKENDS if seen_on(backend, mine))
        if not cell:  # Skipped everywhere: nothing was shown.
            continue
        lines[claim] = f"| {claim} | {'<br>'.join(f'`{test}`' for test in tests)} | {cell} |"
    return lines


def written_rows() -> dict[str, str]:
    """Reads the rows of the page as it is."""
    lines = PAGE.read_text(encoding="utf8").splitlines() if PAGE.exists() else []
    lines = [line for line in lines if line.startswith("| ") and not line.startswith("| claim |")]
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def seen_on(backend: str, records: list[dict]) -> str:
    mine = [record for record in records if record["backend"] == backend and record["outcome"] != "skipped"]
    if not mine:
        return ""
    failed = [record["test"] for record in mine if record["outcome"] == "failed"]
    verdict = f"**FAILED**: {', '.join(failed)}" if failed else f"{len(mine)} passed"
    notes = "; ".join(dict.fromkeys(note for record in mine for note in record["seen"]))
    return f"{backend}: {verdict}{'. ' + notes if notes else ''}".replace("|", r"\|")  # A bar would end the cell.


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        evidence = Path(folder) / "evidence.jsonl"
        codes = [run_proofs(backend, evidence, arguments) for backend in BACKENDS]
        records = [json.loads(line) for line in evidence.read_text(encoding="utf8").splitlines()]
    head = HEAD.format(
        date=date.today(), machine=f"{os.cpu_count()} cores, {platform.machine()}", python=platform.python_version()
    )
    lines = {**(written_rows() if arguments else {}), **rows(records)}
    PAGE.write_text(head + "\n".join(lines.values()) + "\n", encoding="utf8")
    print(f"wrote {PAGE.relative_to(ROOT)}: {len(records)} results")
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
