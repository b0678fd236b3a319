"""What a value of a recipe may be.

Each reader takes a value as TOML gives it and returns what a table holds, or raises a `ValueError` that says what was expected.
TOML has no word for nothing: where a limit can be absent, a recipe says `"none"`.
"""

import difflib
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


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


def finite(value: Any) -> int | float:
    """Takes a number that is neither NaN nor infinite."""
    if not -math.inf < number(value) < math.inf:
        raise ValueError("expected a finite number")
    return value


def positive(read: Callable) -> Callable:
    """Makes a reader that takes what another one takes, if it is above zero."""

    def read_positive(value: Any):
        value = read(value)
        if not 0 < value < math.inf:
            raise ValueError(f"expected a positive {'integer' if read is integer else 'number'}")
        return value

    return read_positive


def count(value: Any) -> int:
    """Takes an integer that is not negative."""
    if integer(value) < 0:
        raise ValueError("expected an integer that is not negative")
    return value


def share(value: Any) -> int | float:
    """Takes a number from 0 to below 1, such as a rate of dropout."""
    if not 0 <= number(value) < 1:
        raise ValueError("expected a number from 0 to below 1")
    return value


def switch(value: Any) -> bool:
    """Takes `true` or `false`."""
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def text(value: Any) -> str:
    """Takes a string."""
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return value


def path(value: Any) -> Path:
    """Takes a path."""
    try:
        return Path(text(value)).expanduser()
    except RuntimeError as error:
        raise ValueError("expected a path: there is no such user") from error


def paths(value: Any) -> tuple[Path, ...]:
    """Takes a path, or a list of them."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or not all(isinstance(one, str) for one in values):
        raise ValueError("expected a path, or a list of paths")
    return tuple(path(one) for one in values)


def integers(value: Any) -> int | tuple[int, int]:
    """Takes an integer, or a list of two: encoder and decoder."""
    if isinstance(value, list) and len(value) == 2:
        return integer(value[0]), integer(value[1])
    try:
        return integer(value)
    except ValueError as error:
        raise ValueError(f"{error}, or a list of two (encoder, decoder)") from error


def one_of(*choices: str) -> Callable:
    """Makes a reader that takes one of a few words."""

    def read_choice(value: Any) -> str:
        if value not in choices:
            words = ", ".join(f'"{word}"' for word in choices)
            raise ValueError(f"expected one of {words}{did_you_mean(value, choices)}")
        return value

    return read_choice


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


def check_unicode(text: str):
    """Raises a `ValueError` for what cannot be written as UTF-8, such as a path that is not."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"A run's files are UTF-8, and this name or word cannot be written to them. Choose another. Received: {text!r}"
        ) from error


def did_you_mean(word: Any, known: Iterable[str]) -> str:
    """Asks about the nearest of the known words, if one is near."""
    near = difflib.get_close_matches(str(word), known, n=1)
    return f". Did you mean `{near[0]}`?" if near else ""
