"""The tokens of a Marian vocabulary, and how decoded text is tidied up."""

import re

from keras_transformer.text.strings import clean_text

LANGUAGE_CODE = re.compile(">>.*?<<", re.DOTALL)
# What is taken out of a decoded text, if it is to be tidied up.
TIDIED = {
    " .": ".",
    " ?": "?",
    " !": "!",
    " ,": ",",
    " ' ": "'",
    " n't": "n't",
    " 'm": "'m",
    " 's": "'s",
    " 've": "'ve",
    " 're": "'re",
}


def numbered(tokens: list[str]) -> dict[str, int]:
    """Returns the id of each token; each must be there once, as text that can be written."""
    ids = {}
    for id, token in enumerate(tokens):
        if not isinstance(token, str) or clean_text(token) != token:
            raise ValueError(f"Tokens must be strings of valid Unicode. Received: {token!a} for id {id}")
        if token in ids:
            raise ValueError(f"Each token must have one id. Received: {token!r} for the ids {ids[token]} and {id}")
        ids[token] = id
    return ids


def check_names(names: dict[str, str], ids: dict[str, int]):
    """Raises a `ValueError` if a special token is not among the tokens, or has no name."""
    for name, token in names.items():
        if not token or token not in ids:
            raise ValueError(f"The token for {name} is not among the {len(ids)} tokens. Received: {name}={token!r}")


def tidied(text: str) -> str:
    """Takes away spaces before punctuation and English contractions."""
    for old, new in TIDIED.items():
        text = text.replace(old, new)
    return text
