"""The decoder block (section 3.1 of the paper)."""

import keras
from keras import ops, tree

from keras_transformer.layers.checks import check_built
from keras_transformer.layers.multi_head_attention import MultiHeadAttention
from keras_transformer.layers.spaced_kernel import kernel_in_use
from keras_transformer.layers.transformer_block import TransformerBlock
from keras_transformer.masks import check_masks


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderBlock(TransformerBlock):
    """Causal self-attention, attention to the encoder's output, then a feed-forward network.

    Without the second of them, `cross_attention=False`, it is the block of a language model.

        x = LayerNorm(x + Dropout(CausalSelfAttention(x)))                         (section 3.1)
        x = LayerNorm(x + Dropout(CrossAttention(x, encoded)))
        x = LayerNorm(x + Dropout(FeedForward(x)))

    Override `make_self_attention`, `make_cross_attention`, `make_feed_forward`, `make_norm` or `make_dropout` to change a part.

    Args:
        feed_forward_dim, num_heads, **kwargs: These and all other arguments are those of `TransformerBlock`.
        cross_attention: Whether there is attention to an encoder's output. Without it, `encoded` is not given.

    Call arguments:
        inputs: Float tensor `(B, T, M)`.
        encoded: Float tensor `(B, S, M)`, the encoder's output. Not needed with a cache.
        encoded_mask: Boolean tensor `(B, S)`, False at the padding of `encoded`. Defaults to the mask Keras attached to it.
        positions: Integer tensor `(T,)` or `(B, T)`, where the tokens of `inputs` stand. Defaults to 0, 1, ..., T-1.
        cache: What `make_cache` or an earlier step returned.
        attention_mask: Boolean tensor `(T, T)`, `(B, T, T)` or `(B, N, T, T)`, True where self-attention may look, if it is
            not the future: for several sentences side by side in a row. With a cache, the last axis is as long as the cache.
        return_attention_scores: Whether to return the attention weights as well.
        training: Whether dropout is at work.

    Returns:
        A float tensor `(B, T, M)`. With a cache, `(output, cache)`. The scores of self-attention and of cross-attention, if
        there is any, come last when asked for: float32 `(B, N, T, T)` and `(B, N, T, S)`.

    Masking:
        Self-attention hides the future and what `attention_mask` hides: padding stands at the end, where no real token looks.
        Cross-attention hides the padding of `encoded`.

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

    def __init__(self, *args, cross_attention: bool = True, **kwargs):
        super().__init__(*args, **kwargs)
        self.has_cross_attention = cross_attention

    def build(self, inputs_shape, encoded_shape=None):
        model_dim = inputs_shape[-1]
        self.input_spec = keras.InputSpec(ndim=3, axes={-1: model_dim})
        self.self_attention = self.make_self_attention(model_dim)
        self.self_attention_norm = self.make_norm("self_attention_norm")
        self.self_attention_dropout = self.make_dropout("self_attention_dropout")
        if self.has_cross_attention:
            self.cross_attention = self.make_cross_attention(model_dim)
            self.cross_attention_norm = self.make_norm("cross_attention_norm")
            self.cross_attention_dropout = self.make_dropout("cross_attention_dropout")
        self.feed_forward = self.make_feed_forward(model_dim)
        self.feed_forward_norm = self.make_norm("feed_forward_norm")
        self.feed_forward_dropout = self.make_dropout("feed_forward_dropout")
        self.self_attention.build(inputs_shape)
        if self.has_cross_attention:
            self.cross_attention.build(inputs_shape, encoded_shape or inputs_shape)
            self.cross_attention_norm.build(inputs_shape)
        for part in (self.self_attention_norm, self.feed_forward, self.feed_forward_norm):
            part.build(inputs_shape)

    def make_cross_attention(self, model_dim: int) -> keras.layers.Layer:
        """Makes the attention to the encoder's output."""
        return self.make_attention(model_dim, MultiHeadAttention, name="cross_attention")

    def make_cache(self, encoded, length: int, batch_size=None) -> dict:
        """Makes the cache for step-by-step decoding of up to `length` tokens, with the encoder's output projected once.

        Args:
            encoded: Float tensor `(B, S, M)`, the encoder's output; `None` for a block without cross-attention.
            length: Number of positions to make room for.
            batch_size: Number of sentences, where there is no `encoded` to tell it.

        Returns:
            `{"self_attention": {...}, "cross_attention": {...}}`, dictionaries of tensors of fixed shape, batch first. The
            second one is there if the block has cross-attention.
        """
        check_built(self, "make_cache")
        self.check_encoded(encoded)
        if encoded is None and batch_size is None:
            raise ValueError(
                "Without `encoded`, a cache needs `batch_size`, the number of sentences. Received: batch_size=None"
            )
        batch_size = batch_size if encoded is None else ops.shape(encoded)[0]
        cache = {"self_attention": self.self_attention.growing_cache(batch_size, length)}
        return cache if encoded is None else {**cache, "cross_attention": self.cross_attention.fixed_cache(encoded)}

    def check_encoded(self, encoded, cache: dict | None = None):
        """Raises a `ValueError` if the encoder's output is missing, or given to a block that does not look at it."""
        if encoded is None and cache is None and self.has_cross_attention:
            raise ValueError(
                "A block with cross-attention needs `encoded`, the encoder's output, or a `cache` from `make_cache`. For a "
                "model without an encoder, make it with `cross_attention=False`. Received: encoded=None, cache=None"
            )
        if encoded is not None and not self.has_cross_attention:
            raise ValueError(
                "A block made with `cross_attention=False` can't look at an encoder's output. Leave `encoded` out, or make "
                f"the block with cross-attention. Received: encoded of shape {tuple(encoded.shape)}"
            )

    @property
    def has_plain_cache(self) -> bool:
        """Whether the cache is that of this class and of `MultiHeadAttention`, and not a subclass's own."""
        own = ("call", "make_cache")
        is_plain = self.has_cross_attention and all(getattr(type(self), name) is getattr(DecoderBlock, name) for name in own)
        return is_plain and all(
            getattr(attention, "has_plain_cache", False) for attention in (self.self_attention, self.cross_attention)
        )

    def joint_projections(self) -> list:
        """Returns the linear maps that see the same input; see `layers.spaced_kernel`."""
        if not getattr(self.self_attention, "has_plain_cache", False):
            return []
        return [getattr(self.self_attention, name, None) for name in ("query_dense", "key_dense", "value_dense")]

    def call(
        self,
        inputs,
        encoded=None,
        encoded_mask=None,
        positions=None,
        cache=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
    ):
        self.check_encoded(encoded, cache)
        check_masks(encoded_mask=encoded_mask, attention_mask=attention_mask)
        options = {"positions": positions, "return_attention_scores": return_attention_scores, "training": training}
        entrance = kernel_in_use(self.self_attention_dropout)  # See `layers.folded_norm`.
        x = inputs if entrance is None else entrance(inputs)
        # Self-attention.
        y = self.enter(x, self.self_attention_norm)
        own = {"use_causal_mask": True, "attention_mask": attention_mask}
        y, cache, scores = self.attend("self_attention", y, cache=cache, **own, **options)
        x = self.leave(x, y, self.self_attention_norm, self.self_attention_dropout, training)
        # Cross-attention.
        if self.has_cross_attention:
            y = self.enter(x, self.cross_attention_norm)
            values = () if cache is not None else (encoded,)
            y, cache, others = self.attend("cross_attention", y, *values, cache=cache, key_mask=encoded_mask, **options)
            x = self.leave(x, y, self.cross_attention_norm, self.cross_attention_dropout, training)
            scores += others
        # Feed-forward.
        y = self.enter(x, self.feed_forward_norm)
        y = self.feed_forward(y, training=training)
        x = self.leave(x, y, self.feed_forward_norm, self.feed_forward_dropout, training)
        results = (x, *scores) if cache is None else (x, cache, *scores)
        return x if len(results) == 1 else results

    def compute_output_shape(self, inputs_shape, encoded_shape=None):
        return tuple(inputs_shape)

    def compute_output_spec(self, inputs, encoded=None, *args, cache=None, return_attention_scores=False, **kwargs):
        self.check_encoded(encoded, cache)
        check_masks(**{name: kwargs.get(name) for name in ("encoded_mask", "attention_mask")})
        results = [keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)]
        if cache is not None:
            results.append(tree.map_structure(lambda x: keras.KerasTensor(x.shape, dtype=x.dtype), cache))
        if return_attention_scores:
            values = {"self_attention": None, **({"cross_attention": encoded} if self.has_cross_attention else {})}
            for name, value in values.items():
                options = {"cache": None if cache is None else cache[name], "return_attention_scores": True}
                results.append(getattr(self, name).compute_output_spec(inputs, value, **options)[-1])
        return results[0] if len(results) == 1 else tuple(results)

    def get_config(self):
        return {**super().get_config(), "cross_attention": self.has_cross_attention}
