"""Strings to ids and back."""

import hashlib
import os
import random
import threading
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
import sentencepiece

from keras_transformer.text.files import read_bytes, write_bytes
from keras_transformer.text.lines import Lines
from keras_transformer.text.piece_model import SPACE_MARK, read_model, rename_special_pieces
from keras_transformer.text.sampling import SubwordSampling, make_sampler
from keras_transformer.text.strings import clean_text, clean_texts, is_single
from keras_transformer.text.training import train_model

Texts = str | bytes | Sequence[str | bytes]


class Tokenizer:
    """A SentencePiece vocabulary: cuts text into pieces, numbers them, and puts numbered pieces together again.

    Characters without a piece are spelled in bytes, so no text is unknown to a tokenizer trained here:
    `decode(encode(text)) == normalize(text)`. What is not valid Unicode becomes U+FFFD first. `graph_encode` and `graph_decode`
    give the same ids and the same text inside a TensorFlow graph.

    `train` and `load` make tokenizers; the constructor takes the content of a model file. A tokenizer never changes; threads
    can share one, and a pickled one is as large as its file.

    Args:
        model: A model as SentencePiece writes it to a file.

    Example:

    >>> lines = ["the cat sat on the mat", "the dog sat on the log", "the cat saw the dog"] * 20
    >>> tokenizer = Tokenizer.train(lines, vocabulary_size=290)
    >>> tokenizer.tokens("the cat")
    ['▁the', '▁cat']
    >>> tokenizer.decode(tokenizer.encode("the  crème"))
    'the crème'
    """

    has_graph_form = True

    def __init__(self, model: bytes):
        self._serialized = bytes(model)
        self._model = read_model(self._serialized)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=self._serialized)
        self._sampler = lru_cache(8)(lambda sampling: make_sampler(self._model, sampling))
        self._graph = None
        self._graph_lock = threading.Lock()

    @classmethod
    def train(
        cls,
        data: Lines,
        vocabulary_size: int = 8000,
        *,
        model: str = "bpe",
        normalization: str = "nfc",
        character_coverage: float = 0.9995,
        max_lines: int = 2_000_000,
        seed: int = 0,
        progress: bool = True,
    ) -> "Tokenizer":
        """Trains a tokenizer; the same text and options give the same one, byte by byte.

        Args:
            data: A text file (`.gz` too), a list of such files, or an iterable of lines. The strings of a list are taken for
                files if one of them names an existing file or none of them contains a blank; an iterator leaves no doubt.
            vocabulary_size: Number of pieces, with the 4 special ones and 256 bytes. If the text has not that many in it, the
                tokenizer gets fewer, and a warning says so.
            model: `"bpe"` (byte pair encoding) or `"unigram"`.
            normalization: What is done to a text before it is cut, in training, encoding and serving alike.
                `"nfc"` composes characters that are spelled in several (a letter and its accent), turns each run of blanks into
                one space, takes those around the text away, and drops control characters, soft hyphens and other invisible
                ones. Nothing a reader could see is changed, which suits translations best.
                `"nfkc"` also folds look-alikes as SentencePiece's own default does: `m²` becomes `m2`, `…` becomes `...`,
                full-width letters become usual ones; translations then can never contain those.
                `"nfkc_casefold"` makes all letters small as well.
                `"identity"` keeps every character, blanks included, but for U+2581, which stands for a space.
            character_coverage: Share of the text's characters that get pieces; the rarest are left to their bytes.
            max_lines: How many lines to train on at most. More are sampled evenly.
            seed: Decides which lines are sampled.
            progress: Whether to show what goes on if the standard error stream is a terminal.

        Returns:
            The tokenizer. Its ids 0, 1, 2, 3 are pad, start, end and unknown.
        """
        return cls(train_model(data, vocabulary_size, model, normalization, character_coverage, max_lines, seed, progress))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike,
        *,
        pad: str | None = None,
        start: str | None = None,
        end: str | None = None,
        unknown: str | None = None,
    ) -> "Tokenizer":
        """Loads a tokenizer that `save` wrote, or any SentencePiece model.

        Args:
            path: The file.
            pad, start, end, unknown: Pieces of the model that are to stand for these. Needed for models without such pieces of
                their own: T5's, for example, has no start, and its decoder starts with `start="<pad>"`.

        Returns:
            The tokenizer.
        """
        serialized = read_bytes(path, "tokenizer")
        names = {"pad": pad, "start": start, "end": end, "unknown": unknown}
        serialized = rename_special_pieces(serialized, names, str(path))
        read_model(serialized, str(path))
        return cls(serialized)

    @property
    def serialized(self) -> bytes:
        """The SentencePiece model, as it stands in a file."""
        return self._serialized

    def save(self, path: str | os.PathLike):
        """Writes the tokenizer to one file, which every SentencePiece tool reads. An older file is replaced all at once."""
        write_bytes(path, self._serialized)

    @property
    def vocabulary_size(self) -> int:
        """Number of pieces; one more than the largest id."""
        return len(self._model.proto.pieces)

    @property
    def pad_id(self) -> int:
        """The id that fills up short rows of a batch."""
        return self._model.special_ids["pad"]

    @property
    def start_id(self) -> int:
        """The id a translation starts from."""
        return self._model.special_ids["start"]

    @property
    def end_id(self) -> int:
        """The id that ends a sentence."""
        return self._model.special_ids["end"]

    @property
    def unknown_id(self) -> int:
        """The id for what has no piece; never used by a tokenizer that has bytes."""
        return self._model.special_ids["unknown"]

    @property
    def source(self) -> "Tokenizer":
        """The tokenizer of source texts: this one."""
        return self

    @property
    def target(self) -> "Tokenizer":
        """The tokenizer of target texts: this one."""
        return self

    @property
    def fingerprint(self) -> str:
        """A hexadecimal digest of the model, for keys of caches."""
        return hashlib.sha256(self._serialized).hexdigest()

    def normalize(self, text: Texts) -> str | list[str]:
        """Returns what `decode(encode(text))` gives: the text as the tokenizer sees it.

        Args:
            text: A text, or several.

        Returns:
            The normalized text, or a list of them.
        """
        if not is_single(text):
            return [self.normalize(one) for one in text]
        return self._model.strip_added_space(self._processor.normalize(clean_text(text)).replace(SPACE_MARK, " "))

    def encode(self, text: Texts, sample: SubwordSampling | None = None, seed: int = 0) -> list[int] | list[list[int]]:
        """Turns text into ids, without start and end.

        Args:
            text: A text, or several.
            sample: Draws one of the many ways to cut a text instead of the usual one, for regularization in training.
            seed: With `sample`, decides what is drawn: the same texts, `sample` and `seed` give the same ids everywhere.

        Returns:
            A list of ids, or a list of such lists.
        """
        if is_single(text):
            return self.encode([text], sample, seed)[0]
        if sample is not None:
            return self._sample(clean_texts(text), sample, seed)
        return self._processor.encode(clean_texts(text), num_threads=1)

    def _sample(self, texts: list[str], sample: SubwordSampling, seed: int) -> list[list[int]]:
        sampler = self._sampler(sample)
        chance = random.Random(seed)
        return [sampler.encode(self._processor.normalize(text), chance) for text in texts]

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Turns many texts into ids, as compactly as they can be stored.

        Args:
            texts: The texts.
            num_threads: How many threads work on them. Defaults to one for each core.

        Returns:
            A tuple: the ids of all texts, one after the other, and the number of ids of each text; both int32.
        """
        rows = self._processor.encode(clean_texts(texts), num_threads=num_threads or os.cpu_count() or 1)
        lengths = np.fromiter(map(len, rows), np.int32, len(rows))
        ids = np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum()))
        return ids, lengths

    def decode(self, ids) -> str | list[str]:
        """Turns ids into text.

        Args:
            ids: Ids of one text, or a batch: lists or arrays. Pad and start are left out, and everything from the first end on.

        Returns:
            The text, or a list of texts. Bytes that make no character become U+FFFD.
        """
        if is_batch(ids):
            return [self.decode(row) for row in ids]
        surfaces = self._model.surfaces
        joined = b"".join(surfaces[id] for id in self._until_end(self._checked(ids)))
        return self._model.strip_added_space(joined.decode("utf-8", "replace"))

    def _checked(self, ids) -> list[int]:
        ids = np.asarray(ids)
        if ids.size and not np.issubdtype(ids.dtype, np.integer):
            raise ValueError(f"Ids must be integers. Received: {ids.dtype} values {ids.ravel()[:5].tolist()}")
        if ids.size and not 0 <= ids.min() <= ids.max() < self.vocabulary_size:
            raise ValueError(
                f"Ids must be from 0 to {self.vocabulary_size - 1}. Received: ids from {ids.min()} to {ids.max()}. Do they "
                f"come from another tokenizer?"
            )
        return ids.tolist()

    def _until_end(self, ids: list[int]) -> list[int]:
        return ids[: ids.index(self.end_id)] if self.end_id in ids else ids

    def tokens(self, text_or_ids) -> list:
        """Returns the pieces of a text or of ids, readable: `▁` is a space, `<0xE2>` a byte.

        Args:
            text_or_ids: A text, several texts, ids, or a batch of ids. Special ids are shown too.

        Returns:
            A list of pieces, or a list of such lists.
        """
        if is_single(text_or_ids):
            return self.tokens(self.encode(text_or_ids))
        if is_batch(text_or_ids) or (len(text_or_ids) and is_single(text_or_ids[0])):
            return [self.tokens(row) for row in text_or_ids]
        return [self._model.proto.pieces[id].piece for id in self._checked(text_or_ids)]

    def _in_graph(self):
        with self._graph_lock:
            if self._graph is None:
                from keras_transformer.text.graph import GraphTokenizer

                self._graph = GraphTokenizer(self._serialized, self._model)
        return self._graph

    def graph_encode(self, strings):
        """Does what `encode` does, with TensorFlow ops.

        Args:
            strings: String tensor `(B,)`.

        Returns:
            A ragged int32 tensor `(B, None)`.
        """
        return self._in_graph().encode(strings)

    def graph_decode(self, ids):
        """Does what `decode` does, with TensorFlow ops; ids outside the vocabulary are left out instead of being refused.

        Args:
            ids: Integer tensor `(B, T)`, dense or ragged.

        Returns:
            A string tensor `(B,)`, valid UTF-8.
        """
        return self._in_graph().decode(ids)

    def graph_tokens(self, ids):
        """Does what `tokens` does for ids, with TensorFlow ops.

        Args:
            ids: Integer tensor of any shape; ids outside the vocabulary give empty strings.

        Returns:
            A string tensor of the same shape.
        """
        return self._in_graph().tokens(ids)

    def __reduce__(self):
        return type(self), (self._serialized,)

    def __eq__(self, other):
        return isinstance(other, Tokenizer) and self._serialized == other._serialized

    def __hash__(self):
        return hash(self._serialized)

    def __repr__(self):
        kind = "bpe" if self._model.is_bpe else "unigram"
        return (
            f"Tokenizer(vocabulary_size={self.vocabulary_size}, model={kind!r}, "
            f"normalization={self._model.proto.normalizer_spec.name!r}, fingerprint={self.fingerprint[:8]!r})"
        )


def is_batch(ids) -> bool:
    """Tells rows of ids from a single row."""
    if hasattr(ids, "ndim"):
        return ids.ndim > 1
    return len(ids) > 0 and hasattr(ids[0], "__len__") and not is_single(ids[0])
