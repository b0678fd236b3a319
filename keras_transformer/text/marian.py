"""Strings to ids and back as Marian models do it: pieces of SentencePiece, numbered by a vocabulary of its own."""

import hashlib
import io
import json
import os
import re
import threading
import zipfile
from collections.abc import Sequence
from itertools import chain

import numpy as np
import sentencepiece

from keras_transformer.json_files import parse_json
from keras_transformer.text.files import read_bytes, write_bytes
from keras_transformer.text.marian_tokens import LANGUAGE_CODE, check_names, numbered, tidied
from keras_transformer.text.piece_model import SPACE_MARK, byte_value, parse_model
from keras_transformer.text.strings import clean_texts, is_single
from keras_transformer.text.tokenizer import Texts, is_batch

MODEL_FILE, VOCABULARY_FILE = "sentencepiece.model", "marian.json"


class MarianTokenizer:
    """The tokenizer of one side of a Marian model.

    SentencePiece cuts a text into pieces, and a list of tokens numbers them. The list usually is that of both languages: a
    piece is looked up by its text, whichever model made it, and what is not in the list is unknown. A language code at the
    beginning, such as `>>deu<<`, is one token, and so are the names of the end, of padding and of the unknown, wherever they
    stand. All of this is what `MarianTokenizer` of Hugging Face does, id for id; punctuation is not normalized, for it does
    not do that either. What is not valid Unicode becomes U+FFFD first.

    Decoding leaves out the special tokens, the unknown included, and spaces around the text.

    Args:
        model: A model as SentencePiece writes it to a file.
        tokens: All tokens, by id.
        pad: The token that fills up short rows of a batch.
        end: The token that ends a sentence.
        unknown: The token for what is not among the tokens.
        start: The token a translation starts from. Defaults to that of padding.
        tidy: Whether decoding takes away spaces before punctuation and English contractions.

    Attributes:
        special_tokens: What stands for a token wherever it occurs in a text, longest first.

    Example:

    >>> from keras_transformer.text import Tokenizer
    >>> lines = ["the cat sat on the mat", "the dog sat on the log", "the cat saw the dog"] * 20
    >>> model = Tokenizer.train(lines, vocabulary_size=290).serialized
    >>> tokenizer = MarianTokenizer(model, ["</s>", "<unk>", ">>deu<<", "▁the", "▁cat", "▁sat", "<pad>"])
    >>> tokenizer.encode(">>deu<< the cat")
    [2, 3, 4]
    >>> tokenizer.decode([3, 4, 5, 0])
    'the cat sat'
    """

    has_graph_form = True

    def __init__(
        self,
        model: bytes,
        tokens: Sequence[str],
        *,
        pad: str = "<pad>",
        end: str = "</s>",
        unknown: str = "<unk>",
        start: str | None = None,
        tidy: bool = False,
    ):
        self._model, self._tokens, self._tidy = bytes(model), list(tokens), bool(tidy)
        self._names = {"pad": pad, "end": end, "unknown": unknown, "start": pad if start is None else start}
        parse_model(self._model, "The SentencePiece model")
        self._ids = numbered(self._tokens)
        check_names(self._names, self._ids)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=self._model)
        self.special_tokens = sorted({pad, end, unknown}, key=lambda name: (-len(name), name))
        self._special = re.compile(f"({'|'.join(map(re.escape, self.special_tokens))})")
        self._surfaces = [self._surface(token) for token in self._tokens]
        self._graph = None
        self._graph_lock = threading.Lock()

    def _surface(self, token: str) -> bytes:
        """Returns what a token adds to a decoded text."""
        piece = self._processor.piece_to_id(token)
        if token in self.special_tokens or self._processor.is_control(piece):
            return b""
        if self._processor.is_byte(piece):
            return bytes([byte_value(token)])
        return token.replace(SPACE_MARK, " ").encode()

    # === Files ===

    @property
    def serialized(self) -> bytes:
        """The content of a file that `save` writes: a zip archive, the same for the same tokenizer."""
        content = io.BytesIO()
        settings = {"tokens": self._tokens, "tidy": self._tidy, **self._names}
        files = {MODEL_FILE: self._model, VOCABULARY_FILE: json.dumps(settings, ensure_ascii=False).encode()}
        with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(name), data)  # (ZipInfo's date is always 1980.)
        return content.getvalue()

    @classmethod
    def from_serialized(cls, content: bytes, origin: str = "the given bytes") -> "MarianTokenizer":
        """Makes a tokenizer of what `serialized` returned."""
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                model, settings = archive.read(MODEL_FILE), parse_json(archive.read(VOCABULARY_FILE), VOCABULARY_FILE)
            return cls(model, settings.pop("tokens"), **settings)
        except (zipfile.BadZipFile, KeyError, NotImplementedError, EOFError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{origin}: not a whole file of `MarianTokenizer.save` ({error})") from error

    def save(self, path: str | os.PathLike):
        """Writes the tokenizer to one file. An older file is replaced all at once."""
        write_bytes(path, self.serialized)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "MarianTokenizer":
        """Loads a tokenizer that `save` wrote."""
        return cls.from_serialized(read_bytes(path, "tokenizer"), str(path))

    # === What the rest of the package asks of a tokenizer ===

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens; one more than the largest id."""
        return len(self._tokens)

    @property
    def pad_id(self) -> int:
        """The id that fills up short rows of a batch."""
        return self._ids[self._names["pad"]]

    @property
    def start_id(self) -> int:
        """The id a translation starts from."""
        return self._ids[self._names["start"]]

    @property
    def end_id(self) -> int:
        """The id that ends a sentence."""
        return self._ids[self._names["end"]]

    @property
    def unknown_id(self) -> int:
        """The id for what is not among the tokens."""
        return self._ids[self._names["unknown"]]

    @property
    def source(self) -> "MarianTokenizer":
        """The tokenizer of source texts: this one."""
        return self

    @property
    def target(self) -> "MarianTokenizer":
        """The tokenizer of target texts: this one."""
        return self

    @property
    def fingerprint(self) -> str:
        """A hexadecimal digest of model and tokens, for keys of caches."""
        return hashlib.sha256(self.serialized).hexdigest()

    @property
    def language_codes(self) -> list[str]:
        """The codes, such as `>>deu<<`, with which a text can say into which language it is to be translated."""
        return [token for token in self._tokens if LANGUAGE_CODE.fullmatch(token)]

    def encode(self, text: Texts) -> list[int] | list[list[int]]:
        """Turns text into ids, without start and end.

        Args:
            text: A text, or several.

        Returns:
            A list of ids, or a list of such lists.
        """
        if is_single(text):
            return self.encode([text])[0]
        return self._rows(text, num_threads=1)

    def encode_batch(self, texts: Sequence[str | bytes], num_threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Turns many texts into ids: those of all texts, one after the other, and the number of each text's; both int32."""
        rows = self._rows(texts, num_threads or os.cpu_count() or 1)
        lengths = np.fromiter(map(len, rows), np.int32, len(rows))
        return np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum())), lengths

    def _rows(self, texts: Sequence[str | bytes], num_threads: int) -> list[list[int]]:
        segments = [self._segments(text) for text in clean_texts(texts)]
        bodies = [body for row in segments for _, body in row]
        cut = iter(self._processor.encode(bodies, out_type=str, num_threads=num_threads))
        return [[id for head, _ in row for id in self._ids_of([*head, *next(cut)])] for row in segments]

    def _segments(self, text: str) -> list[tuple[list[str], str]]:
        """Cuts a text at what is a token as it stands: pairs of such a token, if there is one, and the text behind it."""
        segments = []
        for place, part in enumerate(self._special.split(text)):
            if place % 2:  # Every other one is a special token.
                segments.append(([part], ""))
                continue
            code = LANGUAGE_CODE.match(part)
            segments.append(([code.group()], part[code.end() :]) if code else ([], part))
        return segments

    def _ids_of(self, pieces: list[str]) -> list[int]:
        unknown = self.unknown_id
        return [self._ids.get(piece, unknown) for piece in pieces]

    def decode(self, ids) -> str | list[str]:
        """Turns ids into text.

        Args:
            ids: Ids of one text, or a batch: lists or arrays. Special ids are left out, and everything from the first end on.

        Returns:
            The text, or a list of texts.
        """
        if is_batch(ids):
            return [self.decode(row) for row in ids]
        ids = self._checked(ids)
        ids = ids[: ids.index(self.end_id)] if self.end_id in ids else ids
        text = b"".join(self._surfaces[id] for id in ids).decode("utf-8", "replace").strip()
        return tidied(text) if self._tidy else text

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

    def tokens(self, text_or_ids) -> list:
        """Returns the tokens of a text or of ids; see `Tokenizer.tokens`."""
        if is_single(text_or_ids):
            return self.tokens(self.encode(text_or_ids))
        if is_batch(text_or_ids) or (len(text_or_ids) and is_single(text_or_ids[0])):
            return [self.tokens(row) for row in text_or_ids]
        return [self._tokens[id] for id in self._checked(text_or_ids)]

    # === In a TensorFlow graph ===

    def _in_graph(self):
        with self._graph_lock:
            if self._graph is None:
                from keras_transformer.text.marian_graph import MarianGraph

                names = {name: getattr(self, f"{name}_id") for name in ("end", "unknown")}
                self._graph = MarianGraph(
                    self._model, self._tokens, self._surfaces, self.special_tokens, **names, tidy=self._tidy
                )
        return self._graph

    def graph_encode(self, strings):
        """Does what `encode` does, with TensorFlow ops: a string tensor `(B,)` becomes a ragged int32 tensor `(B, None)`."""
        return self._in_graph().encode(strings)

    def graph_decode(self, ids):
        """Does what `decode` does, with TensorFlow ops; ids outside the vocabulary are left out instead of being refused."""
        return self._in_graph().decode(ids)

    def graph_tokens(self, ids):
        """Does what `tokens` does for ids of any shape, with TensorFlow ops; ids outside the vocabulary give empty strings."""
        return self._in_graph().tokens(ids)

    def __reduce__(self):
        return type(self).from_serialized, (self.serialized,)

    def __eq__(self, other):
        return isinstance(other, MarianTokenizer) and self.serialized == other.serialized

    def __hash__(self):
        return hash(self.fingerprint)

    def __repr__(self):
        codes = f", language_codes={len(self.language_codes)}" if self.language_codes else ""
        return f"MarianTokenizer(vocabulary_size={self.vocabulary_size}{codes}, fingerprint={self.fingerprint[:8]!r})"
