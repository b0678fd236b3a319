"""Lines of text from files or iterables."""

import codecs
import gzip
import os
import random
import shlex
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from keras_transformer.text.strings import clean_text

START = 4096  # Number of bytes at the beginning of a file that tell its encoding.
MARKS = {  # (The first two begin with the last two.)
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}

Lines = str | os.PathLike | Iterable[str | os.PathLike]


def as_paths(data: Lines) -> list[Path] | None:
    """Tells files from lines.

    A single string or path is a file. In a list or tuple, paths are files; strings are, too, if one of them names an existing
    file or none of them has a blank in it. All else is lines.

    Args:
        data: What a user gave where files or lines are wanted.

    Returns:
        The paths, or `None` if `data` consists of lines.
    """
    if isinstance(data, str | os.PathLike):
        return [Path(data)]
    if not isinstance(data, list | tuple) or not data:
        return None
    if all(isinstance(item, os.PathLike) for item in data):
        return [Path(item) for item in data]
    if all(isinstance(item, str | os.PathLike) for item in data):
        blank_free = all(str(item).split() == [str(item)] for item in data)
        if blank_free or any(is_file(item) for item in data):
            return [Path(item) for item in data]
    return None


def is_file(name: str | os.PathLike) -> bool:
    """Tells whether there is such a file; a text that no file can be called is none."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def read_lines(path: str | os.PathLike) -> Iterator[str]:
    """Reads the lines of a UTF-8 text file, plain or gzipped (`.gz`), without their ends.

    Args:
        path: The file.

    Yields:
        The lines. Only a line feed ends a line, with or without a carriage return before it.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no such file: {path} (from {Path.cwd()}). To give lines themselves, pass an iterator"
        )
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        try:
            check_encoding(file.peek(START)[:START], path)
            for number, line in enumerate(file, start=1):
                yield decode_line(line, path, number)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is not a whole gzip file ({error}). Was it cut off while it was copied?") from error


def check_encoding(start: bytes, path: Path):
    """Raises a `ValueError` if the first bytes of a file are text in UTF-16 or UTF-32."""
    encoding = wide_encoding(start)
    if encoding is not None:
        raise ValueError(f"{path} is in {encoding}, not in UTF-8. Convert it first: {conversion(path, encoding)}")


def wide_encoding(start: bytes) -> str | None:
    """Returns the encoding that text begins in, by the name that `iconv` has for it, if it is UTF-16 or UTF-32."""
    for mark, encoding in MARKS.items():
        if start.startswith(mark):
            return encoding
    num_nuls = start.count(0)
    if not num_nuls or (4 * num_nuls < len(start) and is_utf8(start)):
        return None
    # Without a mark, line feeds tell: nearly all of them have NULs beside them, on the right side.
    texts = {name: start.decode(name, "replace") for name in ("UTF-32LE", "UTF-32BE", "UTF-16LE", "UTF-16BE")}
    counts = {name: (text.count("\n"), sum(0 < ord(letter) < 256 for letter in text)) for name, text in texts.items()}
    name = max(counts, key=counts.get)
    num_feeds, num_letters = counts[name]
    is_it = 4 * num_feeds > start.count(b"\n") or 4 * num_nuls >= len(start)
    return name if is_it and num_letters else None


def is_utf8(start: bytes) -> bool:
    """Tells whether bytes are the beginning of text in UTF-8."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True


def conversion(path: Path, encoding: str) -> str:
    """Returns the command that writes a file in UTF-8 beside one in another encoding."""
    old, new = shlex.quote(str(path)), shlex.quote(str(path.with_name(f"utf8.{path.name}")))
    if path.suffix == ".gz":
        return f"gzip -dc {old} | iconv -f {encoding} -t UTF-8 | gzip > {new}"
    return f"iconv -f {encoding} -t UTF-8 {old} > {new}"


def decode_line(line: bytes, path: Path, number: int) -> str:
    """Decodes one line of a file, and says which one if it is not UTF-8."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line {number}: not valid UTF-8 ({error.reason}, byte {error.start} of the line). Convert the file to "
            f"UTF-8 first. If it is in ISO-8859-1: {conversion(path, 'ISO-8859-1')}"
        ) from error
    return bare_line(text, number)


def bare_line(text: str, number: int) -> str:
    """Returns a line without its end, and the first one without a byte order mark."""
    if number == 1:
        text = text.removeprefix("\ufeff")
    return text.removesuffix("\n").removesuffix("\r")


def stream_lines(stream: IO) -> Iterator[str]:
    """Reads the lines of a stream, such as `sys.stdin`, without their ends, each as soon as it is there.

    Args:
        stream: The stream. If bytes lie under it, they are read as UTF-8, whatever the locale.

    Yields:
        The lines. Lines end as in `read_lines`; what is not valid Unicode becomes U+FFFD, for there is no file to mend.
    """
    for number, line in enumerate(getattr(stream, "buffer", stream), start=1):
        yield bare_line(clean_text(line), number)


def one_line(text: str) -> str:
    """Returns a text without line breaks."""
    return " ".join(text.splitlines())


def all_lines(data: Lines) -> Iterator[str]:
    """Yields the lines of files, one file after the other, or of an iterable."""
    paths = as_paths(data)
    if paths is None:
        for line in data:
            yield clean_text(line).rstrip("\r\n")
        return
    for path in paths:
        yield from read_lines(path)


def sample_lines(lines: Iterable[str], count: int, seed: int) -> list[str]:
    """Draws at most `count` lines that are not blank, each with the same chance, in one pass.

    Args:
        lines: The lines, as many as there are.
        count: How many to keep.
        seed: Decides which.

    Returns:
        The lines; in their order if all were kept.
    """
    chance = random.Random(seed)
    kept = []
    for number, line in enumerate(line for line in lines if line and not line.isspace()):
        if number < count:
            kept.append(line)
            continue
        place = chance.randrange(number + 1)
        if place < count:
            kept[place] = line
    return kept
