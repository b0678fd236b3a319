"""Two vocabularies, one for each language."""

import hashlib
import io
import os
import zipfile

from keras_transformer.text.files import read_bytes, write_bytes
from keras_transformer.text.marian import VOCABULARY_FILE, MarianTokenizer
from keras_transformer.text.protocol import TokenizerProtocol
from keras_transformer.text.tokenizer import Tokenizer

_SOURCE_FILE = "source.model"
_TARGET_FILE = "target.model"
_ARCHIVE = b"PK"  # What every zip archive begins with, and no SentencePiece model.


class TokenizerPair:
    """A tokenizer for source texts and another for target texts.

    A single `Tokenizer` has `source` and `target` too, so code that asks for them works with either.

    Args:
        source: The tokenizer of source texts.
        target: The tokenizer of target texts. Its pad id must be that of the source, as a model has only one.

    Example:

    >>> english = Tokenizer.train(["the cat sat", "the dog sat"] * 9, vocabulary_size=275)
    >>> german = Tokenizer.train(["die Katze saß", "der Hund saß"] * 9, vocabulary_size=280)
    >>> pair = TokenizerPair(english, german)
    >>> pair.target.decode(pair.target.encode("die Katze"))
    'die Katze'
    """

    def __init__(self, source: TokenizerProtocol, target: TokenizerProtocol):
        for name, tokenizer in {"source": source, "target": target}.items():
            if not isinstance(tokenizer, TokenizerProtocol):
                raise TypeError(
                    f"`{name}` must be a tokenizer: a `Tokenizer`, or what `as_tokenizer` makes of another. "
                    f"Received: {name}={tokenizer!r:.200}"
                )
        if source.pad_id != target.pad_id:
            raise ValueError(
                f"Both tokenizers must pad with the same id. Received: source.pad_id={source.pad_id}, "
                f"target.pad_id={target.pad_id}"
            )
        self.source = source
        self.target = target

    @property
    def has_graph_form(self) -> bool:
        """Whether both tokenizers run in a TensorFlow graph."""
        return self.source.has_graph_form and self.target.has_graph_form

    @property
    def fingerprint(self) -> str:
        """A hexadecimal digest of both tokenizers, for keys of caches."""
        return hashlib.sha256(f"{self.source.fingerprint} {self.target.fingerprint}".encode()).hexdigest()

    def save(self, path: str | os.PathLike):
        """Writes both tokenizers to one file, a zip archive of what each would write. The same pair gives the same file."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
            for name, tokenizer in {_SOURCE_FILE: self.source, _TARGET_FILE: self.target}.items():
                archive.writestr(zipfile.ZipInfo(name), serialized(tokenizer))  # (ZipInfo's date is always 1980.)
        write_bytes(path, content.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike) -> "TokenizerPair":
        """Loads a pair that `save` wrote."""
        content = read_bytes(path, "tokenizer pair")
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                models = [archive.read(name) for name in (_SOURCE_FILE, _TARGET_FILE)]
        except (zipfile.BadZipFile, KeyError, NotImplementedError, EOFError) as error:
            raise ValueError(
                f"{path}: not a whole file of `TokenizerPair.save` ({error}). Was it cut off while it was copied, or does "
                f"it hold a single tokenizer?"
            ) from error
        return cls(*(tokenizer_of(model, str(path)) for model in models))

    def __eq__(self, other):
        return isinstance(other, TokenizerPair) and (self.source, self.target) == (other.source, other.target)

    def __hash__(self):
        return hash((self.source, self.target))

    def __repr__(self):
        return f"TokenizerPair(source={self.source!r}, target={self.target!r})"


def serialized(tokenizer: TokenizerProtocol) -> bytes:
    """Returns the content of a tokenizer's file."""
    if not isinstance(tokenizer, Tokenizer | MarianTokenizer):
        raise ValueError(
            f"Only a pair of `Tokenizer`s can be saved; save others with the library they are from. Received: {tokenizer!r}"
        )
    return tokenizer.serialized


def tokenizer_of(content: bytes, origin: str) -> Tokenizer | MarianTokenizer:
    """Makes a tokenizer of the content of its file."""
    return MarianTokenizer.from_serialized(content, origin) if content.startswith(_ARCHIVE) else Tokenizer(content)


def load_tokenizer(path: str | os.PathLike) -> Tokenizer | TokenizerPair | MarianTokenizer:
    """Loads what `save` of a `Tokenizer`, a `TokenizerPair` or a `MarianTokenizer` wrote, whichever it was.

    Args:
        path: The file.

    Returns:
        A tokenizer or a pair of them.
    """
    content = read_bytes(path, "tokenizer")
    if not content.startswith(_ARCHIVE):
        return Tokenizer.load(path)
    return (MarianTokenizer if VOCABULARY_FILE in names_in(content) else TokenizerPair).load(path)


def names_in(archive: bytes) -> list[str]:
    """Returns the names of the files in a zip archive; none, if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            return opened.namelist()
    except zipfile.BadZipFile:
        return []
