"""Makes text files of the WMT 2014 downloads: `python -m training.prepare_wmt14 DOWNLOADS OUTPUT`.

DOWNLOADS holds the archives of https://www.statmt.org/wmt14/translation-task.html (training-parallel-europarl-v7.tgz,
training-parallel-commoncrawl.tgz, training-parallel-nc-v9.tgz, dev.tgz, test-full.tgz), or what was in them. Writes train.en,
train.de, newstest2013.en, newstest2013.de, newstest2014.en and newstest2014.de to OUTPUT: a sentence a line, one space between
words, pairs with an empty side left out of the training text. Nothing else is changed; too long and too unequal pairs are left
out when a recipe makes batches.
"""

import argparse
import gzip
import html
import re
import sys
import tarfile
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO

from .command import run_command
from .console import program

# From the parts of the corpus to the names that their two files may have, the first choice first.
TRAINING_PARTS = {
    name: [(f"{name}.de-en.en", f"{name}.de-en.de")] for name in ("europarl-v7", "commoncrawl", "news-commentary-v9")
}
HELD_OUT_PARTS = {
    "newstest2013": [("newstest2013-src.en.sgm", "newstest2013-ref.de.sgm"), ("newstest2013.en", "newstest2013.de")],
    "newstest2014": [("newstest2014-deen-src.en.sgm", "newstest2014-deen-ref.de.sgm"), ("newstest2014.en", "newstest2014.de")],
}
ARCHIVES = (".tgz", ".tar.gz", ".tar")
SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.IGNORECASE | re.DOTALL)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0, or 2 if something is wrong with what was given."""
    parser = argparse.ArgumentParser(
        prog=program("prepare_wmt14"), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("downloads", type=Path, metavar="DOWNLOADS", help="folder of the archives, or of what was in them")
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="folder to write to")
    options = parser.parse_args(argv)
    return run_command(lambda: run(options))


def run(options: argparse.Namespace):
    """Does what the command line asks for."""
    members = find_members(options.downloads)
    parts = {name: find_part(members, names) for name, names in {**TRAINING_PARTS, **HELD_OUT_PARTS}.items()}
    missing = [name for name, found in parts.items() if found is None]
    if missing:
        raise FileNotFoundError(
            f"{options.downloads} lacks the English or the German text of {', '.join(missing)}. Download the archives "
            f"that docs/training.md lists. Found: {', '.join(sorted(members)[:20]) or 'nothing'}"
        )
    options.output.mkdir(parents=True, exist_ok=True)
    for name in HELD_OUT_PARTS:
        write_pairs(options.output / name, [parts[name]], keep_empty=True)
    write_pairs(options.output / "train", [parts[name] for name in TRAINING_PARTS])


@dataclass(frozen=True)
class Member:
    """A file, on its own or in an archive.

    Args:
        path: The file, or the archive.
        name: Its name within the archive.
    """

    path: Path
    name: str | None = None

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Opens it for reading, decompressed."""
        with ExitStack() as stack:
            if self.name is None:
                file = stack.enter_context(open(self.path, "rb"))
            else:
                archive = stack.enter_context(tarfile.open(self.path))
                file = stack.enter_context(archive.extractfile(self.name))
            is_compressed = (self.name or self.path.name).endswith(".gz")
            yield stack.enter_context(gzip.open(file)) if is_compressed else file

    def lines(self) -> Iterator[str]:
        """Yields its sentences, clean. Only line feeds end a line: some of the texts contain other separators."""
        with self.open() as file:
            if self.file_name.removesuffix(".gz").endswith(".sgm"):
                text = file.read().decode("utf8")
                yield from (clean(html.unescape(segment)) for segment in SEGMENT.findall(text))
            else:
                yield from (clean(line.decode("utf8", errors="replace")) for line in file)

    @property
    def file_name(self) -> str:
        """The last part of its name."""
        return Path(self.name or self.path.name).name


def find_members(folder: Path) -> dict[str, Member]:
    """Lists all files in a folder, also those in archives, by the last part of their names. A file on its own counts more."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} (from {Path.cwd()})")
    members = {}
    files = (path for path in folder.rglob("*") if path.is_file())
    for path in sorted(files, key=lambda path: (not path.name.endswith(ARCHIVES), path)):
        if path.name.endswith(ARCHIVES):
            with tarfile.open(path) as archive:
                found = [Member(path, member.name) for member in archive if member.isfile()]
        else:
            found = [Member(path)]
        members |= {member.file_name: member for member in found if not member.file_name.startswith("._")}
    return members


def find_part(members: dict[str, Member], names: list[tuple[str, str]]) -> tuple[Member, Member] | None:
    """Returns the English and the German file of a part of the corpus, compressed or not, if both are there."""
    for pair in names:
        found = [members.get(name) or members.get(f"{name}.gz") for name in pair]
        if all(found):
            return found[0], found[1]
    return None


def clean(line: str) -> str:
    """Returns a line with single spaces and without control characters."""
    kept = "".join(" " if unicodedata.category(character) in ("Cc", "Zl", "Zp") else character for character in line)
    return " ".join(kept.split())


def write_pairs(stem: Path, parts: list[tuple[Member, Member]], keep_empty: bool = False):
    """Writes an English and a German file of sentences, which appear when they are complete, and says how many they have.

    Args:
        stem: Their path without the language.
        parts: Pairs of files to read, one after the other.
        keep_empty: Whether pairs with an empty side stay, as in a test whose lines must not move.
    """
    read = written = 0
    paths = [stem.with_name(f"{stem.name}.{language}") for language in ("en", "de")]
    check_not_read(paths, parts)
    news = [path.with_name(f".{path.name}.new") for path in paths]
    with ExitStack() as stack:
        for new in news:
            stack.callback(new.unlink, missing_ok=True)
        english, german = (stack.enter_context(open(new, "w", encoding="utf8", newline="\n")) for new in news)
        for line, other in aligned(parts):
            read += 1
            if keep_empty or (line and other):
                written += 1
                english.write(f"{line}\n")
                german.write(f"{other}\n")
        for file in (english, german):
            file.close()
        for new, path in zip(news, paths, strict=True):
            new.replace(path)
    print(f"{stem}: {written:,} of {read:,} pairs", flush=True)


def check_not_read(paths: list[Path], parts: list[tuple[Member, Member]]):
    """Raises a `ValueError` if a file that is to be written is one of those to read."""
    for path in filter(Path.exists, paths):
        if any(path.samefile(member.path) for pair in parts for member in pair):
            raise ValueError(f"{path} is read, and would be replaced. Choose another folder for OUTPUT")


def aligned(parts: list[tuple[Member, Member]]) -> Iterator[tuple[str, str]]:
    """Yields the lines of files side by side."""
    for source, target in parts:
        for line, other in zip_longest(source.lines(), target.lines()):
            if line is None or other is None:
                raise ValueError(
                    f"{source.file_name} and {target.file_name} have different numbers of lines. Was one of them cut off "
                    "while it was downloaded?"
                )
            yield line, other


if __name__ == "__main__":
    sys.exit(main())
