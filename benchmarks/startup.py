"""What importing costs: `python -m benchmarks.startup`.

Imports this package, Keras alone and peers, each in fresh processes on every backend, and reads the time, the peak of memory,
and which backends were loaded.
"""

import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.page import machine, version_of, write_section

BACKENDS = ("tensorflow", "jax", "torch")
PROGRAM = f"""\
import sys, time
started = time.perf_counter()
{{statement}}
seconds = time.perf_counter() - started
import json
from benchmarks.memory import peak_gib
loaded = [name for name in {BACKENDS} if name in sys.modules]
print(json.dumps({{{{"seconds": seconds, "mib": 1024 * peak_gib(), "loaded": loaded}}}}))
"""
COLUMNS = ("backend", "import", "seconds", "beyond Keras", "peak, MiB", "beyond Keras", "loads")
NOTES = """\
The time of an import and the most memory that its process had, in fresh processes that take turns; the best of {rounds}. Files
are in the system's cache, and compiled to bytecode. "Beyond Keras" is what comes on top of `import keras` with the same
backend. The last column says which of TensorFlow, JAX and torch a process has loaded by then."""


@dataclass
class Import:
    """One statement on one backend, and what was seen of it.

    Attributes:
        backend: The backend of Keras, or what the package runs on.
        statement: What is run.
        runs: For each process, `seconds`, `mib` and what it `loaded`; empty if the statement fails.
    """

    backend: str
    statement: str
    runs: list[dict] = field(default_factory=list)

    @property
    def is_baseline(self) -> bool:
        """Whether it is what others are compared with."""
        return self.statement == "import keras"

    def best(self, name: str) -> float | None:
        """Returns the smallest of what was seen, or `None`."""
        return min((run[name] for run in self.runs), default=None)


def main(words: list[str] | None = None):
    """Measures what the command line asks for, and prints or writes it."""
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS), help="backends of Keras")
    parser.add_argument("--rounds", type=int, default=3, help="how many processes each import has")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Markdown page whose section is to be replaced")
    options = parser.parse_args(words)
    imports = imports_of(options.backends)
    for _ in range(options.rounds):
        for one in imports:
            run_once(one)
    print(table(imports))
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.startup", *words])
        write_section(options.write, "startup", section(imports, options.rounds, command))


def imports_of(backends: list[str]) -> list[Import]:
    """Lists what is imported, as far as it is installed."""
    installed = [backend for backend in backends if version_of(backend)]
    packages = ["keras", "keras_transformer", *(["keras_hub"] if version_of("keras_hub") else [])]
    imports = [Import(backend, f"import {package}") for backend in installed for package in packages]
    if "torch" in installed and version_of("transformers"):
        imports.append(Import("torch", "from transformers import MarianMTModel"))
    return imports


def run_once(one: Import):
    """Imports in a fresh process and notes what was seen; an import that fails is left out."""
    environment = {**os.environ, "KERAS_BACKEND": one.backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", PROGRAM.format(statement=one.statement)]
    root = Path(__file__).parents[1]
    finished = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    if finished.returncode == 0:
        one.runs.append(json.loads(finished.stdout.splitlines()[-1]))
    else:
        print(f"`{one.statement}` failed on {one.backend}: {finished.stderr[-500:]}", file=sys.stderr)


def table(imports: list[Import]) -> str:
    """Makes a Markdown table."""
    rules = ("---", "---", "---:", "---:", "---:", "---:", "---")
    return "\n".join("| " + " | ".join(row) + " |" for row in [COLUMNS, rules, *(row_of(one, imports) for one in imports)])


def row_of(one: Import, imports: list[Import]) -> tuple[str, ...]:
    """Formats the cells of one import."""
    return (
        one.backend,
        f"`{one.statement}`",
        cell(one.best("seconds"), ".2f"),
        cell(beyond_keras(one, imports, "seconds"), "+.2f"),
        cell(one.best("mib"), ",.0f"),
        cell(beyond_keras(one, imports, "mib"), "+,.0f"),
        ", ".join(one.runs[0]["loaded"]) if one.runs else "-",
    )


def beyond_keras(one: Import, imports: list[Import], name: str) -> float | None:
    """Returns how much more than Keras alone an import of something built on Keras costs, or `None`."""
    keras = next((other for other in imports if other.is_baseline and other.backend == one.backend), None)
    if one.is_baseline or "keras" not in one.statement or not (keras and keras.runs and one.runs):
        return None
    return one.best(name) - keras.best(name)


def cell(value: float | None, form: str) -> str:
    """Formats a number, or a dash for none."""
    return "-" if value is None else format(value, form)


def section(imports: list[Import], rounds: int, command: str) -> str:
    """Returns the section of the page."""
    packages = ("keras", "keras_hub", "transformers", *BACKENDS)
    versions = ", ".join(f"{package} {version}" for package in packages if (version := version_of(package)))
    return f"""## Importing

{NOTES.format(rounds=rounds)}

{table(imports)}

Measured on {datetime.date.today()}, {machine()}, {versions}, with

    {command}"""


if __name__ == "__main__":
    main()
