"""Everything beside its peers, in one run of about an hour: `python -m benchmarks.all`, or `make bench`.

Each benchmark rewrites its section of a page. Here they take turns that are shorter than when run alone; each section names the
command that wrote it. A benchmark that fails leaves its section as it was, and the others go on.
"""

import argparse
import datetime
import shlex
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.page import machine, write_section

PLAN = {
    "train_step": "--without-xla base --rounds 2 --seconds 1",
    "fit": "--rounds 3",
    "data": "--pairs 200000 400000",
    "loss_memory": "",
    "decode": "--rounds 1 --seconds 0.6 --longest 8",
    "decode_profile": "",
    "kernel_layout": "--seconds 0.3",
    "marian_import": "--rounds 1",
    "serve": "--clients 1 8 32 --rounds 2 --seconds 6",
    "growth": "--rounds 1 --seconds 0.5 --longest 5 --outputs 16 64 256 --batches 1 8 64",
    "scale": "--epochs 2",
    "startup": "--rounds 2",
}
PAGES = {"marian_import": "bridges.md"}  # All others are on benchmarks.md.


def main(words: list[str] | None = None) -> int:
    """Runs what the command line asks for, and returns 1 if something failed."""
    options = parse_arguments(words)
    begin, minutes, failed = time.perf_counter(), {}, []
    for name in options.only:
        command = command_of(name, options.docs)
        print(f"\n{'=' * 20} python -m {shlex.join(command[2:])}", flush=True)
        started = time.perf_counter()
        if subprocess.run(command).returncode:
            failed.append(name)
        minutes[name] = (time.perf_counter() - started) / 60
    total = (time.perf_counter() - begin) / 60
    print(f"\n{times(minutes, failed)}\n\n{total:.0f} minutes")
    if list(options.only) == list(PLAN):
        write_section(options.docs / "benchmarks.md", "all", section(minutes, failed, total))
    for name in failed:
        print(f"benchmarks.{name} failed; its section is as it was", file=sys.stderr)
    return int(bool(failed))


def parse_arguments(words: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", choices=PLAN, default=list(PLAN), metavar="NAME", help=f"some of {', '.join(PLAN)}"
    )
    parser.add_argument("--docs", type=Path, default=Path("docs"), metavar="FOLDER", help="where the pages are (docs)")
    return parser.parse_args(words)


def command_of(name: str, docs: Path) -> list[str]:
    """Returns the command that runs a benchmark and writes its section."""
    page = docs / PAGES.get(name, "benchmarks.md")
    return [sys.executable, "-m", f"benchmarks.{name}", *PLAN[name].split(), "--write", str(page)]


def times(minutes: dict[str, float], failed: list[str]) -> str:
    """Makes a Markdown table of what took how long."""
    rows = (f"| `benchmarks.{name}` | {'failed' if name in failed else f'{spent:.1f}'} |" for name, spent in minutes.items())
    return "\n".join(["| benchmark | minutes |", "| --- | ---: |", *rows])


def section(minutes: dict[str, float], failed: list[str], total: float) -> str:
    """Returns the section of the page that says when everything was run."""
    return f"""## One run of everything

All sections but those that name another command or machine were written by one run, in {total:.0f} minutes:

{times(minutes, failed)}

Measured on {datetime.date.today()}, {machine()}, with

    make bench"""


if __name__ == "__main__":
    sys.exit(main())
