"""A Marian tokenizer as TensorFlow ops, for text in and text out of a SavedModel. Imported when it is first needed."""

import hashlib
import re

import numpy as np
import tensorflow as tf  # noqa: TID251
import tensorflow_text as tf_text  # noqa: TID251

from keras_transformer.text.graph import look_up, valid_utf8
from keras_transformer.text.marian_tokens import TIDIED

CUT = b"\xff"  # Occurs in no valid UTF-8.
BLANK = r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"  # For `str.strip`.


class MarianGraph:
    """The same ids and the same text as in Python, from ops that TensorFlow Serving has.

    Nothing in it has a state or must be initialized, and no input makes it fail. Each of the three functions is traced once, so
    that the tokens stand once in a SavedModel, however many signatures use them.

    Args:
        model: The SentencePiece model.
        tokens: All tokens, by id.
        surfaces: What each of them adds to a decoded text.
        special_tokens: Those that are tokens wherever they occur in a text, longest first.
        end: Id of the end.
        unknown: Id of what is not among the tokens.
        tidy: Whether decoded text is tidied up.
    """

    def __init__(
        self,
        model: bytes,
        tokens: list[str],
        surfaces: list[bytes],
        special_tokens: list[str],
        end: int,
        unknown: int,
        tidy: bool,
    ):
        self.model, self.strings, self.surfaces = model, tuple(tokens), tuple(surfaces)
        self.name = f"sentencepiece_{hashlib.sha256(model).hexdigest()}"
        self.special_tokens, self.end, self.unknown, self.tidy = list(special_tokens), end, unknown, tidy
        self.table = StringTable(self.strings)
        self.encode = tf.function(self.encode, input_signature=[tf.TensorSpec([None], tf.string)])
        self.decode_rows = tf.function(self.decode_rows, input_signature=[tf.TensorSpec([None, None], tf.int64)])
        self.token_strings = tf.function(self.token_strings, input_signature=[tf.TensorSpec(None, tf.int64)])

    # === From text to ids ===

    def encode(self, strings):
        """Turns a string tensor `(B,)` into a ragged int32 tensor `(B, None)`."""
        parts = self.parts(valid_utf8(strings))  # (B, None)
        heads, has_head, bodies = self.heads_and_bodies(parts.flat_values)  # (P,)
        # Made while the function is traced; see `GraphTokenizer`.
        sentencepiece = tf_text.SentencepieceTokenizer(model=self.model, out_type=tf.string, name=f"{self.name}_pieces")
        pieces = sentencepiece.tokenize(bodies)  # (P, None)

        # A head stands before the pieces of its part: every piece moves behind the heads that were there before it.
        has_head = tf.cast(has_head, tf.int64)
        heads_until = tf.cumsum(has_head)  # (P,)
        piece_starts = tf.cast(pieces.row_starts(), tf.int64)
        head_places = tf.boolean_mask(piece_starts + heads_until - 1, has_head > 0)
        piece_places = tf.range(tf.size(pieces.flat_values, tf.int64)) + tf.gather(heads_until, pieces.value_rowids())
        ids = tf.concat([self.look_up_ids(tf.boolean_mask(heads, has_head > 0)), self.look_up_ids(pieces.flat_values)], axis=0)
        places = tf.concat([head_places, piece_places], axis=0)[:, None]
        ids = tf.scatter_nd(places, ids, tf.size(ids, tf.int64)[None])

        ends = tf.cumsum(tf.cast(pieces.row_lengths(), tf.int64) + has_head)
        splits = tf.gather(tf.concat([[0], ends], axis=0), parts.row_splits)
        return tf.RaggedTensor.from_row_splits(ids, splits, validate=False)

    def parts(self, strings):
        """Cuts strings `(B,)` into special tokens and what stands between them, `(B, None)`."""
        names = "|".join(map(re.escape, self.special_tokens))
        return tf.strings.split(tf.strings.regex_replace(strings, f"({names})", CUT + rb"\1" + CUT), sep=CUT)

    def heads_and_bodies(self, parts):
        """Takes apart what is a token as it stands, a special one or a language code, and the text behind it: all `(P,)`."""
        is_special = tf.reduce_any(parts[:, None] == tf.constant(self.special_tokens), axis=1)
        has_code = tf.strings.regex_full_match(parts, "(?s)>>.*?<<.*")
        codes = tf.strings.regex_replace(parts, r"(?s)^(>>.*?<<).*$", r"\1")
        behind = tf.strings.regex_replace(parts, "(?s)^>>.*?<<", "", replace_global=False)
        bodies = tf.where(is_special, "", tf.where(has_code, behind, parts))
        return tf.where(is_special, parts, codes), is_special | has_code, bodies

    def look_up_ids(self, strings):
        """Returns the ids of strings `(n,)`, int32."""
        ids = self.table(strings)
        return tf.where(ids < 0, self.unknown, ids)

    # === From ids to text ===

    def decode(self, ids):
        """Turns an integer tensor `(B, T)`, dense or ragged, into a string tensor `(B,)`."""
        if isinstance(ids, tf.RaggedTensor):
            ids = ids.to_tensor(default_value=self.end)
        return self.decode_rows(tf.cast(ids, tf.int64))

    def decode_rows(self, ids):
        """Turns an int64 tensor `(B, T)` into a string tensor `(B,)`."""
        ended = tf.cumsum(tf.cast(ids == self.end, tf.int32), axis=1) > 0
        is_token = ~ended & (ids >= 0) & (ids < len(self.surfaces))
        texts = valid_utf8(tf.strings.reduce_join(look_up(self.surfaces, ids, is_token), axis=1))  # (B,)
        texts = tf.strings.regex_replace(texts, f"^{BLANK}+|{BLANK}+$", "")
        for old, new in TIDIED.items() if self.tidy else ():
            texts = tf.strings.regex_replace(texts, re.escape(old), new)
        return texts

    def tokens(self, ids):
        """Turns an integer tensor into a string tensor of tokens, empty where an id is none."""
        return tf.ensure_shape(self.token_strings(tf.cast(ids, tf.int64)), ids.shape)

    def token_strings(self, ids):
        """Turns an int64 tensor into tokens."""
        return look_up(self.strings, ids, (ids >= 0) & (ids < len(self.strings)))


class StringTable:
    """Finds the places of strings in a list, from constants alone: a server needs no table that must be filled first.

    The strings are sorted by a hash. Where it points to, all strings of that hash are compared.

    Args:
        strings: The list; each string is there once.
    """

    def __init__(self, strings: tuple[str, ...]):
        self.num_buckets = max(1, 2 * len(strings))
        with tf.init_scope():
            hashes = tf.strings.to_hash_bucket_fast(tf.constant(strings), self.num_buckets).numpy()
        self.order = np.argsort(hashes, kind="stable").astype(np.int32)
        self.starts = np.searchsorted(hashes[self.order], np.arange(self.num_buckets + 1)).astype(np.int32)
        self.longest = int(np.diff(self.starts).max())
        self.strings = tuple(strings[place] for place in self.order)

    def __call__(self, strings):
        """Returns the place of each string `(n,)`, int32, and -1 for those that are not in the list."""
        buckets = tf.strings.to_hash_bucket_fast(strings, self.num_buckets)  # (n,)
        starts, ends = tf.gather(self.starts, buckets), tf.gather(self.starts, buckets + 1)
        places = starts[:, None] + tf.range(self.longest)  # (n, longest)
        candidates = tf.minimum(places, len(self.strings) - 1)
        is_it = (places < ends[:, None]) & (tf.gather(tf.constant(self.strings), candidates) == strings[:, None])
        return tf.reduce_max(tf.where(is_it, tf.gather(self.order, candidates), -1), axis=1)
