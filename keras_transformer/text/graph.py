"""A SentencePiece model as TensorFlow ops, for text in and text out of a SavedModel. Imported when it is first needed."""

import hashlib

import tensorflow as tf  # noqa: TID251
import tensorflow_text as tf_text  # noqa: TID251

from keras_transformer.text.piece_model import PieceModel


class GraphTokenizer:
    """The same ids and the same text as in Python, from ops that TensorFlow Serving has.

    Each graph gets the SentencePiece model as a node of its own, so there is nothing that an export would have to track. No
    input makes it fail: what is not UTF-8 becomes U+FFFD, and ids outside the vocabulary are left out.

    Args:
        serialized: The model as SentencePiece writes it to a file.
        model: The same, read.
    """

    def __init__(self, serialized: bytes, model: PieceModel):
        self.serialized = serialized
        self.name = f"sentencepiece_{hashlib.sha256(serialized).hexdigest()}"
        self.surfaces = tuple(model.surfaces)
        self.pieces = tuple(piece.piece for piece in model.proto.pieces)
        self.end_id = model.special_ids["end"]
        self.added_space = {"start": "^ ", "end": " $", "": ""}[model.added_space]
        self.encode = tf.function(self.encode, input_signature=[tf.TensorSpec([None], tf.string)])

    def encode(self, strings):
        """Turns a string tensor `(B,)` into a ragged int32 tensor `(B, None)`."""
        # Made here, while the function is traced: a model that is made eagerly belongs to an op in a cache that
        # `tf.random.set_seed` clears. Nodes of one name share a model, so the name must tell models apart.
        sentencepiece = tf_text.SentencepieceTokenizer(model=self.serialized, name=self.name)
        return sentencepiece.tokenize(valid_utf8(strings))

    def decode(self, ids):
        """Turns an integer tensor `(B, T)`, dense or ragged, into a string tensor `(B,)`."""
        if isinstance(ids, tf.RaggedTensor):
            ids = ids.to_tensor(default_value=self.end_id)
        ids = tf.convert_to_tensor(ids)  # (B, T)
        ended = tf.cumsum(tf.cast(ids == self.end_id, tf.int32), axis=1) > 0
        is_piece = ~ended & (ids >= 0) & (ids < len(self.surfaces))
        surfaces = look_up(self.surfaces, ids, is_piece)  # (B, T)
        texts = valid_utf8(tf.strings.reduce_join(surfaces, axis=1))  # (B,)
        return tf.strings.regex_replace(texts, self.added_space, "", replace_global=False) if self.added_space else texts

    def tokens(self, ids):
        """Turns an integer tensor into a string tensor of pieces, empty where an id is none."""
        ids = tf.convert_to_tensor(ids)
        return look_up(self.pieces, ids, (ids >= 0) & (ids < len(self.pieces)))


def look_up(strings: tuple, ids, is_wanted):
    """Takes one of the strings for each id that is wanted, and an empty one for the others."""
    return tf.where(is_wanted, tf.gather(tf.constant(strings), tf.where(is_wanted, ids, tf.zeros_like(ids))), "")


def cut_strings(strings, most: int | None):
    """Does what `keras_transformer.text.cutting.cut_text` does to valid Unicode.

    Args:
        strings: String tensor `(B,)` of any bytes.
        most: The most bytes of UTF-8 of each, or `None`.

    Returns:
        A string tensor `(B,)`, valid UTF-8, and a boolean tensor `(B,)`.
    """
    if most is None:
        return strings, tf.zeros_like(strings, "bool")
    # Replacing makes no text shorter, and a character has at most four bytes: these are enough for all that stay.
    strings = valid_utf8(tf.strings.substr(strings, 0, most + 3))
    beginnings = tf.strings.substr(strings, 0, most)
    return tf.strings.unicode_transcode(beginnings, "UTF-8", "UTF-8", errors="ignore"), tf.strings.length(strings) > most


def valid_utf8(strings):
    """Replaces what is not valid UTF-8 by U+FFFD, as Python does."""
    return tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", errors="replace")
