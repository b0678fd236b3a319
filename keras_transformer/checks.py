"""Checks of what users set: each returns the value as Python's own kind, or raises an error that says what it must be."""

import numbers
import operator
from collections.abc import Callable

import numpy as np

Check = Callable[[str, object], object]


def refusal(name: str, value: object, expected: str) -> ValueError:
    """Returns the error for a value that is not what was expected."""
    return ValueError(f"`{name}` must be {expected}. Received: {name}={value!r:.200}")


def whole(least: int, most: int, what: str = "an integer") -> Check:
    """Returns a check for integers, numpy's too, from `least` to `most`; `what` they are is for the error message."""

    def check(name: str, value: object) -> int:
        try:
            found = None if isinstance(value, bool | np.bool_) else operator.index(value)
        except TypeError:
            found = None
        if found is None or not least <= found <= most:
            raise refusal(name, value, f"{what} from {least} to {most}")
        return found

    return check


def number(least: float, most: float, what: str = "a number") -> Check:
    """Returns a check for numbers, numpy's too, from `least` to `most`; `what` they are is for the error message."""

    def check(name: str, value: object) -> float:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not is_number or not least <= value <= most:
            raise refusal(name, value, f"{what} from {least} to {most}")
        return float(value)

    return check


def flag(name: str, value: object) -> bool:
    """Checks that a value is true or false."""
    if not isinstance(value, bool | np.bool_):
        raise refusal(name, value, "True or False")
    return bool(value)


def choice(*choices: str) -> Check:
    """Returns a check for one of some names."""

    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise refusal(name, value, "one of " + ", ".join(f'"{one}"' for one in choices))
        return value

    return check


def several(check: Check) -> Check:
    """Returns a check for iterables of values that pass a check; they become a tuple, which can be looked up."""

    def check_all(name: str, values: object) -> tuple:
        try:
            listed = None if isinstance(values, str) else iter(values)
        except TypeError:
            listed = None
        if listed is None:
            raise refusal(name, values, "a list or a tuple")
        return tuple(check(f"{name}[{place}]", value) for place, value in enumerate(listed))

    return check_all


def one_or_pair(check: Check) -> Check:
    """Returns a check for a value, or for a pair of them, that pass a check."""

    def check_both(name: str, values: object) -> object:
        if not isinstance(values, tuple | list):
            return check(name, values)
        if len(values) != 2:
            raise refusal(name, values, "one number or a pair (encoder, decoder)")
        return several(check)(name, values)

    return check_both


def optional(check: Check) -> Check:
    """Returns a check that lets `None` pass."""
    return lambda name, value: None if value is None else check(name, value)


def check_fields(record: object, checks: dict[str, Check]):
    """Puts each field of a frozen record through its check, which may change it to Python's own kind."""
    for name, check in checks.items():
        object.__setattr__(record, name, check(name, getattr(record, name)))
