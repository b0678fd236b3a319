"""Texts that are far too long for a model are cut before a tokenizer reads them, which takes seconds for ten million bytes."""

SPELLING = 4  # Normalization makes a text up to four times shorter: a mathematical letter has four bytes, a plain one has one.


def most_bytes(tokenizer, max_tokens: int) -> int | None:
    """Returns how many bytes of a text a tokenizer has to read where only so many of its tokens count.

    They are those of as many of the longest pieces, times four. A text that is longer has more tokens, unless most of it are
    blanks or other characters that the tokenizer drops or does not know.

    Args:
        tokenizer: The tokenizer.
        max_tokens: The number of tokens.

    Returns:
        A number of bytes of UTF-8; `None`, for any number, if the tokenizer does not say by `tokens` what its pieces are.
    """
    if not hasattr(tokenizer, "tokens"):
        return None
    pieces = tokenizer.tokens(list(range(tokenizer.vocabulary_size)))
    return SPELLING * max_tokens * max(len(piece.encode()) for piece in pieces)


def cut_text(text: str, most: int | None) -> tuple[str, bool]:
    """Returns as many whole characters of a text as have at most so many bytes of UTF-8, and whether they are not all.

    `keras_transformer.text.graph.cut_strings` does the same in a TensorFlow graph.
    """
    if most is None or 4 * len(text) <= most:
        return text, False
    encoded = text.encode()
    return encoded[:most].decode("utf-8", "ignore"), len(encoded) > most
