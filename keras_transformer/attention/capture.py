"""Capturing the attention of a model while it runs, without touching the model.

Each block gets a twin that shares everything with it but its attention layers: in their place stand watchers, which ask them
for their scores, note these and hand on the rest. The model itself, and whoever uses it meanwhile, never sees a twin.
"""

import dataclasses
import inspect

import keras
import numpy as np
from keras import ops

# Where a kind of attention is found: in which stack of blocks, under which name.
PLACES = {
    "encoder_self": ("encoder_blocks", "self_attention"),
    "decoder_self": ("decoder_blocks", "self_attention"),
    "cross": ("decoder_blocks", "cross_attention"),
}
SIDES = {"encoder_self": ("source", "source"), "decoder_self": ("target", "target"), "cross": ("target", "source")}
LENGTH_STEP = 16


class Watcher:
    """Stands in for an attention layer and notes its scores.

    Args:
        attention: The layer: a `MultiHeadAttention`, or any other that takes `return_attention_scores`.
        name: What to call it in error messages.
    """

    def __init__(self, attention: keras.layers.Layer, name: str):
        parameters = inspect.signature(attention.call).parameters.values()
        if not any(one.name == "return_attention_scores" or one.kind == one.VAR_KEYWORD for one in parameters):
            raise ValueError(
                f"The attention of {name} cannot be seen: {type(attention).__name__}.call takes no `return_attention_scores`. "
                "Let it return the scores `(B, N, T, S)` last when that argument is true, as `MultiHeadAttention` does"
            )
        self.attention, self.name = attention, name
        self.calls = []

    def __call__(self, *args, return_attention_scores: bool = False, **kwargs):
        """Calls the layer, notes its scores and returns what the caller wanted."""
        results = self.attention(*args, **kwargs, return_attention_scores=True)
        scores = results[-1] if isinstance(results, tuple | list) else None
        if scores is None or len(getattr(scores, "shape", ())) != 4:
            raise ValueError(
                f"The attention of {self.name} cannot be seen: {type(self.attention).__name__} was asked for its scores, a "
                f"tensor `(B, N, T, S)` that comes last. Received: {scores!r:.200}. Does it override `attend` without "
                "returning the weights?"
            )
        self.calls.append(ops.cast(scores, "float32"))
        if return_attention_scores:
            return results
        return results[0] if len(results) == 2 else tuple(results[:-1])

    def __getattr__(self, name: str):
        return getattr(self.attention, name)

    def scores(self):
        """Returns the scores of the one call there was, a float32 tensor `(B, N, T, S)`."""
        if len(self.calls) != 1:
            raise ValueError(
                f"The attention of {self.name} cannot be seen: the block was expected to call it once. "
                f"Received: {len(self.calls)} calls"
            )
        return self.calls[0]


def watch(model):
    """Makes the layers of a model that can be watched while they run.

    Args:
        model: A `Transformer`. It is not changed.

    Returns:
        A tuple: the model's `TransformerParts` with twins in place of the blocks, and for each kind of attention the list of
        its `Watcher`s, layer by layer.
    """
    twins = {stack: [twin_of(block) for block in getattr(model.parts, stack)] for stack in ("encoder_blocks", "decoder_blocks")}
    watchers = {kind: [watch_attention(twin, name) for twin in twins[stack]] for kind, (stack, name) in PLACES.items()}
    return dataclasses.replace(model.parts, **twins), watchers


def twin_of(block: keras.layers.Layer) -> keras.layers.Layer:
    """Makes a second object of a built layer that has the same attributes, and so the same weights and parts."""
    twin = object.__new__(type(block))
    vars(twin).update(vars(block))
    return twin


def watch_attention(twin: keras.layers.Layer, name: str) -> Watcher:
    """Puts a watcher in place of a twin's attention layer."""
    attention = getattr(twin, name, None)
    if not isinstance(attention, keras.layers.Layer):
        raise ValueError(
            f"The attention of {twin.name} cannot be seen: {type(twin).__name__} has no layer `{name}`. Give its attention "
            f"layer that name, as the blocks of `keras_transformer.layers` do. Received: {name}={attention!r:.100}"
        )
    watcher = Watcher(attention, f"{twin.name}/{name}")
    vars(twin)[name] = watcher  # Past `__setattr__`, for which the watcher is no part of a layer.
    return watcher


def attention_scores(model, source_ids, target_ids) -> dict[str, np.ndarray]:
    """Runs a model on whole targets and returns the weights of every head of every layer.

    Args:
        model: A `Transformer`. Its blocks may be a user's own, as long as they call their attention layers `self_attention`
            and `cross_attention` and these take `return_attention_scores`.
        source_ids: Integer array `(B, S)`, sentences and their ends, padded.
        target_ids: Integer array `(B, T)`, start and sentence, padded.

    Returns:
        From `"encoder_self"`, `"decoder_self"` and `"cross"` to float32 arrays `(B, layers, N, queries, keys)`. Masked keys
        have 0, the others of a row sum to 1. Rows of padding mean nothing.
    """
    parts, watchers = watch(model)
    source_ids, target_ids = np.asarray(source_ids, "int32"), np.asarray(target_ids, "int32")
    lengths = {"source": source_ids.shape[1], "target": target_ids.shape[1]}
    source_ids, target_ids = (ops.convert_to_tensor(in_steps(ids, model.config)) for ids in (source_ids, target_ids))
    source_mask = parts.source_mask(source_ids)
    encoded = parts.encode(source_ids, source_mask, training=False)
    parts.decode(target_ids, encoded, source_mask)
    scores = {kind: [ops.convert_to_numpy(watcher.scores()) for watcher in layers] for kind, layers in watchers.items()}
    stacked = {kind: stack_layers(kind, layers) for kind, layers in scores.items()}
    return {kind: stacked[kind][..., : lengths[queries], : lengths[keys]] for kind, (queries, keys) in SIDES.items()}


def in_steps(ids: np.ndarray, config) -> np.ndarray:
    """Pads ids to one of few lengths on JAX, which compiles every operation anew for a new length.

    What is added changes nothing: in the source it is hidden, in the target it stands in the future.
    """
    if keras.backend.backend() != "jax":
        return ids
    length = -(-ids.shape[1] // LENGTH_STEP) * LENGTH_STEP
    if config.positions == "learned":
        length = max(ids.shape[1], min(length, config.max_length))
    return np.pad(ids, ((0, 0), (0, length - ids.shape[1])), constant_values=config.pad_id)


def stack_layers(kind: str, layers: list[np.ndarray]) -> np.ndarray:
    """Puts the scores of all layers, each `(B, N, T, S)`, into one array `(B, layers, N, T, S)`."""
    heads = [scores.shape[1] for scores in layers]
    if len(set(heads)) > 1:
        raise ValueError(
            f"All layers of a stack must have the same number of heads to be seen in one array. Received for {kind!r}: {heads}"
        )
    return np.stack(layers, axis=1)


def token_names(tokenizer, ids) -> list[str]:
    """Returns the pieces of ids, special ones too, whichever tokenizer they are from."""
    if hasattr(tokenizer, "tokens"):
        return tokenizer.tokens(ids)
    return [tokenizer.decode([id]) or f"<{id}>" for id in ids]
