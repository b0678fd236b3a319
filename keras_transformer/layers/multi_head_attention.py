"""Multi-head attention (section 3.2 of the paper)."""

import math

import keras
from keras import ops

from keras_transformer.layers.attention_cache import at_places, grows, write_at, write_from
from keras_transformer.layers.changes import QuantizedParts
from keras_transformer.layers.initializers import initializer_for
from keras_transformer.layers.rows import on_rows
from keras_transformer.layers.scaled_dot_product import attention_weights, fused_attention, heads_first, with_head_axis
from keras_transformer.masks import causal_mask, combine_masks


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadAttention(QuantizedParts, keras.layers.Layer):
    """Several attentions side by side, each on its own projection of queries, keys and values.

    With one input it is self-attention; with a second one, `value`, it is cross-attention from the first to the second.

        Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V                          (section 3.2.1)
        MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O                       (section 3.2.2)
        head_i             = Attention(Q W_i^Q, K W_i^K, V W_i^V)

    | paper | here |
    |---|---|
    | h | `num_heads` (N) |
    | d_k, d_v | `key_dim`, `value_dim` (H) |
    | W^Q, W^K, W^V, W^O | the layers `query`, `key`, `value`, `output`; the heads lie side by side in the columns of a kernel |

    Softmax is computed in float32 under every dtype policy. Where the backend has a fused kernel (JAX, torch), it does the work
    unless the scores are asked for or attention dropout is at work, so always at inference.

    To change how attention works, override one of the small methods: `project_query`, `project_key` and `project_value`
    (rotary positions), `score_bias` (relative positions), `attend` (anything else). Each sees ordinary queries, keys and
    values, with the positions they stand at, in a full pass, in a cached step and under beam search.

    Args:
        num_heads: Number of heads.
        key_dim: Width of each head's queries and keys.
        value_dim: Width of each head's values. Defaults to `key_dim`.
        output_dim: Width of the output. Defaults to that of the query.
        dropout: Rate of dropout on the attention weights (the paper has none).
        use_bias: Whether the four projections have biases.
        kernel_initializer: Initializer of the kernels; each of the four gets a clone of its own.
        bias_initializer: Initializer of the biases.
        **kwargs: `name`, `dtype`, `trainable` of every Keras layer.

    Call arguments:
        query: Float tensor `(B, T, M)`.
        value: Float tensor `(B, S, M)`. Without it, the query attends to itself.
        key: Float tensor `(B, S, M)`. Defaults to `value`.
        attention_mask: Boolean tensor `(T, S)`, `(B, T, S)` or `(B, N, T, S)`, True where a query may attend to a key.
        query_mask, value_mask, key_mask: Boolean tensors `(B, T)`, `(B, S)`, `(B, S)`, False at padding.
        use_causal_mask: Whether a query sees only keys at its own position and before.
        positions: Integer tensor `(T,)` or `(B, T)`, where the query's tokens stand. Defaults to 0, 1, ..., T-1. In
            self-attention the keys stand there too; keys of their own stand at 0, 1, ..., S-1.
        cache: A dictionary from `growing_cache` (self-attention: the query's own keys and values are written into it at
            `positions`, and each query sees what stands at its position and before) or from `fixed_cache` (cross-attention:
            it is only read, and `value` and `key` are not needed). Where several queries of a sentence are alternatives and
            not successors, as in beam search, a growing cache has three more entries: `slot`, the first of the places that
            are written to in place of `positions`; `slot_positions` `(B, L)`, the position that each place stands for; and
            `visible` `(B, T, L)`, which places a query sees. It may have `slot_rows` (`attention_cache.rows_from`) as well.
        return_attention_scores: Whether to return the attention weights as well.
        training: Whether dropout is at work.

    Returns:
        The output, `(B, T, M)`. With a cache, `(output, cache)`. The scores, float32 `(B, N, T, S)`, come last when asked for.

    Masking:
        All masks given, explicit or attached to the inputs by Keras, are joined by a logical and. A row that may attend to
        nothing has weights of zero, so that only the bias of the output projection is left of it.

    Example:

    >>> attention = MultiHeadAttention(num_heads=8, key_dim=64)
    >>> attention(keras.random.normal((2, 10, 512)), use_causal_mask=True).shape
    (2, 10, 512)
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        output_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        for name, size in {"num_heads": num_heads, "key_dim": key_dim}.items():
            if size < 1:
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={size}")
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.output_dim = output_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.supports_masking = True

    def build(self, query_shape, value_shape=None, key_shape=None):
        value_shape = value_shape or query_shape
        key_shape = key_shape or value_shape
        value_dim = self.value_dim or self.key_dim
        self.query_dense = self.make_projection("query", self.num_heads * self.key_dim)
        self.key_dense = self.make_projection("key", self.num_heads * self.key_dim)
        self.value_dense = self.make_projection("value", self.num_heads * value_dim)
        self.output_dense = self.make_projection("output", self.output_dim or query_shape[-1])
        self.dropout_layer = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy, name="dropout")
        self.query_dense.build(query_shape)
        self.key_dense.build(key_shape)
        self.value_dense.build(value_shape)
        self.output_dense.build((*query_shape[:-1], self.num_heads * value_dim))

    def make_projection(self, name: str, units: int) -> keras.layers.Layer:
        """Makes one of the four linear maps: `query`, `key`, `value` or `output`."""
        return keras.layers.Dense(
            units,
            use_bias=self.use_bias,
            kernel_initializer=initializer_for(self.kernel_initializer, name),
            bias_initializer=initializer_for(self.bias_initializer, name),
            dtype=self.dtype_policy,
            name=name,
        )

    def project_query(self, query, positions):
        """Projects queries `(B, T, M)` that stand at `positions` to `(B, T, N, H)`."""
        return self.split_heads(on_rows(self.query_dense, query))

    def project_key(self, key, positions):
        """Projects keys `(B, S, M)` that stand at `positions` to `(B, S, N, H)`."""
        return self.split_heads(on_rows(self.key_dense, key))

    def project_value(self, value, positions):
        """Projects values `(B, S, M)` that stand at `positions` to `(B, S, N, H)`."""
        return self.split_heads(on_rows(self.value_dense, value))

    def project_output(self, context):
        """Concatenates the heads of `(B, T, N, H)` and projects them to `(B, T, M)`."""
        length = ops.shape(context)[1]
        return on_rows(self.output_dense, ops.reshape(context, (-1, length, math.prod(context.shape[2:]))))

    def split_heads(self, x):
        """Takes `(B, T, N * H)` apart into heads, `(B, T, N, H)`."""
        return ops.reshape(x, (-1, ops.shape(x)[1], self.num_heads, x.shape[-1] // self.num_heads))

    def score_bias(self, query_positions, key_positions):
        """Returns what is added to the scaled products: `None`, or a tensor that broadcasts to `(B, N, T, S)`."""
        return None

    def attend(self, query, key, value, mask=None, bias=None, is_causal=False, return_scores=False, training=False):
        """Mixes the values by attention weights.

        Args:
            query: Float tensor `(B, T, N, H)`.
            key: Float tensor `(B, S, N, H)`.
            value: Float tensor `(B, S, N, H)`.
            mask: Boolean tensor that broadcasts to `(B, N, T, S)`, or `None`.
            bias: What `score_bias` returned.
            is_causal: True in place of a mask when nothing but the future is hidden, so that fused kernels can know.
            return_scores: Whether the attention weights are wanted.
            training: Whether dropout is at work.

        Returns:
            A tuple: the context `(B, T, N, H)`, and the weights `(B, N, T, S)` or `None`.
        """
        # TensorFlow has no fused kernel: `ops.dot_product_attention` is the products below, written as einsums. The kernels of
        # the others want keys and values of one width.
        fusible = keras.backend.backend() != "tensorflow" and query.shape[-1] == value.shape[-1]
        if fusible and not return_scores and not (training and self.dropout > 0):
            return fused_attention(query, key, value, mask, bias, is_causal), None
        if is_causal:
            mask = causal_mask(ops.arange(ops.shape(query)[1]), ops.arange(ops.shape(key)[1]))
        weights = attention_weights(query, key, mask, bias)
        dropped = ops.cast(self.dropout_layer(weights, training=training), value.dtype)
        context = ops.matmul(dropped, heads_first(value))  # (B, N, T, H)
        return heads_first(context), weights if return_scores else None

    def __call__(self, query, value=None, *args, **kwargs):
        # Keras hands the masks attached to the inputs over only where it sees two tensors: name a lone input twice.
        if value is None and not args and all(kwargs.get(name) is None for name in ("key", "positions", "cache")):
            value = query
        return super().__call__(query, value, *args, **kwargs)

    def call(
        self,
        query,
        value=None,
        key=None,
        attention_mask=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        use_causal_mask=False,
        positions=None,
        cache=None,
        return_attention_scores=False,
        training=None,
    ):
        if value is None and cache is None and value_mask is None:
            value_mask = query_mask

        # Queries, keys and values, one of each per head.
        query_positions = ops.arange(ops.shape(query)[1]) if positions is None else positions
        queries = self.project_query(query, query_positions)  # (B, T, N, H)
        keys, values, key_positions, cache = self.keys_and_values(query, value, key, query_positions, cache)

        # Who may look where.
        mask = combine_masks(
            with_head_axis(attention_mask),
            None if query_mask is None else query_mask[:, None, :, None],  # (B, 1, T, 1)
            None if value_mask is None else value_mask[:, None, None, :],  # (B, 1, 1, S)
            None if key_mask is None else key_mask[:, None, None, :],  # (B, 1, 1, S)
        )
        bias = self.score_bias(query_positions, key_positions)
        if grows(cache) and "visible" in cache:
            mask = combine_masks(mask, with_head_axis(cache["visible"]))
            bias = at_places(bias, cache["slot_positions"])
            use_causal_mask = False
        else:
            use_causal_mask = use_causal_mask or grows(cache)
        is_causal = use_causal_mask and mask is None and bias is None and positions is None and cache is None
        if use_causal_mask and not is_causal:
            mask = combine_masks(mask, with_head_axis(causal_mask(query_positions, key_positions)))

        # Attention, and the heads put together again.
        context, scores = self.attend(
            queries, keys, values, mask, bias, is_causal, return_scores=return_attention_scores, training=training
        )  # (B, T, N, H), (B, N, T, S)
        output = self.project_output(context)  # (B, T, M)
        results = [output]
        if cache is not None:
            results.append(cache)
        if return_attention_scores:
            results.append(scores)
        return results[0] if len(results) == 1 else tuple(results)

    def keys_and_values(self, query, value, key, query_positions, cache):
        """Projects keys and values, or takes them from a cache.

        Returns:
            A tuple: keys and values `(B, S, N, H)`, the positions they stand at, and the cache with what was added to it.
        """
        if cache is None or grows(cache):
            positions = query_positions if value is None else ops.arange(ops.shape(value)[1])
            value = query if value is None else value
            key = value if key is None else key
            keys = self.project_key(key, positions)  # (B, S, N, H)
            values = self.project_value(value, positions)  # (B, S, N, H)
            if cache is None:
                return keys, values, positions, None
            cache = self.write_cache(cache, keys, values, query_positions)
            keys, values = cache["key"], cache["value"]  # (B, N, L, H)
        else:
            keys, values = cache["fixed_key"], cache["fixed_value"]  # (B, N, S, H)
        return heads_first(keys), heads_first(values), ops.arange(ops.shape(keys)[2]), cache

    def growing_cache(self, batch_size, length: int) -> dict:
        """Makes an empty cache for self-attention, with room for `length` positions: `{"key", "value"}`, `(B, N, L, H)`."""
        shape = (batch_size, self.num_heads, length)
        return {
            "key": ops.zeros((*shape, self.key_dim), dtype=self.compute_dtype),
            "value": ops.zeros((*shape, self.value_dim or self.key_dim), dtype=self.compute_dtype),
        }

    def fixed_cache(self, value, key=None) -> dict:
        """Projects keys and values once, for all steps of cross-attention: `{"fixed_key", "fixed_value"}`, `(B, N, S, H)`."""
        key = value if key is None else key
        positions = ops.arange(ops.shape(key)[1])
        return {
            "fixed_key": heads_first(self.project_key(key, positions)),
            "fixed_value": heads_first(self.project_value(value, positions)),
        }

    def write_cache(self, cache: dict, key, value, positions) -> dict:
        """Writes keys and values `(B, T, N, H)` into a growing cache at `positions`, `(T,)` or `(B, T)`, or from `slot` on."""
        written = {}
        for name, new in {"key": key, "value": value}.items():
            if "slot" in cache:
                written[name] = write_from(cache[name], new, cache["slot"], cache.get("slot_rows"))
            else:
                written[name] = write_at(cache[name], new, positions)
        return {**cache, **written}

    @property
    def has_plain_cache(self) -> bool:
        """Whether the cache is written and read here, and not in a way of a subclass's own."""
        own = ("call", "keys_and_values", "growing_cache", "write_cache")
        return all(getattr(type(self), name) is getattr(MultiHeadAttention, name) for name in own)

    def compute_output_shape(self, query_shape, value_shape=None, key_shape=None):
        return (*query_shape[:-1], self.output_dim or query_shape[-1])

    def compute_output_spec(self, query, value=None, key=None, *args, cache=None, return_attention_scores=False, **kwargs):
        results = [keras.KerasTensor(self.compute_output_shape(query.shape), dtype=self.compute_dtype)]
        keys = query if value is None else value
        if cache is not None:
            results.append({name: keras.KerasTensor(x.shape, dtype=x.dtype) for name, x in cache.items()})
            keys = next(iter(cache.values()))
        if return_attention_scores:
            length = keys.shape[1 if cache is None else 2]
            shape = (query.shape[0], self.num_heads, query.shape[1], length)
            results.append(keras.KerasTensor(shape, dtype="float32"))
        return results[0] if len(results) == 1 else tuple(results)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "output_dim": self.output_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }
