"""The decoder with its caches, for several hypotheses a sentence.

Two ways of keeping the keys and values of hypotheses that come from one another:

- *Shared* (our own blocks): the K hypotheses of a sentence are K queries of one batch row. A key stays where it was written;
  each hypothesis sees those of its own past. Nothing is copied when hypotheses are reordered; keys and values of the source are
  there once. Now and then, keys that no hypothesis sees any more are thrown out.
- *Copied* (blocks with a cache of their own): each hypothesis is a batch row, and reordering copies the rows.
"""

import keras
from keras import ops, tree

from keras_transformer.decoding.gathering import add_zeros, index_dtype, take, take_beams
from keras_transformer.layers.attention_cache import own_buffers, rows_from

PLACES = 16  # A cache that was tidied has room for a multiple of so many keys: some libraries prepare for each size once.


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

    Its cache is a dictionary:

    | name | shape | what |
    |---|---|---|
    | `fixed` | | keys and values of the source, and its mask |
    | `past` | (B, N, L, H) | keys and values of target tokens, in L places |
    | `slot` | () | the first place that is free |
    | `slot_positions` | (B, 1, L) | the position that the token of each place stands at |
    | `visible` | (B, K, L) | the places that a hypothesis sees: its own past |

    Args:
        model: A `Transformer`.
        beam_size: Number of hypotheses a sentence (K).
    """

    can_grow = True

    def __init__(self, model, beam_size: int):
        self.model, self.beam_size = model, beam_size

    def start(self, source_ids, capacity, encode) -> dict:
        """Returns the cache before the first step, with room for `capacity` positions.

        Args:
            source_ids: Integer tensor `(B, S)`.
            capacity: Number of target positions.
            encode: The function that runs the encoder, from `source_ids` and their mask `(B, S)` to `(B, S, M)`.
        """
        source_mask = self.model.parts.source_mask(source_ids)
        encoded = encode(source_ids, source_mask)
        num_places = capacity * self.beam_size
        cache = self.model.make_cache(encoded, source_mask, num_places)
        fixed = {"source_mask": cache.pop("source_mask")}
        past = {}
        for name, block in cache.items():
            fixed[name], past[name] = block["cross_attention"], block["self_attention"]
        batch_size = ops.shape(source_ids)[0]
        return {
            "fixed": fixed,
            "past": own_buffers(past),
            "slot": ops.zeros((), "int32"),
            "slot_positions": ops.zeros((batch_size, 1, num_places), index_dtype()),
            "visible": ops.zeros((batch_size, self.beam_size, num_places), "bool"),
        }

    def step(self, ids, position, cache: dict):
        """Runs the decoder on the newest token of each hypothesis.

        Args:
            ids: Integer tensor `(B, K)`, or `(B, 1)` while all hypotheses are one.
            position: Integer scalar, where these tokens stand.
            cache: The cache.

        Returns:
            A tuple: float32 logits `(B, K, V)`, and the cache.
        """
        width, slot = ids.shape[1], cache["slot"]
        places = ops.arange(ops.shape(cache["visible"])[2])  # (L,)
        own = places[None, :] == slot + ops.arange(width)[:, None]  # (K, L)
        visible = ops.logical_or(cache["visible"][:, :width], own)  # (B, K, L)
        slot_positions = ops.where(places < slot, cache["slot_positions"], ops.cast(position, index_dtype()))  # (B, 1, L)
        shared = {"slot": slot, "slot_positions": slot_positions[:, 0], "visible": visible}
        rows = {}  # Where to write, by the number of heads: found once for all blocks.
        blocks = {}
        for name, past in cache["past"].items():
            num_heads = past["key"].shape[1]
            if num_heads not in rows:
                rows[num_heads] = rows_from(past["key"], slot, width)
            self_attention = {**past, **shared, "slot_rows": rows[num_heads]}
            blocks[name] = {"self_attention": self_attention, "cross_attention": cache["fixed"][name]}
        positions = ops.broadcast_to(position, (width,))
        logits, new = self.model.decode_step(ids, positions, {"source_mask": cache["fixed"]["source_mask"], **blocks})
        past = {name: {part: new[name]["self_attention"][part] for part in old} for name, old in cache["past"].items()}
        newer = {"past": past, "slot": slot + width, "slot_positions": slot_positions, "visible": visible}
        return logits, {**cache, **newer}

    def reorder(self, cache: dict, parents) -> dict:
        """Makes hypothesis k the heir of hypothesis `parents[b, k]`."""
        return {**cache, "visible": take_beams(cache["visible"], parents)}

    def grow(self, cache: dict, position, capacity, rows=None) -> dict:
        """Makes room for the positions from `position` to `capacity`.

        Hypotheses that live have most of their past in common. Places that none of them sees any more are given up, so that
        the cache grows by about one place a position, and not by K.

        Args:
            cache: The cache.
            position: Integer scalar, where the next tokens will stand.
            capacity: Number of target positions.
            rows: Integer tensor, the sentences that stay, in ascending order, in a TensorFlow graph. `None` is all of them.

        Returns:
            The cache of these sentences.
        """
        changing = {name: cache[name] for name in ("past", "slot_positions", "visible")}
        if rows is not None:
            cache = {**cache, "fixed": sentences_of(cache["fixed"], rows, ops.shape(cache["visible"])[0])}
        if self.beam_size == 1 or keras.backend.backend() == "jax":  # A program of JAX has to know its sizes beforehand.
            added = capacity * self.beam_size - ops.shape(cache["visible"])[2]
            changing = changing if rows is None else tree.map_structure(lambda x: take(x, rows), changing)
            return {**cache, **tree.map_structure(lambda x: add_zeros(x, added, axis=2), changing)}
        rows = ops.arange(ops.shape(cache["visible"])[0], dtype=index_dtype()) if rows is None else rows
        seen = take(ops.any(cache["visible"], axis=1), rows)  # (B, L)
        num_seen = ops.cast(ops.max(ops.sum(ops.cast(seen, index_dtype()), axis=1), initial=0), "int32")
        num_places = ops.cast(ops.shape(seen)[1], index_dtype())
        places = ops.arange(num_places, dtype=index_dtype())
        order = ops.argsort(ops.where(seen, places, places + num_places), axis=1)  # (B, L), those seen come first
        free = (capacity - position) * self.beam_size
        free += -(num_seen + free) % PLACES
        places = add_zeros(ops.cast(order, index_dtype())[:, :num_seen], free, axis=1)
        moved = tree.map_structure(lambda x: take_places(x, rows, places), changing)
        visible = ops.logical_and(moved["visible"], ops.arange(ops.shape(places)[1]) < num_seen)
        return {**cache, **moved, "slot": num_seen, "visible": visible}


def sentences_of(tensors: dict, rows, batch_size) -> dict:
    """Takes sentences `rows` out of tensors `(B, ...)`, unless these are all there are."""
    return ops.cond(
        ops.shape(rows)[0] < batch_size,
        lambda: tree.map_structure(lambda x: take(x, rows), tensors),
        lambda: tensors,
    )


def take_places(x, rows, places):
    """Takes some sentences, and of each the same places for all heads or hypotheses.

    Args:
        x: Tensor `(B, J, L, ...)`.
        rows: Integer tensor `(B',)`, the sentences.
        places: Integer tensor `(B', M)`, the places of each.

    Returns:
        A tensor `(B', J, M, ...)`.
    """
    size, length = tuple(ops.shape(x))[1:3]
    first = (rows[:, None] * size + ops.arange(size, dtype=index_dtype())) * ops.cast(length, index_dtype())  # (B', J)
    return take(ops.reshape(x, (-1, *x.shape[3:])), first[:, :, None] + places[:, None, :])


class CopyingDecoder:
    """A decoder whose hypotheses are batch rows with a cache each.

    Args:
        model: A `Transformer`.
        beam_size: Number of hypotheses a sentence (K).
    """

    can_grow = False

    def __init__(self, model, beam_size: int):
        self.model, self.beam_size = model, beam_size

    def start(self, source_ids, capacity, encode) -> dict:
        """Returns the cache before the first step, all of which is copied when hypotheses are reordered."""
        source_ids = ops.repeat(source_ids, self.beam_size, axis=0)  # (B * K, S)
        source_mask = self.model.parts.source_mask(source_ids)
        return self.model.make_cache(encode(source_ids, source_mask), source_mask, capacity)

    def step(self, ids, position, cache: dict):
        """Runs the decoder on the newest token of each hypothesis; see `SharedDecoder.step`."""
        ids = ops.broadcast_to(ids, (ops.shape(ids)[0], self.beam_size))
        logits, cache = self.model.decode_step(ops.reshape(ids, (-1, 1)), ops.reshape(position, (1,)), cache)
        return ops.reshape(logits, (-1, self.beam_size, logits.shape[-1])), cache

    def reorder(self, cache: dict, parents) -> dict:
        """Makes hypothesis k the heir of hypothesis `parents[b, k]`."""
        first = ops.arange(ops.shape(parents)[0])[:, None] * self.beam_size
        rows = ops.reshape(first + ops.cast(parents, first.dtype), (-1,))
        return tree.map_structure(lambda x: take(x, rows), cache)

    def grow(self, cache: dict, position, capacity) -> dict:
        """Is never called: a cache of unknown form has its full size from the beginning."""
        raise NotImplementedError
