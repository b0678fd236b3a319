"""The record of where a model looked."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keras_transformer.attention import page
from keras_transformer.attention.words import join_pieces, mean_queries, sum_keys, text_of, word_groups
from keras_transformer.json_files import parse_json
from keras_transformer.text.files import read_bytes, write_bytes

KINDS = ("encoder_self", "decoder_self", "cross")
TOKENS = ("source_tokens", "target_tokens", "output_tokens")
SIDES = {  # Whose tokens the rows and the columns of an array belong to.
    "encoder_self": ("source_tokens", "source_tokens"),
    "decoder_self": ("output_tokens", "target_tokens"),
    "cross": ("output_tokens", "source_tokens"),
}
FORMAT = 1


@dataclass(frozen=True, eq=False, repr=False)
class Attention:
    """Where every head of every layer looked, for one sentence and one translation. `Translator.attend` makes it.

    The decoder reads a token and predicts the next one. Its rows are named by what they predict, `output_tokens`, and its keys
    by what it has read, `target_tokens`: the row of a word shows what the model looked at to write that word.

    | array | rows (queries) | columns (keys) |
    |---|---|---|
    | `encoder_self` | `source_tokens` | `source_tokens` |
    | `decoder_self` | `output_tokens` | `target_tokens` |
    | `cross` | `output_tokens` | `source_tokens` |

    Args:
        source_tokens: Pieces of the source and its end.
        target_tokens: The start and the pieces of the translation, what the decoder reads.
        output_tokens: The pieces of the translation and its end, what the decoder writes.
        encoder_self, decoder_self, cross: Float32 arrays `(layers, heads, queries, keys)`, each with its own number of layers
            and heads. Rows sum to 1.

    Example:

    >>> half = np.full((1, 2, 2, 2), 0.5)
    >>> attention = Attention(["▁a", "</s>"], ["<s>", "▁b"], ["▁b", "</s>"], half, half, half)
    >>> attention.average().cross.shape
    (1, 1, 2, 2)
    """

    source_tokens: list[str]
    target_tokens: list[str]
    output_tokens: list[str]
    encoder_self: np.ndarray
    decoder_self: np.ndarray
    cross: np.ndarray

    def __post_init__(self):
        for name in TOKENS:
            object.__setattr__(self, name, [str(token) for token in getattr(self, name)])
        for kind in KINDS:
            weights = np.asarray(getattr(self, kind), "float32")
            wanted = len(self.query_tokens(kind)), len(self.key_tokens(kind))
            if weights.ndim != 4 or weights.shape[2:] != wanted or not weights.size:
                queries, keys = SIDES[kind]
                raise ValueError(
                    f"`{kind}` must have the shape (layers, heads, {wanted[0]}, {wanted[1]}), for there are {wanted[0]} "
                    f"{queries} and {wanted[1]} {keys}. Received: an array of shape {weights.shape}"
                )
            object.__setattr__(self, kind, weights)

    def __getitem__(self, kind: str) -> np.ndarray:
        """Returns the array of a kind, `(layers, heads, queries, keys)`."""
        if kind not in KINDS:
            raise ValueError(f"The kind of attention must be one of {KINDS}. Received: {kind!r}")
        return getattr(self, kind)

    def query_tokens(self, kind: str) -> list[str]:
        """Returns the tokens that the rows of an array belong to."""
        return getattr(self, SIDES[kind][0])

    def key_tokens(self, kind: str) -> list[str]:
        """Returns the tokens that the columns of an array belong to."""
        return getattr(self, SIDES[kind][1])

    @property
    def source(self) -> str:
        """The source as text."""
        return text_of(self.source_tokens[:-1])

    @property
    def target(self) -> str:
        """The translation as text."""
        return text_of(self.target_tokens[1:])

    def average(self) -> "Attention":
        """Returns the average over the heads of each layer, as a record with one head."""
        return self._changed(lambda kind, weights: weights.mean(axis=1, keepdims=True))

    def words(self) -> "Attention":
        """Returns the same record with the pieces of each word joined.

        What a word is looked at is the sum over its pieces; where it looks, the mean over them. Rows still sum to 1.
        """
        groups = {name: word_groups(getattr(self, name)) for name in TOKENS}
        tokens = {
            name: [join_pieces([getattr(self, name)[place] for place in group]) for group in words]
            for name, words in groups.items()
        }

        def join(kind: str, weights: np.ndarray) -> np.ndarray:
            queries, keys = SIDES[kind]
            return mean_queries(sum_keys(weights, groups[keys]), groups[queries])

        return self._changed(join, **tokens)

    def _changed(self, change: Callable[[str, np.ndarray], np.ndarray], **tokens) -> "Attention":
        """Returns a record with other arrays, and perhaps other tokens."""
        tokens = {name: tokens.get(name, getattr(self, name)) for name in TOKENS}
        return Attention(**tokens, **{kind: change(kind, self[kind]) for kind in KINDS})

    # Files.

    def save(self, path: str | os.PathLike):
        """Writes the record to an `.npz` file, which numpy reads without pickle.

        Args:
            path: The file.
        """
        tokens = {name: getattr(self, name) for name in TOKENS}
        header = json.dumps({"format": FORMAT, **tokens}).encode()
        content = io.BytesIO()
        # Text as bytes: numpy's own strings lose a NUL at their end.
        np.savez_compressed(content, header=np.frombuffer(header, "uint8"), **{kind: self[kind] for kind in KINDS})
        write_bytes(path, content.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Attention":
        """Loads what `save` wrote. Nothing in the file is executed.

        Args:
            path: The file.

        Returns:
            The record.
        """
        content = io.BytesIO(read_bytes(path, "record of attention"))
        try:
            with np.load(content, allow_pickle=False) as file:
                header = parse_json(bytes(file["header"]), "its header")
                arrays = {kind: file[kind] for kind in KINDS}
            header.pop("format")
            return cls(**header, **arrays)
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is not a whole record of attention, as `Attention.save` writes it: {error}") from error

    # The page.

    def save_html(self, path: str | os.PathLike, title: str = "Attention"):
        """Writes one page that shows all of it in any browser, without the network.

        Args:
            path: The file, such as `attention.html`.
            title: Title of the page.
        """
        write_bytes(path, page.attention_page(self, title).encode())

    def _repr_html_(self) -> str:
        return page.notebook_frame(page.attention_page(self))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{kind} {self[kind].shape}" for kind in KINDS)
        return f"Attention({len(self.source_tokens)} source tokens, {len(self.output_tokens)} output tokens, {shapes})"
