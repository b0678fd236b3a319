"""Scaled dot-product attention (section 3.2.1 of the paper), as pure functions."""

import keras
from keras import ops


def attention_weights(query, key, mask=None, bias=None):
    """Computes softmax(QK^T / sqrt(d_k)) in float32, with zeros in rows that may attend to nothing.

    Args:
        query: Float tensor `(B, T, N, H)`.
        key: Float tensor `(B, S, N, H)`.
        mask: Boolean tensor that broadcasts to `(B, N, T, S)`, True where a query may attend, or `None`.
        bias: Float tensor that broadcasts to `(B, N, T, S)`, added to the scaled products, or `None`.

    Returns:
        A float32 tensor `(B, N, T, S)`.
    """
    query = heads_first(query * query.shape[-1] ** -0.5)  # (B, N, T, H)
    key = ops.swapaxes(heads_first(key), -1, -2)  # (B, N, H, S)
    scores = ops.cast(ops.matmul(query, key), "float32")  # (B, N, T, S)
    if bias is not None:
        scores = scores + ops.cast(bias, "float32")
    if scores.shape[-1] == 0:
        return scores  # No keys: JAX has no largest score of none.
    if mask is None:
        return ops.softmax(scores, axis=-1)
    # A finite stand-in for minus infinity: a row without any key then has no NaN to hide, in the gradient either.
    weights = ops.softmax(ops.where(mask, scores, -1e30), axis=-1)
    return ops.where(mask, weights, 0.0)


def fused_attention(query, key, value, mask=None, bias=None, is_causal=False):
    """Computes softmax(QK^T / sqrt(d_k))V with the backend's fused kernel, without the weights ever being seen.

    Args:
        query: Float tensor `(B, T, N, H)`.
        key: Float tensor `(B, S, N, H)`.
        value: Float tensor `(B, S, N, H)`.
        mask: Boolean tensor that broadcasts to `(B, N, T, S)`, or `None`.
        bias: Float tensor that broadcasts to `(B, N, T, S)`, or `None`.
        is_causal: Whether key `s` is hidden from query `t < s`. Not together with `mask` or `bias`.

    Returns:
        A float tensor `(B, T, N, H)`; zeros in rows that may attend to nothing.
    """
    if bias is not None and mask is not None:
        # Not every backend's kernel takes both.
        lowest = -3e4 if keras.backend.standardize_dtype(query.dtype) == "float16" else -1e30
        bias = ops.where(mask, ops.cast(bias, query.dtype), lowest)
    context = ops.dot_product_attention(query, key, value, bias=bias, mask=mask if bias is None else None, is_causal=is_causal)
    if mask is None:
        return context
    row_has_keys = ops.transpose(ops.any(mask, axis=-1, keepdims=True), (0, 2, 1, 3))  # (B, T, N, 1)
    return ops.where(row_has_keys, context, ops.zeros_like(context))


def with_head_axis(mask):
    """Brings a mask `(T, S)`, `(B, T, S)` or `(B, N, T, S)` to four axes, so that it broadcasts over the heads."""
    if mask is None or len(mask.shape) == 4:
        return mask
    return ops.expand_dims(mask, (0, 1) if len(mask.shape) == 2 else 1)


def heads_first(x):
    """Swaps the axes of length and heads: `(B, T, N, H)` <-> `(B, N, T, H)`."""
    return ops.transpose(x, (0, 2, 1, 3))
