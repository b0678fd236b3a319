"""Published checkpoints, by name."""

import os
import re
from pathlib import Path

PUBLISHER = "Helsinki-NLP"
NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
SMALL_FILES = [
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "source.spm",
    "target.spm",
    "vocab.json",
    "target_vocab.json",
]
WEIGHT_FILES = ["model.safetensors", "pytorch_model.bin"]  # In the order of preference.


def find_folder(directory_or_name: str | os.PathLike, revision: str | None = None) -> Path:
    """Returns the folder of a checkpoint; that of a published one after it was downloaded, if it was not yet.

    Args:
        directory_or_name: A folder, or the name of a published checkpoint.
        revision: Branch, tag or commit of a published one.

    Returns:
        The folder.
    """
    directory = Path(directory_or_name)
    if directory.is_dir():
        if revision is not None:
            raise ValueError(f"`revision` is for published checkpoints, but {directory} is a folder. Received: {revision!r}")
        return directory
    name = str(directory_or_name)
    if isinstance(directory_or_name, Path) or not NAME.fullmatch(name):
        raise FileNotFoundError(
            f"There is no folder {name} (from {Path.cwd()}), and it is not the name of a published checkpoint either: those "
            'look like "opus-mt-en-de" or "Helsinki-NLP/opus-mt-en-de"'
        )
    return download(name if "/" in name else f"{PUBLISHER}/{name}", revision)


def download(name: str, revision: str | None) -> Path:
    """Downloads the files that are needed, or finds them in the cache."""
    for weights in WEIGHT_FILES:
        folder = Path(fetch(name, revision, [*SMALL_FILES, weights]))
        if (folder / weights).is_file():
            break
    return folder


def fetch(name: str, revision: str | None, files: list[str]) -> str:
    """Downloads files and returns their folder."""
    try:
        import huggingface_hub
        from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
    except ImportError as error:
        raise ImportError(
            'A download needs huggingface_hub: pip install "keras3-transformer[marian]". Or download the files of '
            f"https://huggingface.co/{name} yourself, and pass their folder"
        ) from error
    try:
        return huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=files)
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        revised = f" with the revision {revision!r}" if revision else ""
        raise ValueError(
            f"There is no published checkpoint {name}{revised}, or it is not public. Is there a mistake in the name? See "
            f"https://huggingface.co/{PUBLISHER}"
        ) from error
    except OSError as error:
        raise ConnectionError(
            f"{name} is not in the cache, and could not be downloaded ({error}). On a computer with a connection, run "
            f"`hf download {name} --local-dir FOLDER`, bring the folder here, and pass its path"
        ) from error
