"""Recipes: commented TOML files that say all there is to say about a training run."""

import difflib
import json
import os
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from .recipe_tables import (
    DataTable,
    DevicesTable,
    EvaluationTable,
    ExportTable,
    ModelTable,
    OptimizationTable,
    TokenizerTable,
)
from .recipe_values import check_unicode, did_you_mean

FOLDER = Path(__file__).parent / "recipes"
Table = TypeVar("Table")


@dataclass(frozen=True)
class Recipe:
    """A recipe that was read and checked.

    Args:
        name: Name of its file, without the ending.
        data, tokenizer, model, optimization, evaluation, export, devices: Its tables.
    """

    name: str
    data: DataTable
    tokenizer: TokenizerTable
    model: ModelTable
    optimization: OptimizationTable
    evaluation: EvaluationTable
    export: ExportTable
    devices: DevicesTable

    def to_toml(self) -> str:
        """Writes all that the recipe says, defaults included, with paths that hold from everywhere."""
        return "\n".join(f"[{name}]\n{table_to_toml(getattr(self, name))}" for name in TABLES)

    @property
    def batches_per_update(self) -> int:
        """How many batches go into an update of the optimizer."""
        wanted = self.optimization.tokens_per_update
        return 1 if wanted is None else max(1, -(-wanted // self.data.batch_tokens))


TABLES = {table.name: table.type for table in fields(Recipe) if table.name != "name"}


def find_recipe(word: str | os.PathLike) -> Path:
    """Finds a recipe.

    Args:
        word: A path, or the name of a recipe in `training/recipes`.

    Returns:
        The path of its file.
    """
    if Path(word).suffix == ".toml" or Path(word).is_file():
        return Path(word)
    names = sorted(file.stem for file in FOLDER.glob("*.toml"))
    if str(word) not in names:
        hint = did_you_mean(word, names) or f". There are {', '.join(names)}; or give the path of a .toml file"
        raise ValueError(f"There is no such recipe: {word}{hint}")
    return FOLDER / f"{word}.toml"


def read_recipe(word: str | os.PathLike, settings: Sequence[str] = ()) -> Recipe:
    """Reads a recipe and checks it.

    Args:
        word: A path, or the name of a recipe in `training/recipes`.
        settings: Changes, such as `"optimization.epochs=3"`, or `"epochs=3"` where one table alone has the key. The value is
            TOML; what is not is taken for a string. Paths are relative to the working directory.

    Returns:
        The recipe.

    Example:

    >>> read_recipe("pronouns", ["epochs=1"]).optimization.epochs
    1
    """
    file = find_recipe(word)
    values = read_toml(file)
    for name in values:
        if name not in TABLES:
            hint = did_you_mean(name, TABLES) or f". There are {known(TABLES)}"
            raise ValueError(f"{file}: there is no table [{name}]{hint}")
    changes = read_settings(settings)
    return Recipe(file.stem, **{name: table_of(file, name, kind, values, changes) for name, kind in TABLES.items()})


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
    >>> read_table(recipe, "tokenizer", TokenizerTable).vocabulary_size
    500
    """
    return table_of(Path(recipe), name, kind, read_toml(recipe), {})


def difference(old: Recipe, new: Recipe, old_name: str, new_name: str) -> str:
    """Returns what differs between two recipes, as a unified diff, or an empty string."""
    lines = difflib.unified_diff(old.to_toml().splitlines(), new.to_toml().splitlines(), old_name, new_name, n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith("@@"))


# Reading.


def read_toml(file: str | os.PathLike) -> dict:
    """Reads a TOML file and returns its tables, unchecked."""
    file = Path(file)
    if not file.is_file():
        raise FileNotFoundError(f"There is no such recipe: {file} (from {Path.cwd()})")
    try:
        return tomllib.loads(file.read_text(encoding="utf8"))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError and UnicodeDecodeError are both of the former kind.
        raise ValueError(f"{file} is not valid TOML: {error}") from error


def read_settings(settings: Sequence[str]) -> dict[str, dict[str, str]]:
    """Takes settings apart: from tables to keys to words."""
    changes: dict[str, dict[str, str]] = {}
    for setting in settings:
        name, equals, word = setting.partition("=")
        if not equals:
            raise ValueError(f"--set needs key=value, such as --set optimization.epochs=3. Received: --set {setting}")
        table, key = full_name(name.strip())
        changes.setdefault(table, {})[key] = word.strip()
    return changes


def full_name(name: str) -> tuple[str, str]:
    """Finds the table and the key that a name such as `optimization.epochs` or `epochs` means."""
    names = [f"{table}.{key}" for table, kind in TABLES.items() for key in keys_of(kind)]
    found = [full for full in names if name in (full, full.partition(".")[2])]
    if len(found) > 1:
        raise ValueError(f"--set {name}: there are several of this name. Say which: {known(found)}")
    if not found:
        near = did_you_mean(name, [*names, *(full.partition(".")[2] for full in names)])
        raise ValueError(f"--set {name}: there is no such key{near or '. Keys are such as optimization.epochs'}")
    table, _, key = found[0].partition(".")
    return table, key


def table_of(file: Path, name: str, kind: type[Table], values: dict, changes: dict[str, dict[str, str]]) -> Table:
    """Makes a table of what a file says about it and of the changes to that."""
    try:
        said = values.get(name, {})
        if not isinstance(said, dict):
            raise ValueError(f"expected a table. Received: {name} = {said!r}")
        check_keys(said, keys_of(kind))
        read = {key: read_value(kind, key, value) for key, value in said.items()}
    except ValueError as error:
        raise ValueError(f"{file}, table [{name}]: {error}") from error
    try:
        changed = {key: read_word(kind, key, word) for key, word in changes.get(name, {}).items()}
    except ValueError as error:
        raise ValueError(f"--set {name}.{str(error).lstrip('`').replace('`', '', 1)}") from error
    has_folder = {**read, **changed}.get("folder") is not None
    places = {**dict.fromkeys(read, file.parent), **dict.fromkeys(changed, Path.cwd())}
    try:
        return kind(**{key: located(value, places[key], has_folder) for key, value in {**read, **changed}.items()})
    except ValueError as error:
        raise ValueError(f"{file}, table [{name}]: {error}") from error


def keys_of(kind: type) -> list[str]:
    """Returns the keys of a table."""
    return [key.name for key in fields(kind)]


def check_keys(values: Iterable[str], keys: list[str]):
    """Raises a `ValueError` for the first key that a table does not have, with the one that may have been meant."""
    for key in values:
        if key not in keys:
            raise ValueError(f"there is no key `{key}`{did_you_mean(key, keys) or f'. There are {known(keys)}'}")


def read_value(kind: type, key: str, value: Any) -> Any:
    """Reads the value of a key with the reader of its declaration."""
    reader = next(one.metadata["read"] for one in fields(kind) if one.name == key)
    try:
        return reader(value)
    except ValueError as error:
        message = str(error) if str(error).endswith("?") else f"{error}."
        raise ValueError(f"`{key}`: {message} Received: {key} = {value!r}") from error


def read_word(kind: type, key: str, word: str) -> Any:
    """Reads the value of a key from the command line: as TOML, or else as a string."""
    try:
        value = tomllib.loads(f"value = {word}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return read_value(kind, key, word)
    try:
        return read_value(kind, key, value)
    except ValueError as error:
        try:
            return read_value(kind, key, word)  # A folder may be called 2016.
        except ValueError:
            raise error from None


def located(value: Any, place: Path, has_folder: bool) -> Any:
    """Returns paths as seen from everywhere, and any other value as it is. Files in a recipe's folder keep their names."""
    if isinstance(value, tuple) and all(isinstance(one, Path) for one in value):
        return value if has_folder else tuple(Path(os.path.abspath(place / one)) for one in value)
    return Path(os.path.abspath(place / value)) if isinstance(value, Path) else value


def known(names: Iterable[str]) -> str:
    """Lists names."""
    return ", ".join(names)


# Writing.


def table_to_toml(table) -> str:
    """Writes a table; what is absent by default is left away."""
    values = {key.name: (getattr(table, key.name), key.default) for key in fields(table)}
    lines = [f"{name} = {to_toml(value)}\n" for name, (value, default) in values.items() if (value, default) != (None, None)]
    return "".join(lines)


def to_toml(value: Any) -> str:
    """Writes a value as TOML."""
    if value is None:
        return '"none"'
    if isinstance(value, tuple):
        return f"[{', '.join(map(to_toml, value))}]"
    if isinstance(value, str | Path):
        return string_to_toml(str(value))
    return repr(value) if isinstance(value, float) else json.dumps(value)  # JSON has no word for `inf` and `nan`.


def string_to_toml(text: str) -> str:
    """Writes a basic string of TOML, which knows all the escapes of JSON's strings, and wants one for U+007F, too."""
    check_unicode(text)
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
