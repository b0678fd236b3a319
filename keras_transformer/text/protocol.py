"""What the rest of the package asks of a tokenizer."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class TokenizerProtocol(Protocol):
    """One vocabulary: strings to ids and back, in Python and in a TensorFlow graph.

    Code that works with one vocabulary or with two asks for `source` and `target` and uses what it gets: a single tokenizer
    returns itself for both, a `TokenizerPair` returns its two tokenizers.

    Neither `encode` nor `graph_encode` adds the start and end ids; `decode` and `graph_decode` leave out pad and start, and
    everything from the first end id on.

    Attributes:
        vocabulary_size: One more than the largest id; what an embedding needs.
        pad_id, start_id, end_id, unknown_id: The ids that stand for no text.
        has_graph_form: Whether `graph_encode` and `graph_decode` work, so that a model can be exported with text in and out.
        fingerprint: A hexadecimal digest that changes whenever an id could.
        source, target: The tokenizer of either side.
    """

    has_graph_form: bool

    @property
    def vocabulary_size(self) -> int: ...  # noqa: D102

    @property
    def pad_id(self) -> int: ...  # noqa: D102

    @property
    def start_id(self) -> int: ...  # noqa: D102

    @property
    def end_id(self) -> int: ...  # noqa: D102

    @property
    def unknown_id(self) -> int: ...  # noqa: D102

    @property
    def fingerprint(self) -> str: ...  # noqa: D102

    @property
    def source(self) -> "TokenizerProtocol": ...  # noqa: D102

    @property
    def target(self) -> "TokenizerProtocol": ...  # noqa: D102

    def encode(self, text: str | bytes | Sequence) -> list:
        """Turns a string into a list of ids, or several strings into a list of such lists."""

    def decode(self, ids) -> str | list[str]:
        """Turns ids into a string, or a batch of ids into a list of strings."""

    def graph_encode(self, strings):
        """Turns a string tensor `(B,)` into a ragged int32 tensor `(B, None)`."""

    def graph_decode(self, ids):
        """Turns an integer tensor `(B, T)` into a string tensor `(B,)`."""
