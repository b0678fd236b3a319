"""A SentencePiece model, read: its pieces, its special ids and how its text is put together again."""

from dataclasses import dataclass
from functools import cached_property

import sentencepiece
from google.protobuf.message import DecodeError
from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec

SPACE_MARK = "\u2581"

_Piece = ModelProto.SentencePiece
_FIELDS = {"pad": "pad_piece", "start": "bos_piece", "end": "eos_piece", "unknown": "unk_piece"}


@dataclass(frozen=True)
class PieceModel:
    """What can be known from a SentencePiece model without running it.

    Args:
        proto: The parsed model.
        special_ids: The ids of `"pad"`, `"start"`, `"end"` and `"unknown"`.
    """

    proto: ModelProto
    special_ids: dict[str, int]

    @property
    def is_bpe(self) -> bool:
        """Whether pieces are made by merging; otherwise the likeliest pieces are chosen."""
        return self.proto.trainer_spec.model_type == TrainerSpec.BPE

    @cached_property
    def vocabulary(self) -> dict[str, tuple[int, float]]:
        """The pieces that text can be cut into, with their ids and scores."""
        kinds = (_Piece.NORMAL, _Piece.USER_DEFINED)
        return {piece.piece: (id, piece.score) for id, piece in enumerate(self.proto.pieces) if piece.type in kinds}

    @cached_property
    def byte_ids(self) -> dict[int, int]:
        """The ids of the pieces that stand for single bytes."""
        return {byte_value(piece): id for id, piece in enumerate(self.proto.pieces) if piece.type == _Piece.BYTE}

    @property
    def has_user_defined(self) -> bool:
        """Whether there are pieces that are cut out of a text before all others."""
        return any(piece.type == _Piece.USER_DEFINED for piece in self.proto.pieces)

    @cached_property
    def surfaces(self) -> list[bytes]:
        """What each id adds to a decoded text, before the space at its beginning is taken off."""
        surfaces = [self.surface(piece) for piece in self.proto.pieces]
        for name in ("pad", "start", "end"):
            surfaces[self.special_ids[name]] = b""
        return surfaces

    def surface(self, piece) -> bytes:
        """Returns what a piece adds to a decoded text."""
        if piece.type == _Piece.CONTROL:
            return b""
        if piece.type == _Piece.BYTE:
            return bytes([byte_value(piece)])
        if piece.type == _Piece.UNKNOWN:
            return self.proto.trainer_spec.unk_surface.encode()
        return piece.piece.replace(SPACE_MARK, " ").encode()

    @property
    def added_space(self) -> str:
        """Where encoding adds a space that decoding takes away again: `"start"`, `"end"` or `""`."""
        if not self.proto.normalizer_spec.add_dummy_prefix:
            return ""
        return "end" if self.proto.trainer_spec.treat_whitespace_as_suffix else "start"

    def strip_added_space(self, text: str) -> str:
        """Takes away the space that encoding added."""
        if self.added_space == "start":
            return text.removeprefix(" ")
        return text.removesuffix(" ") if self.added_space == "end" else text


def byte_value(piece) -> int:
    """Returns the byte that a piece such as `<0x0A>` stands for."""
    return int(piece.piece[1:-1], 16)


def read_model(model: bytes, origin: str = "the given bytes") -> PieceModel:
    """Parses a SentencePiece model and finds its special ids.

    Args:
        model: The model as SentencePiece writes it to a file.
        origin: Where it came from, for error messages.

    Returns:
        The parsed model.
    """
    proto = parse_model(model, origin)
    return PieceModel(proto, find_special_ids(proto, origin))


def parse_model(model: bytes, origin: str) -> ModelProto:
    """Parses a SentencePiece model, or raises a `ValueError` if it is not a whole one."""
    complaint = (
        f"{origin}: not a whole SentencePiece model. Was it cut off while it was copied, or is it a file of another kind?"
    )
    try:
        proto = ModelProto.FromString(model)
        sentencepiece.SentencePieceProcessor(model_proto=model or b"\0")
    except (DecodeError, RuntimeError) as error:
        raise ValueError(complaint) from error
    # A model is written pieces first; a file that ends between two fields still parses.
    if not (proto.pieces and proto.HasField("trainer_spec") and proto.HasField("normalizer_spec")):
        raise ValueError(complaint)
    if proto.HasField("denormalizer_spec") and proto.denormalizer_spec.precompiled_charsmap:
        raise ValueError(f"{origin}: the model rewrites decoded text by rules of its own, which is not supported")
    return proto


def find_special_ids(proto: ModelProto, origin: str) -> dict[str, int]:
    """Finds the ids of the special pieces by the names that the model has for them."""
    places = {piece.piece: id for id, piece in enumerate(proto.pieces)}
    names = {name: getattr(proto.trainer_spec, field) for name, field in _FIELDS.items()}
    missing = [name for name, piece in names.items() if piece not in places]
    if missing:
        first = ", ".join(repr(piece.piece) for piece in proto.pieces[:4])
        raise ValueError(
            f"{origin}: the model has no piece for {', '.join(missing)}. Name one of its pieces for each, for example "
            f'`Tokenizer.load(path, {missing[0]}="{proto.pieces[0].piece}")`. Its first pieces are {first}'
        )
    return {name: places[piece] for name, piece in names.items()}


def rename_special_pieces(model: bytes, names: dict[str, str | None], origin: str) -> bytes:
    """Lets pieces that a model has stand for pad, start, end or unknown.

    Args:
        model: The model as SentencePiece writes it to a file.
        names: The pieces for `"pad"`, `"start"`, `"end"` and `"unknown"`; `None` leaves things as they are.
        origin: Where the model came from, for error messages.

    Returns:
        The model with the names written into it.
    """
    chosen = {name: piece for name, piece in names.items() if piece is not None}
    if not chosen:
        return model
    try:
        proto = ModelProto.FromString(model)
    except DecodeError:
        return model  # For `read_model` to complain about.
    places = {piece.piece: id for id, piece in enumerate(proto.pieces)}
    for name, piece in chosen.items():
        if piece not in places:
            raise ValueError(f"{origin}: the model has no piece {piece!r} that could stand for {name}")
        setattr(proto.trainer_spec, _FIELDS[name], piece)
        setattr(proto.trainer_spec, _FIELDS[name].replace("_piece", "_id"), places[piece])
    return proto.SerializeToString(deterministic=True)
