"""Attention masks as pure functions.

Every mask is boolean and True means "may attend". Shapes broadcast against the attention scores without their head axis,
`(B, T, S)`: a padding mask is `(B, 1, S)`, a causal mask `(T, S)` or `(B, T, S)`.
"""

import keras
from keras import ops


def padding_mask(ids, pad_id: int = 0):
    """Tells real tokens from padding.

    Args:
        ids: Integer tensor of any shape, usually `(B, S)`.
        pad_id: The id that fills the end of short sentences.

    Returns:
        A boolean tensor of the shape of `ids`, True where a real token stands.
    """
    return ops.not_equal(ids, pad_id)


def causal_mask(query_positions, key_positions):
    """Lets each position see itself and what came before it.

    The mask is computed from positions and not from indices, so that a full pass (positions 0, 1, ..., T-1 on both sides) and
    one cached step (a single query position, the positions of the whole cache) share it.

    Args:
        query_positions: Integer tensor `(T,)` or `(B, T)`.
        key_positions: Integer tensor `(S,)` or `(B, S)`.

    Returns:
        A boolean tensor `(T, S)` or `(B, T, S)`, True where the key is not later than the query.
    """
    return ops.less_equal(
        ops.expand_dims(key_positions, -2), ops.expand_dims(query_positions, -1)
    )  # (..., 1, S) <= (..., T, 1)


def check_masks(**masks):
    """Raises a `ValueError` for a mask of floats, which other libraries add to the scores: its 0 would be read as False.

    Args:
        **masks: Each mask, or `None`, by the name of the argument.
    """
    for name, mask in masks.items():
        if mask is not None and keras.backend.is_float_dtype(dtype := keras.backend.standardize_dtype(mask.dtype)):
            raise ValueError(
                f"`{name}` must be boolean, or integers 0 and 1: true where a query may attend. Write `{name} > 0` if it is 1 "
                f"there and 0 elsewhere, `{name} >= 0` if it is added to scores, 0 there and -inf elsewhere. "
                f"Received: {name} of dtype {dtype}"
            )


def combine_masks(*masks):
    """Joins masks with a logical and, leaving out those that are `None`.

    Args:
        *masks: Boolean tensors that broadcast against each other, or `None`. Integers 0 and 1 will do, floats will not.

    Returns:
        Their conjunction, or `None` if there is nothing to join.
    """
    combined = None
    for mask in masks:
        if mask is not None:
            check_masks(mask=mask)
            mask = ops.cast(mask, "bool")
            combined = mask if combined is None else ops.logical_and(combined, mask)
    return combined
