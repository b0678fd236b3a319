"""Reading objects of JSON: what they hold, or an error that names the file."""

import json
import math
import os
from pathlib import Path


def read_json(path: str | os.PathLike) -> dict:
    """Reads a file that holds an object of JSON. What is wrong with it is a `ValueError` that names the file.

    Args:
        path: The file.

    Returns:
        Its content.
    """
    return parse_json(Path(path).read_bytes(), str(path))


def parse_json(content: bytes, origin: str) -> dict:
    """Reads an object of JSON. What is wrong with it is a `ValueError` that names its origin.

    Args:
        content: The text, in UTF-8.
        origin: Where it comes from, for the error message.

    Returns:
        The object. All its numbers are finite: JSON knows no NaN and no Infinity, although Python writes and reads them.

    Example:

    >>> parse_json(b'{"beam_size": 4}', "translator.json")
    {'beam_size': 4}
    """
    try:
        found = json.loads(content, parse_constant=finite_number, parse_float=finite_number)
    except (ValueError, RecursionError) as error:  # (The second, where it is nested too deeply.)
        raise ValueError(f"{origin} is not JSON ({error}). Was it cut off or damaged while it was copied?") from error
    if not isinstance(found, dict):
        raise ValueError(f"{origin} must hold an object of JSON. Received: {type(found).__name__}")
    return found


def finite_number(text: str) -> float:
    """Returns the number that a text of JSON stands for, and raises a `ValueError` unless it is finite."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number
