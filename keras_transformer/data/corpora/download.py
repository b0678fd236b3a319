"""Files from the network: complete and right, or not there at all."""

import contextlib
import gzip
import hashlib
import http.client
import os
import tempfile
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

CACHE_VARIABLE = "KERAS_TRANSFORMER_CACHE"
CHUNK_BYTES = 1 << 16
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Checksum:
    """What a gzip-compressed file must hash to.

    Args:
        algorithm: A name that `hashlib` knows, such as `"sha256"`.
        digest: The digest in hexadecimal digits.
        of_text: Whether it is the digest of what the file holds, decompressed, and not of the file itself.
    """

    algorithm: str
    digest: str
    of_text: bool = False

    def matches(self, content: bytes) -> bool:
        """Tells whether a file with this content is the right one."""
        if self.of_text:
            content = gzip.decompress(content)
        return hashlib.new(self.algorithm, content, usedforsecurity=False).hexdigest() == self.digest.lower()


def cache_directory(name: str) -> Path:
    """Returns where downloads of a kind are kept.

    Args:
        name: Name of the folder within the cache.

    Returns:
        A folder in `~/.cache/keras_transformer`, or in what the environment variable `KERAS_TRANSFORMER_CACHE` names.
    """
    root = os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "keras_transformer"
    return Path(root) / name


def gzip_fault(path: Path, checksum: Checksum | None = None) -> str | None:
    """Looks for what is wrong with a gzip-compressed file.

    Args:
        path: The file.
        checksum: What it must hash to. Without one, the file needs only to be complete by gzip's own check.

    Returns:
        A few words about the fault, or `None` if there is none.
    """
    content = path.read_bytes()
    try:
        gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        return f"the file is not a complete gzip file ({error})"
    if checksum is not None and not checksum.matches(content):
        return f"its {checksum.algorithm} checksum is not {checksum.digest}, so the file is damaged or has been changed"
    return None


def download(
    url: str, path: Path, find_fault: Callable[[Path], str | None], hint: str = "", progress: Progress | None = None
) -> Path:
    """Downloads a file; it appears at its path only when it is complete and right.

    Args:
        url: Where the file is.
        path: Where it shall be. Its folder is made if need be.
        find_fault: Looks at the downloaded file and returns what is wrong with it, or `None`.
        hint: What the user can do instead, for the error message.
        progress: Where to show the progress, such as `download_progress()`.

    Returns:
        `path`.

    Raises:
        ConnectionError: If the file could not be fetched as a whole.
        ValueError: If it was fetched and is not the right one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            fetch(url, file, hint, progress)
        fault = find_fault(part)
        if fault:
            raise ValueError(f"Downloaded {url}, but {fault}. Nothing was kept. {hint}".rstrip())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # The folder holds other files: leave it.
            path.parent.rmdir()
    return path


def fetch(url: str, file, hint: str, progress: Progress | None):
    """Copies what is at a URL into an open file, and raises a `ConnectionError` unless all of it came."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            length = response.headers.get("Content-Length")
            total = int(length) if length else None
            received = copy(response, file, url.rsplit("/", 1)[-1], total, progress)
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(f"Could not download {url}: {error}. Nothing was kept. {hint}".rstrip()) from error
    if total is not None and received != total:
        reason = f"the connection ended after {received} of {total} bytes"
        raise ConnectionError(f"Could not download {url}: {reason}. Nothing was kept. {hint}".rstrip())


def copy(response, file, name: str, total: int | None, progress: Progress | None) -> int:
    """Copies a response into a file, showing how far it is, and returns the number of bytes."""
    task = progress.add_task(name, total=total) if progress else None
    received = 0
    while chunk := response.read(CHUNK_BYTES):
        file.write(chunk)
        received += len(chunk)
        if progress:
            progress.update(task, completed=received)
    return received


def download_progress(verbose: bool = True) -> Progress:
    """Makes a progress display for downloads, a bar a file, on standard error. Use it in a `with` statement."""
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    return Progress(*columns, console=Console(stderr=True), disable=not verbose)
