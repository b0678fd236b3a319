"""Tokenizers of keras-hub in place of ours."""

import hashlib
import json
import sys

import numpy as np
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from keras_transformer.text.pair import TokenizerPair
from keras_transformer.text.piece_model import read_model, rename_special_pieces
from keras_transformer.text.protocol import TokenizerProtocol
from keras_transformer.text.strings import clean_texts, is_single
from keras_transformer.text.tokenizer import Tokenizer, is_batch

# Where keras-hub's tokenizers keep their special tokens, and what the plain ones usually have in their vocabularies.
_ATTRIBUTES = {
    "pad": ("pad_token",),
    "start": ("start_token", "cls_token"),
    "end": ("end_token", "sep_token"),
    "unknown": ("unknown_token", "oov_token"),
}
_USUAL = {
    "pad": ("[PAD]", "<pad>"),
    "start": ("[START]", "[BOS]", "[CLS]", "<s>", "<bos>", "<|startoftext|>"),
    "end": ("[END]", "[EOS]", "[SEP]", "</s>", "<eos>", "<|endoftext|>"),
    "unknown": ("[UNK]", "<unk>"),
}


def as_tokenizer(
    tokenizer, *, pad: str | None = None, start: str | None = None, end: str | None = None, unknown: str | None = None
) -> TokenizerProtocol | TokenizerPair:
    """Makes anything that can stand in for a `Tokenizer` into something with the same methods.

    A SentencePiece tokenizer of keras-hub becomes a `Tokenizer` with the same ids, which can be exported. Its other tokenizers
    (WordPiece, BytePair, ...) are wrapped; they train and translate, but cannot be exported.

    Args:
        tokenizer: A `Tokenizer`, a `TokenizerPair`, another object with their methods, or a tokenizer of keras-hub.
        pad, start, end, unknown: The tokens of a keras-hub tokenizer that stand for these, where it does not say so itself.

    Returns:
        The object itself, if it has all that is needed; otherwise a tokenizer made from it.
    """
    if isinstance(tokenizer, TokenizerProtocol | TokenizerPair):
        return tokenizer
    keras_hub = sys.modules.get("keras_hub")  # Whoever has a tokenizer of keras-hub has imported it.
    if keras_hub is None or not isinstance(tokenizer, keras_hub.tokenizers.Tokenizer):
        raise TypeError(missing_members(tokenizer))
    names = {"pad": pad, "start": start, "end": end, "unknown": unknown}
    if is_plain_sentencepiece(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        return from_sentencepiece(tokenizer, names)
    return KerasHubTokenizer(tokenizer, **names)


def missing_members(tokenizer) -> str:
    """Says what keeps an object from being a tokenizer."""
    members = [*TokenizerProtocol.__annotations__, *(name for name in vars(TokenizerProtocol) if name[0] != "_")]
    missing = [name for name in members if not hasattr(tokenizer, name)]
    return (
        f"A tokenizer must be a `Tokenizer`, a `TokenizerPair`, a tokenizer of keras-hub, or have the same members as a "
        f"`Tokenizer`. Received: {tokenizer!r:.100} of type {type(tokenizer).__name__}, which lacks {', '.join(missing)}"
    )


def is_plain_sentencepiece(tokenizer, cls: type) -> bool:
    """Tells whether a keras-hub tokenizer numbers pieces as its SentencePiece model does; some move the ids about."""
    if not isinstance(tokenizer, cls) or not isinstance(tokenizer.proto, bytes):
        return False
    return [piece.piece for piece in ModelProto.FromString(tokenizer.proto).pieces] == list(tokenizer.get_vocabulary())


def from_sentencepiece(tokenizer, names: dict[str, str | None]) -> Tokenizer:
    """Makes a `Tokenizer` from the model inside a keras-hub tokenizer."""
    origin = type(tokenizer).__name__
    names = {name: token or own_token(tokenizer, name) for name, token in names.items()}
    model = rename_special_pieces(tokenizer.proto, names, origin)
    read_model(model, origin)
    return Tokenizer(model)


def own_token(tokenizer, name: str) -> str | None:
    """Returns the token that a keras-hub tokenizer itself has for pad, start, end or unknown."""
    tokens = (getattr(tokenizer, attribute, None) for attribute in _ATTRIBUTES[name])
    return next((token for token in tokens if token is not None), None)


class KerasHubTokenizer:
    """A tokenizer of keras-hub that has no form in a TensorFlow graph which gives the same ids.

    Args:
        tokenizer: The tokenizer of keras-hub, with `sequence_length=None` and integers as its dtype.
        pad, start, end, unknown: Its tokens that stand for these, where it does not say so itself.
    """

    has_graph_form = False

    def __init__(
        self, tokenizer, pad: str | None = None, start: str | None = None, end: str | None = None, unknown: str | None = None
    ):
        check_options(tokenizer)
        self.tokenizer = tokenizer
        self.vocabulary_size = tokenizer.vocabulary_size()
        ids = special_ids(tokenizer, {"pad": pad, "start": start, "end": end, "unknown": unknown})
        self.pad_id, self.start_id, self.end_id, self.unknown_id = (ids[name] for name in ("pad", "start", "end", "unknown"))

    @property
    def source(self) -> "KerasHubTokenizer":
        """The tokenizer of source texts: this one."""
        return self

    @property
    def target(self) -> "KerasHubTokenizer":
        """The tokenizer of target texts: this one."""
        return self

    @property
    def fingerprint(self) -> str:
        """A hexadecimal digest of the vocabulary and the options, for keys of caches."""
        merges = [str(merge) for merge in getattr(self.tokenizer, "merges", None) or ()]
        options = {name: value for name, value in self.tokenizer.get_config().items() if name != "name"}
        parts = [type(self.tokenizer).__name__, options, list(self.tokenizer.get_vocabulary()), merges]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()

    def encode(self, text) -> list:
        """Turns a string into a list of ids, or several strings into a list of such lists."""
        if is_single(text):
            return self.encode([text])[0]
        # Text without content has no ids, whatever a tokenizer makes of it.
        return [
            np.asarray(self.tokenizer.tokenize(one)).astype(int).tolist() if one.strip() else [] for one in clean_texts(text)
        ]

    def decode(self, ids) -> str | list[str]:
        """Turns ids into a string, or a batch of ids into a list of strings."""
        if is_batch(ids):
            return [self.decode(row) for row in ids]
        ids = np.asarray(ids, dtype=int).tolist()
        if ids and not 0 <= min(ids) <= max(ids) < self.vocabulary_size:
            raise ValueError(f"Ids must be from 0 to {self.vocabulary_size - 1}. Received: ids from {min(ids)} to {max(ids)}")
        ids = ids[: ids.index(self.end_id)] if self.end_id in ids else ids
        ids = [id for id in ids if id not in (self.pad_id, self.start_id)]
        return as_string(self.tokenizer.detokenize(ids)) if ids else ""

    def graph_encode(self, strings):
        """Raises an error: there is no such form."""
        raise ValueError(self.no_graph_form())

    def graph_decode(self, ids):
        """Raises an error: there is no such form."""
        raise ValueError(self.no_graph_form())

    def no_graph_form(self) -> str:
        """Says why a model with this tokenizer cannot be exported."""
        return (
            f"A model with this tokenizer cannot be exported: keras-hub's {type(self.tokenizer).__name__} has no form in a "
            f"TensorFlow graph that is sure to give the same ids. Train a `keras_transformer.Tokenizer` instead, or use a "
            f"SentencePieceTokenizer"
        )

    def __repr__(self):
        return f"KerasHubTokenizer({type(self.tokenizer).__name__}, vocabulary_size={self.vocabulary_size})"


def check_options(tokenizer):
    """Refuses options of a keras-hub tokenizer that would pad, cut or spell out its ids."""
    if getattr(tokenizer, "sequence_length", None) is not None:
        raise ValueError(
            f"A tokenizer must not pad or cut texts itself; make it with sequence_length=None. "
            f"Received: sequence_length={tokenizer.sequence_length}"
        )
    if "int" not in tokenizer.compute_dtype:
        raise ValueError(
            f'A tokenizer must return ids; make it with dtype="int32". Received: dtype={tokenizer.compute_dtype!r}'
        )


def special_ids(tokenizer, names: dict[str, str | None]) -> dict[str, int]:
    """Finds the special ids of a keras-hub tokenizer."""
    vocabulary = set(tokenizer.get_vocabulary())
    chosen = {}
    for name, token in names.items():
        candidates = [token] if token is not None else [own_token(tokenizer, name), *_USUAL[name]]
        chosen[name] = next((candidate for candidate in candidates if candidate in vocabulary), None)
    missing = [name for name, token in chosen.items() if token is None]
    if missing:
        example = ", ".join(f'{name}="..."' for name in missing)
        raise ValueError(
            f"{type(tokenizer).__name__} does not say which of its tokens stand for {', '.join(missing)}. Name tokens of its "
            f"vocabulary: `as_tokenizer(tokenizer, {example})`"
        )
    return {name: int(tokenizer.token_to_id(token)) for name, token in chosen.items()}


def as_string(text) -> str:
    """Returns a Python string for what a keras-hub tokenizer calls text."""
    text = text.numpy() if hasattr(text, "numpy") else text
    text = text.item() if hasattr(text, "item") else text
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text
