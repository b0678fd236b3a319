"""The decoder with its caches, for several hypotheses a sentence.

Two ways of keeping the keys and values of hypotheses that come from one another:

- *Shared* (our own blocks): the K hypotheses of a sentence are K queries of one batch row. Every key that was ever computed for
  the sentence stays where it was written, and each hypothesis sees those of its own past. Nothing is copied when hypotheses are
  reordered; keys and values of the source are there once.
- *Copied* (blocks with a cache of their own): each hypothesis is a batch row, and reordering copies the rows.
"""

from keras import ops, tree

from keras_transformer.decoding.gathering import take_beams
from keras_transformer.layers.attention_cache import own_buffers


def make_decoder(model, beam_size: int) -> "SharedDecoder | CopyingDecoder":
    """Returns the decoder that suits a model.

    Args:
        model: A `Transformer`.
        beam_size: Number of hypotheses a sentence (K).
    """
    is_plain = all(getattr(block, "has_plain_cache", False) for block in model.parts.decoder_blocks)
    return (SharedDecoder if is_plain else CopyingDecoder)(model, beam_size)


class SharedDecoder:
    """A decoder whose hypotheses share one cache a sentence.

    Args:
        model: A `Transformer`.
        beam_size: Number of hypotheses a sentence (K).
    """

    can_grow = True

    def __init__(self, model, beam_size: int):
        self.model, self.beam_size = model, beam_size

    def start(self, source_ids, capacity) -> dict:
        """Returns the cache before the first step: `{"fixed": never changed, "past": grows, "visible": (B, K, L)}`."""
        source_mask = self.model.parts.source_mask(source_ids)
        encoded = self.model.encode(source_ids, source_mask)
        cache = self.model.make_cache(encoded, source_mask, capacity * self.beam_size)
        fixed = {"source_mask": cache.pop("source_mask")}
        past = {}
        for name, block in cache.items():
            fixed[name], past[name] = block["cross_attention"], block["self_attention"]
        shape = (ops.shape(source_ids)[0], self.beam_size, capacity * self.beam_size)
        return {"fixed": fixed, "past": own_buffers(past), "visible": ops.zeros(shape, dtype="bool")}

    def step(self, ids, position, cache: dict):
        """Runs the decoder on the newest token of each hypothesis.

        Args:
            ids: Integer tensor `(B, K)`, or `(B, 1)` while all hypotheses are one.
            position: Integer scalar, where these tokens stand.
            cache: The cache.

        Returns:
            A tuple: float32 logits `(B, K, V)`, and the cache.
        """
        width = ids.shape[1]
        places = ops.arange(ops.shape(cache["visible"])[2])  # (L,)
        slot = position * self.beam_size
        own = places[None, :] == slot + ops.arange(width)[:, None]  # (K, L)
        visible = ops.logical_or(cache["visible"][:, :width], own)  # (B, K, L)
        shared = {"slot": slot, "slot_positions": places // self.beam_size, "visible": visible}
        blocks = {
            name: {"self_attention": {**past, **shared}, "cross_attention": cache["fixed"][name]}
            for name, past in cache["past"].items()
        }
        positions = ops.broadcast_to(position, (width,))
        logits, new = self.model.decode_step(ids, positions, {"source_mask": cache["fixed"]["source_mask"], **blocks})
        past = {name: {part: new[name]["self_attention"][part] for part in old} for name, old in cache["past"].items()}
        return logits, {**cache, "past": past, "visible": visible}

    def reorder(self, cache: dict, parents) -> dict:
        """Makes hypothesis k the heir of hypothesis `parents[b, k]`."""
        visible = take_beams(cache["visible"], parents)  # (B, K, L)
        return {**cache, "visible": visible}

    def grow(self, cache: dict, capacity) -> dict:
        """Makes room for `capacity` positions."""
        added = capacity * self.beam_size - ops.shape(cache["visible"])[2]
        past = tree.map_structure(lambda x: ops.pad(x, [(0, 0), (0, 0), (0, added), (0, 0)]), cache["past"])
        return {**cache, "past": past, "visible": ops.pad(cache["visible"], [(0, 0), (0, 0), (0, added)])}


class CopyingDecoder:
    """A decoder whose hypotheses are batch rows with a cache each.

    Args:
        model: A `Transformer`.
        beam_size: Number of hypotheses a sentence (K).
    """

    can_grow = False

    def __init__(self, model, beam_size: int):
        self.model, self.beam_size = model, beam_size

    def start(self, source_ids, capacity) -> dict:
        """Returns the cache before the first step; all of it is copied when hypotheses are reordered."""
        source_ids = ops.repeat(source_ids, self.beam_size, axis=0)  # (B * K, S)
        source_mask = self.model.parts.source_mask(source_ids)
        return self.model.make_cache(self.model.encode(source_ids, source_mask), source_mask, capacity)

    def step(self, ids, position, cache: dict):
        """Runs the decoder on the newest token of each hypothesis; see `SharedDecoder.step`."""
        ids = ops.broadcast_to(ids, (ops.shape(ids)[0], self.beam_size))
        logits, cache = self.model.decode_step(ops.reshape(ids, (-1, 1)), ops.reshape(position, (1,)), cache)
        return ops.reshape(logits, (-1, self.beam_size, logits.shape[-1])), cache

    def reorder(self, cache: dict, parents) -> dict:
        """Makes hypothesis k the heir of hypothesis `parents[b, k]`."""
        first = ops.arange(ops.shape(parents)[0])[:, None] * self.beam_size
        rows = ops.reshape(first + ops.cast(parents, first.dtype), (-1,))
        return tree.map_structure(lambda x: ops.take(x, rows, axis=0), cache)

    def grow(self, cache: dict, capacity) -> dict:
        """Is never called: a cache of unknown form has its full size from the beginning."""
        raise NotImplementedError
