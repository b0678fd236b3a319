"""A page of the documentation whose sections are written by commands, and where they were measured."""

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Sequence
from pathlib import Path


def write_section(page: Path, name: str, section: str):
    """Puts a section between its markers on a page; a page without markers gets them at its end.

    Args:
        page: The page.
        name: Name of the module in `benchmarks` that wrote the section.
        section: The text.
    """
    begin = f"<!-- {name}: begin, written by `python -m benchmarks.{name} --write` -->"
    end = f"<!-- {name}: end -->"
    text = page.read_text(encoding="utf8").strip() + "\n" if page.exists() else ""
    text = text if text.strip() else "# Benchmarks\n"
    before, found, rest = text.partition(begin)
    after = rest.partition(end)[2] if found else "\n"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"{before.rstrip()}\n\n{begin}\n\n{section}\n\n{end}{after}", encoding="utf8")


def measured(command: str, packages: Sequence[str]) -> str:
    """Returns the end of a section: when and where it was measured, with which packages, by which command."""
    versions = ", ".join(f"{name} {version_of(name)}" for name in packages)
    return f"Measured on {datetime.date.today()}, {machine()}, {versions}, with\n\n    {command}"


def machine() -> str:
    """Names the processor and its cores, and says how busy they have been of late."""
    return f"{processor_name()}, {os.cpu_count()} cores, load average {os.getloadavg()[2]:.1f}"


def processor_name() -> str:
    """Returns the processor's name as the system knows it."""
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        for line in cpu_info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version_of(package: str) -> str | None:
    """Returns the version of an installed package, or `None`."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
