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


def as_texts(texts: str | bytes | Iterable[str | bytes], name: str) -> list[str | bytes]:
    """Returns one text, or several, as a list.

    Args:
        texts: A text, or an iterable of them.
        name: What a user calls it, for the error message.
    """
    if is_single(texts):
        return [texts]
    try:
        several = iter(texts)
    except TypeError as error:
        kind = type(texts).__name__
        raise TypeError(f"`{name}` must be a text, or a list of them. Received: {texts!r:.80} of type {kind}") from error
    return list(several)


def is_single(text) -> bool:
    """Tells one text from several."""
    return isinstance(text, str | bytes)
