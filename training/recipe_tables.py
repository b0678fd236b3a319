"""The tables of a recipe: what each may say, read from a TOML file and checked.

A table is a dataclass whose fields are its keys. TOML has no word for nothing: where a limit can be absent, a recipe says
`"none"`.
"""

import difflib
import os
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

CORPORA = ("multi30k", "pronouns", "reverse")
COLUMN_SUFFIXES = (".tsv", ".tsv.gz")

Table = TypeVar("Table")


# What a value may be. Each of these takes a value from a recipe and returns it, or says what it should have been.


def integer(value: Any) -> int:
    """Takes an integer."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("expected an integer")
    return value


def number(value: Any) -> int | float:
    """Takes a number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError("expected a number")
    return value


def text(value: Any) -> str:
    """Takes a string."""
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return value


def path(value: Any) -> Path:
    """Takes a path."""
    return Path(text(value)).expanduser()


def paths(value: Any) -> tuple[Path, ...]:
    """Takes a path, or a list of them."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or not all(isinstance(one, str) for one in values):
        raise ValueError("expected a path, or a list of paths")
    return tuple(path(one) for one in values)


def corpus_name(value: Any) -> str:
    """Takes the name of a built-in corpus."""
    if value not in CORPORA:
        names = ", ".join(f'"{name}"' for name in CORPORA)
        raise ValueError(f"expected one of {names}{did_you_mean(value, CORPORA)}")
    return value


def or_none(read: Callable) -> Callable:
    """Makes a reader that takes `"none"` as well."""

    def read_or_none(value: Any):
        if isinstance(value, str) and value.lower() == "none":
            return None
        try:
            return read(value)
        except ValueError as error:
            raise ValueError(f'{error}, or "none"') from error

    return read_or_none


def read_with(read: Callable) -> dict:
    """Notes on a field of a table how its value is read."""
    return {"read": read}


# The tables.


@dataclass(frozen=True)
class DataTable:
    """The table `[data]`: what to train on, and how it becomes batches.

    Args:
        train_source: Files of source sentences, or, without `train_target`, `.tsv` files of both.
        train_target: Files of their translations, as many and in the same order.
        corpus: A built-in corpus in place of files.
        directory: The folder that holds the corpus, for `"multi30k"`.
        batch_tokens, num_shapes, max_length, max_ratio: As in `keras_transformer.data.parallel_dataset`.
    """

    train_source: tuple[Path, ...] | None = field(default=None, metadata=read_with(paths))
    train_target: tuple[Path, ...] | None = field(default=None, metadata=read_with(paths))
    corpus: str | None = field(default=None, metadata=read_with(corpus_name))
    directory: Path | None = field(default=None, metadata=read_with(path))
    batch_tokens: int = field(default=4096, metadata=read_with(integer))
    num_shapes: int | None = field(default=16, metadata=read_with(or_none(integer)))
    max_length: int | None = field(default=256, metadata=read_with(or_none(integer)))
    max_ratio: float | None = field(default=4.0, metadata=read_with(or_none(number)))

    def __post_init__(self):
        if (self.corpus is None) == (self.train_source is None):
            raise ValueError(
                f"Name either files (`train_source` and `train_target`) or a built-in `corpus`. "
                f"Received: {'neither' if self.corpus is None else 'both'}"
            )
        if self.corpus is not None and self.train_target is not None:
            raise ValueError(f"`train_target` belongs to files, not to a built-in corpus. Received: corpus={self.corpus!r}")
        if self.corpus is None and self.train_target is None and not all(map(has_columns, self.train_source)):
            raise ValueError(
                f"`train_target` is missing: only {' and '.join(COLUMN_SUFFIXES)} files hold source and target together. "
                f"Received: train_source={[str(file) for file in self.train_source]}"
            )
        if self.directory is not None and self.corpus != "multi30k":
            raise ValueError(
                "Only the corpus 'multi30k' is read from a folder; leave `directory` away. "
                f"Received: directory={self.directory}"
            )


@dataclass(frozen=True)
class TokenizerTable:
    """The table `[tokenizer]`: the vocabulary that is trained on the corpus, one for both languages.

    Args:
        vocabulary_size, model, normalization: As in `keras_transformer.Tokenizer.train`.
    """

    vocabulary_size: int = field(default=8000, metadata=read_with(integer))
    model: str = field(default="bpe", metadata=read_with(text))
    normalization: str = field(default="nfc", metadata=read_with(text))


def has_columns(file: str | os.PathLike) -> bool:
    """Tells by its name whether a file holds source and target in two columns."""
    return str(file).endswith(COLUMN_SUFFIXES)


# Reading.


def read_recipe(recipe: str | os.PathLike) -> dict:
    """Reads a TOML file.

    Args:
        recipe: The file.

    Returns:
        Its tables, unchecked.
    """
    recipe = Path(recipe)
    if not recipe.is_file():
        raise FileNotFoundError(f"There is no such recipe: {recipe} (from {Path.cwd()})")
    try:
        return tomllib.loads(recipe.read_text(encoding="utf8"))
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are both of this kind.
        raise ValueError(f"{recipe} is not valid TOML: {error}") from error


def read_table(recipe: str | os.PathLike, name: str, kind: type[Table]) -> Table:
    """Reads one table of a recipe.

    Args:
        recipe: The file.
        name: Name of the table.
        kind: Its dataclass, whose fields say how they are read. A table that is not there has its defaults.

    Returns:
        An instance of `kind`. Its paths are relative to the recipe's folder no more.

    Example:

    >>> import tempfile
    >>> recipe = Path(tempfile.mkdtemp(), "small.toml")
    >>> _ = recipe.write_text("[tokenizer]\\nvocabulary_size = 500")
    >>> read_table(recipe, "tokenizer", TokenizerTable)
    TokenizerTable(vocabulary_size=500, model='bpe', normalization='nfc')
    """
    values = read_recipe(recipe).get(name, {})
    try:
        if not isinstance(values, dict):
            raise ValueError(f"expected a table. Received: {name} = {values!r}")
        check_keys(values, [key.name for key in fields(kind)])
        read = {key.name: read_value(key, values[key.name]) for key in fields(kind) if key.name in values}
        return kind(**{key: located(value, Path(recipe).parent) for key, value in read.items()})
    except ValueError as error:
        raise ValueError(f"{recipe}, table [{name}]: {error}") from error


def check_keys(values: Iterable[str], known: list[str]):
    """Raises a `ValueError` for the first key that a table does not have, with the one that may have been meant."""
    for key in values:
        if key not in known:
            hint = did_you_mean(key, known) or f". There are {', '.join(known)}"
            raise ValueError(f"there is no key `{key}`{hint}")


def read_value(key, value: Any) -> Any:
    """Reads the value of a key with the reader of its declaration."""
    try:
        return key.metadata["read"](value)
    except ValueError as error:
        raise ValueError(f"`{key.name}`: {error}. Received: {key.name} = {value!r}") from error


def located(value: Any, folder: Path) -> Any:
    """Returns paths as seen from a folder, and any other value as it is."""
    if isinstance(value, tuple):
        return tuple(located(one, folder) for one in value)
    return folder / value if isinstance(value, Path) else value


def did_you_mean(word: Any, known: Iterable[str]) -> str:
    """Asks about the nearest of the known words, if one is near."""
    near = difflib.get_close_matches(str(word), known, n=1)
    return f". Did you mean `{near[0]}`?" if near else ""
