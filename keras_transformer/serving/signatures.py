"""The graph of a served translator: text in, text out, and nothing that can fail. Imported when it is first needed."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf  # noqa: TID251

from keras_transformer.attention.capture import watch
from keras_transformer.decoding import Search
from keras_transformer.decoding.limits import IMPOSSIBLE
from keras_transformer.decoding.scoring import log_probabilities
from keras_transformer.layers.folded_norm import fold_norms
from keras_transformer.layers.spaced_kernel import spaced_kernels, use_kernels
from keras_transformer.text.cutting import most_bytes
from keras_transformer.text.graph import cut_strings
from keras_transformer.translator import Translator

LARGEST_PENALTY = 5.0


@dataclass(frozen=True)
class ServedLimits:
    """What a served model takes and gives at most.

    Attributes:
        source_tokens: Tokens of a source; what is longer is cut.
        target_tokens: Tokens of a translation.
        beam_size: The widest beam that a request can ask for.
        num_hypotheses: How many translations the signature `nbest` returns.
    """

    source_tokens: int
    target_tokens: int
    beam_size: int
    num_hypotheses: int


class ServedTranslator(tf.Module):
    """A translator as signatures of a SavedModel.

    Requests of different clients come as one batch, so no text and no option may raise an error: texts are cut at the limit,
    options outside their range are replaced, and what is not a number never leaves.

    Args:
        translator: The translator. Its model computes on TensorFlow.
        limits: `ServedLimits`.
        device: `"cpu"` to keep the kernels in a layout that is faster there, and to encode short and long texts apart, or
            `"gpu"`.
    """

    def __init__(self, translator: Translator, limits: ServedLimits, device: str):
        super().__init__(name="served_translator")
        self.translator, self.limits, self.device = translator, limits, device
        self.source, self.target = translator.tokenizer.source, translator.tokenizer.target
        self.config = translator.model.config
        kernels = spaced_variables(translator.model) if device == "cpu" else {}
        self.with_kernels = functools.partial(use_kernels, kernels)
        self.beam_size = min(translator.options.beam_size, limits.beam_size)
        self.search_with = functools.lru_cache(self.make_search)
        # What the SavedModel stores: known when the signatures are.
        self.weights = []

    def signatures(self, tell: Callable[[str], None] = lambda line: None) -> dict:
        """Makes the functions by the names that clients know, and notes the weights that they use.

        Args:
            tell: Is told what is being done.

        Returns:
            The concrete functions by their names.
        """
        functions = {}
        with self.with_kernels(), shared_tables(self.translator.model):
            for name, function in self.functions().items():
                tell(f"tracing {name}")
                functions[name] = function.get_concrete_function()
        self.weights = list({id(one): one for function in functions.values() for one in function.variables}.values())
        return functions

    def functions(self) -> dict:
        """Returns the functions by the names that clients know, not yet traced."""
        text = {"text": tf.TensorSpec([None], tf.string, name="text")}
        options = {
            "beam_size": tf.TensorSpec([None], tf.int32, name="beam_size"),
            "length_penalty": tf.TensorSpec([None], tf.float32, name="length_penalty"),
            "max_length": tf.TensorSpec([None], tf.int32, name="max_length"),
        }
        pair = {name: tf.TensorSpec([None], tf.string, name=name) for name in ("source", "target")}
        return {
            "serving_default": as_signature(self.translate, text),
            "translate_with_options": as_signature(self.translate_with_options, {**text, **options}),
            "nbest": as_signature(self.nbest, text),
            "score": as_signature(self.score, pair),
            "align": as_signature(self.align, text),
        }

    # === The signatures ===

    def translate(self, text) -> dict:
        """Translates with the translator's own options: `(B,)` -> `translation`, `score`, `truncated` `(B,)`."""
        source = self.encode_sources(text)
        return self.best(source, self.search(source, self.beam_size))

    def translate_with_options(self, text, beam_size, length_penalty, max_length) -> dict:
        """Translates each text with options of its own, all `(B,)`; values below their range stand for the defaults."""
        source, options = self.encode_sources(text), self.translator.options
        beam_size = tf.where(beam_size < 1, self.beam_size, beam_size)
        is_given = length_penalty >= 0.0  # A value that is not a number is not.
        length_penalty = tf.where(is_given, length_penalty, options.length_penalty)
        default_lengths = self.max_lengths(source["lengths"])
        max_length = tf.where(max_length < 1, default_lengths, tf.cast(max_length, tf.int64))
        max_length = tf.maximum(max_length, options.min_length)
        inputs = {
            "beam_sizes": tf.minimum(tf.cast(beam_size, tf.int64), self.limits.beam_size),
            "length_penalties": tf.minimum(length_penalty, max(LARGEST_PENALTY, options.length_penalty)),
            "max_lengths": tf.minimum(max_length, self.limits.target_tokens),
        }
        return self.best(source, self.search(source, self.limits.beam_size, **inputs))

    def nbest(self, text) -> dict:
        """Finds several translations: `(B,)` -> `translations`, `scores` `(B, n)`, best first, empty where there are fewer."""
        source, count = self.encode_sources(text), self.limits.num_hypotheses
        found = self.search(source, max(self.beam_size, count), count)
        texts = self.decode(found["tokens"], found["lengths"])
        scores = tf.where(source["is_blank"][:, None], 0.0, finite(found["scores"]))
        return {"translations": tf.where(source["is_blank"][:, None], "", texts), "scores": scores}

    def score(self, source, target) -> dict:
        """Scores given translations: `(B,)`, `(B,)` -> `log_probability`, `token_count` `(B,)`, ends included."""
        sources = self.encode_sources(source)
        limit = self.longest_target()
        target, _ = cut_strings(target, most_bytes(self.target, limit))
        rows = self.target.graph_encode(target)[:, :limit]
        labels = self.with_ends(rows.to_tensor(), rows.row_lengths())
        log_probs = log_probabilities(self.translator.model, sources["ids"], self.with_starts(labels), labels)
        counts = tf.cast(rows.row_lengths(), tf.int32) + 1
        return {"log_probability": finite(tf.reduce_sum(log_probs, axis=1)), "token_count": counts}

    def align(self, text) -> dict:
        """Translates and shows where the decoder looked at the source, averaged over the heads of all layers.

        Returns:
            `translation` `(B,)`, `source_tokens` `(B, S)`, `target_tokens` `(B, T)`, ends included, and `alignment`
            `(B, T, S)`, whose rows sum to 1; padded with empty tokens and zeros.
        """
        source = self.encode_sources(text)
        found = self.search(source, self.beam_size)
        lengths = tf.where(source["is_blank"], np.int64(0), found["lengths"][:, 0] - 1)  # Without the end.
        longest = tf.reduce_max(tf.concat([lengths, [0]], axis=0))
        labels = self.with_ends(tf.cast(found["tokens"][:, 0, :longest], tf.int32), lengths)
        weights = self.cross_attention(source["ids"], self.with_starts(labels))  # (B, T, S)
        is_target = tf.sequence_mask(lengths + 1, tf.shape(labels)[1]) & ~source["is_blank"][:, None]
        is_source = tf.sequence_mask(source["lengths"] + 1, tf.shape(source["ids"])[1]) & ~source["is_blank"][:, None]
        weights = tf.where(is_target[:, :, None] & is_source[:, None, :], weights, 0.0)
        return {
            "translation": tf.where(source["is_blank"], "", self.decode(found["tokens"], found["lengths"])[:, 0]),
            "source_tokens": tf.where(is_source, tokens_of(self.source, source["ids"]), ""),
            "target_tokens": tf.where(is_target, tokens_of(self.target, labels), ""),
            "alignment": tf.where(tf.math.is_finite(weights), weights, 0.0),
        }

    # === Parts ===

    def encode_sources(self, text) -> dict:
        """Returns `ids` `(B, S)` with their ends, `lengths` without, and which texts `is_truncated` and which `is_blank`."""
        limit = self.limits.source_tokens
        text, is_cut = cut_strings(text, most_bytes(self.source, limit))
        rows = self.source.graph_encode(text)
        is_truncated = is_cut | (rows.row_lengths() > limit)
        rows = rows[:, :limit]
        lengths = rows.row_lengths()
        ids = self.with_ends(rows.to_tensor(), lengths)
        return {"ids": ids, "lengths": lengths, "is_truncated": is_truncated, "is_blank": lengths == 0}

    def with_ends(self, ids, lengths):
        """Puts an end behind each row of `(B, T)`, and padding behind that: `(B, T + 1)`."""
        places = tf.range(tf.shape(ids, tf.int64)[1] + 1)
        longer = tf.pad(ids, [[0, 0], [0, 1]])
        padded = tf.where(places < lengths[:, None], longer, self.config.pad_id)
        return tf.where(places == lengths[:, None], self.config.end_id, padded)

    def with_starts(self, labels):
        """Returns what the decoder sees when it is to say these labels `(B, T)`: a start, and all but the last of them."""
        starts = tf.fill([tf.shape(labels)[0], 1], self.config.start_id)
        seen = tf.where(labels == self.config.end_id, self.config.pad_id, labels)[:, :-1]
        return tf.concat([starts, seen], axis=1)

    def make_search(self, beam_size: int, num_hypotheses: int):
        """Makes the graph of a search whose limits come with each text."""
        sizes = {"beam_size": beam_size, "num_hypotheses": num_hypotheses}
        options = self.translator.searchable(self.translator.options.override(**sizes))
        search = Search(self.translator.model, options, groups_lengths=self.device == "cpu")
        return tf.function(search.graph_run, autograph=False)

    def max_lengths(self, source_lengths):
        """Returns the most tokens of each translation, `(B,)`, as the translator would."""
        options = self.translator.options
        lengths = source_lengths + options.extra_length
        if options.max_length is not None:
            lengths = tf.fill(tf.shape(source_lengths), np.int64(options.max_length))
        return tf.minimum(tf.maximum(lengths, options.min_length), self.limits.target_tokens)

    def longest_target(self) -> int:
        """Returns the most tokens of a given target: those that have positions."""
        return self.config.max_length - 1 if self.config.positions == "learned" else self.limits.target_tokens

    def search(self, source: dict, beam_size: int, num_hypotheses: int = 1, **inputs) -> dict:
        """Searches for translations of encoded sources.

        A server reads and optimizes all graphs. So there is one for all signatures that may search as widely as a request may
        ask for; how widely each text is searched for, and how many translations it has to find, are inputs of it.
        """
        inputs = {"source_ids": source["ids"], "max_lengths": self.max_lengths(source["lengths"]), **inputs}
        most = num_hypotheses
        if beam_size == self.limits.beam_size:
            most, size = min(self.limits.num_hypotheses, beam_size), tf.shape(source["lengths"])
            usual = {
                "beam_sizes": tf.fill(size, np.int64(beam_size)),
                "length_penalties": tf.fill(size, np.float32(self.translator.options.length_penalty)),
                "num_wanted": tf.fill(size, np.int64(num_hypotheses)),
            }
            inputs = {**usual, **inputs}
        found = self.search_with(beam_size, most)(inputs)
        return {name: values[:, :num_hypotheses] for name, values in found.items()}

    def best(self, source: dict, found: dict) -> dict:
        """Returns the first hypothesis of each text."""
        return {
            "translation": tf.where(source["is_blank"], "", self.decode(found["tokens"], found["lengths"])[:, 0]),
            "score": tf.where(source["is_blank"], 0.0, finite(found["scores"][:, 0])),
            "truncated": source["is_truncated"],
        }

    def decode(self, tokens, lengths):
        """Turns hypotheses `(B, n, L)` into texts `(B, n)`."""
        is_token = tf.sequence_mask(lengths, tf.shape(tokens)[2])
        rows = tf.reshape(tf.where(is_token, tokens, self.config.end_id), (-1, tf.shape(tokens)[2]))
        return tf.reshape(self.target.graph_decode(tf.cast(rows, tf.int32)), tf.shape(lengths))

    def cross_attention(self, source_ids, target_ids):
        """Runs the model on whole targets and averages the weights of cross-attention over heads and layers: `(B, T, S)`."""
        parts, watchers = watch(self.translator.model)
        source_mask = parts.source_mask(source_ids)
        parts.decode(target_ids, parts.encode(source_ids, source_mask, training=False), source_mask)
        return tf.add_n([tf.reduce_mean(watcher.scores(), axis=1) for watcher in watchers["cross"]]) / len(watchers["cross"])


def as_signature(function, inputs: dict):
    """Makes a graph of a function whose arguments have these names and types."""
    return tf.function(function, input_signature=list(inputs.values()), autograph=False)


@contextlib.contextmanager
def shared_tables(model):
    """Lets all graphs that are made meanwhile share the tables of positions, which each would have a copy of otherwise."""
    layers = [layer for layer in (model.parts.source_positions, model.parts.target_positions) if hasattr(layer, "tables")]
    before = [layer.tables for layer in layers]
    for layer in layers:
        layer.tables = [tf.constant(table) for table in layer.tables]
    try:
        yield
    finally:
        for layer, tables in zip(layers, before, strict=True):
            layer.tables = tables


def spaced_variables(model) -> dict:
    """Lays out the kernels of a model, those of all its layers, folds normalizations into them, and keeps them as variables."""
    parts = model.parts
    kernels = spaced_kernels([*parts.encoder_blocks, *parts.decoder_blocks, parts.logits])
    kernels = fold_norms(parts.decoder_blocks, kernels)
    for kernel in {id(one.spaced): one.spaced for one in kernels.values() if hasattr(one, "spaced")}.values():
        kernel.kernel = keras.Variable(kernel.kernel, trainable=False, name="kernel")
        kernel.bias = None if kernel.bias is None else keras.Variable(kernel.bias, trainable=False, name="bias")
    return kernels


def finite(scores):
    """Replaces what is not a finite number."""
    return tf.where(tf.math.is_finite(scores), scores, IMPOSSIBLE)


def tokens_of(tokenizer, ids):
    """Returns the pieces of ids, or the ids themselves for a tokenizer that does not know them."""
    return tokenizer.graph_tokens(ids) if hasattr(tokenizer, "graph_tokens") else tf.strings.as_string(ids)


def served_limits(
    translator: Translator,
    max_source_tokens: int | None = None,
    max_target_tokens: int | None = None,
    max_beam_size: int | None = None,
    num_hypotheses: int | None = None,
) -> ServedLimits:
    """Returns the limits of an export, as large as the model allows unless they are given smaller."""
    config, options = translator.model.config, translator.options
    source = min(max_source_tokens or config.max_length - 1, config.max_length - 1)
    target = max_target_tokens or max(source + options.extra_length, options.max_length or 0)
    if config.positions == "learned":
        target = min(target, config.max_length - 1)
    beam_size = max_beam_size or options.beam_size
    limits = ServedLimits(source, target, beam_size, num_hypotheses or min(4, options.beam_size, beam_size))
    for name, value in dataclasses.asdict(limits).items():
        if value < 1:
            raise ValueError(f"A served model needs limits of at least 1. Received: {name}={value}")
    return limits
