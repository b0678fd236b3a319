"""Any text as valid Unicode."""

import re
from collections.abc import Iterable

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean_text(text: str | bytes) -> str:
    """Returns text that every encoder accepts: what is not valid Unicode becomes U+FFFD.

    Args:
        text: A string, in which lone surrogates are replaced, or bytes, which are read as UTF-8.

    Returns:
        A string that can be encoded as UTF-8.

    Example:

    >>> ascii(clean_text(b"caf\\xe9"))
    "'caf\\\\ufffd'"
    """
    if isinstance(text, str):  # (numpy.str_ too)
        return text if text.isascii() else _SURROGATES.sub(REPLACEMENT, text)
    if isinstance(text, bytes):
        return text.decode("utf-8", "replace")
    raise TypeError(f"Text must be a string, or bytes in UTF-8. Received: {text!r:.80} of type {type(text).__name__}")


def clean_texts(texts: Iterable[str | bytes]) -> list[str]:
    """Returns `clean_text` of each text."""
    return [clean_text(text) for text in texts]


def is_single(text) -> bool:
    """Tells one text from several."""
    return isinstance(text, str | bytes)
