"""The decoder block (section 3.1 of the paper)."""

import keras
from keras import ops, tree

from keras_transformer.layers.multi_head_attention import MultiHeadAttention
from keras_transformer.layers.spaced_kernel import kernel_in_use
from keras_transformer.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderBlock(TransformerBlock):
    """Causal self-attention, attention to the encoder's output, then a feed-forward network.

        x = LayerNorm(x + Dropout(CausalSelfAttention(x)))                         (section 3.1)
        x = LayerNorm(x + Dropout(CrossAttention(x, encoded)))
        x = LayerNorm(x + Dropout(FeedForward(x)))

    Override `make_self_attention`, `make_cross_attention`, `make_feed_forward`, `make_norm` or `make_dropout` to change a part.

    Args:
        feed_forward_dim, num_heads, **kwargs: These and all other arguments are those of `TransformerBlock`.

    Call arguments:
        inputs: Float tensor `(B, T, M)`.
        encoded: Float tensor `(B, S, M)`, the encoder's output. Not needed with a cache.
        encoded_mask: Boolean tensor `(B, S)`, False at the padding of `encoded`. Defaults to the mask Keras attached to it.
        positions: Integer tensor `(T,)` or `(B, T)`, where the tokens of `inputs` stand. Defaults to 0, 1, ..., T-1.
        cache: What `make_cache` or an earlier step returned.
        training: Whether dropout is at work.

    Returns:
        A float tensor `(B, T, M)`. With a cache, `(output, cache)`.

    Masking:
        Self-attention hides the future and nothing else: padding stands at the end, where no real token looks. Cross-attention
        hides the padding of `encoded`.

    Example:

    >>> block = DecoderBlock(feed_forward_dim=2048, num_heads=8)
    >>> target, encoded = keras.random.normal((2, 7, 512)), keras.random.normal((2, 10, 512))
    >>> block(target, encoded).shape
    (2, 7, 512)
    >>> cache = block.make_cache(encoded, length=20)
    >>> step, cache = block(target[:, :1], positions=keras.ops.array([0]), cache=cache)
    >>> step.shape
    (2, 1, 512)
    """

    def build(self, inputs_shape, encoded_shape=None):
        model_dim = inputs_shape[-1]
        self.self_attention = self.make_self_attention(model_dim)
        self.self_attention_norm = self.make_norm("self_attention_norm")
        self.self_attention_dropout = self.make_dropout("self_attention_dropout")
        self.cross_attention = self.make_cross_attention(model_dim)
        self.cross_attention_norm = self.make_norm("cross_attention_norm")
        self.cross_attention_dropout = self.make_dropout("cross_attention_dropout")
        self.feed_forward = self.make_feed_forward(model_dim)
        self.feed_forward_norm = self.make_norm("feed_forward_norm")
        self.feed_forward_dropout = self.make_dropout("feed_forward_dropout")
        self.self_attention.build(inputs_shape)
        self.cross_attention.build(inputs_shape, encoded_shape or inputs_shape)
        for part in (self.self_attention_norm, self.cross_attention_norm, self.feed_forward, self.feed_forward_norm):
            part.build(inputs_shape)

    def make_cross_attention(self, model_dim: int) -> keras.layers.Layer:
        """Makes the attention to the encoder's output."""
        return self.make_attention(model_dim, MultiHeadAttention, name="cross_attention")

    def make_cache(self, encoded, length: int) -> dict:
        """Makes the cache for step-by-step decoding of up to `length` tokens, with the encoder's output projected once.

        Returns:
            `{"self_attention": {...}, "cross_attention": {...}}`, dictionaries of tensors of fixed shape, batch first.
        """
        return {
            "self_attention": self.self_attention.growing_cache(ops.shape(encoded)[0], length),
            "cross_attention": self.cross_attention.fixed_cache(encoded),
        }

    @property
    def has_plain_cache(self) -> bool:
        """Whether the cache is that of this class and of `MultiHeadAttention`, and not a subclass's own."""
        own = ("call", "make_cache")
        is_plain = all(getattr(type(self), name) is getattr(DecoderBlock, name) for name in own)
        return is_plain and all(
            getattr(attention, "has_plain_cache", False) for attention in (self.self_attention, self.cross_attention)
        )

    def joint_projections(self) -> list:
        """Returns the linear maps that see the same input; see `layers.spaced_kernel`."""
        if not getattr(self.self_attention, "has_plain_cache", False):
            return []
        return [getattr(self.self_attention, name, None) for name in ("query_dense", "key_dense", "value_dense")]

    def call(self, inputs, encoded=None, encoded_mask=None, positions=None, cache=None, training=None):
        entrance = kernel_in_use(self.self_attention_dropout)  # See `layers.folded_norm`.
        x = inputs if entrance is None else entrance(inputs)
        if cache is not None:
            cache = dict(cache)
        # Self-attention.
        y = self.enter(x, self.self_attention_norm)
        if cache is None:
            y = self.self_attention(y, use_causal_mask=True, positions=positions, training=training)
        else:
            y, cache["self_attention"] = self.self_attention(
                y, use_causal_mask=True, positions=positions, cache=cache["self_attention"], training=training
            )
        x = self.leave(x, y, self.self_attention_norm, self.self_attention_dropout, training)
        # Cross-attention.
        y = self.enter(x, self.cross_attention_norm)
        if cache is None:
            y = self.cross_attention(y, encoded, key_mask=encoded_mask, positions=positions, training=training)
        else:
            y, cache["cross_attention"] = self.cross_attention(
                y, key_mask=encoded_mask, positions=positions, cache=cache["cross_attention"], training=training
            )
        x = self.leave(x, y, self.cross_attention_norm, self.cross_attention_dropout, training)
        # Feed-forward.
        y = self.enter(x, self.feed_forward_norm)
        y = self.feed_forward(y, training=training)
        x = self.leave(x, y, self.feed_forward_norm, self.feed_forward_dropout, training)
        return x if cache is None else (x, cache)

    def compute_output_shape(self, inputs_shape, encoded_shape=None):
        return tuple(inputs_shape)

    def compute_output_spec(self, inputs, encoded=None, encoded_mask=None, positions=None, cache=None, training=None):
        output = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if cache is None:
            return output
        return output, tree.map_structure(lambda x: keras.KerasTensor(x.shape, dtype=x.dtype), cache)
