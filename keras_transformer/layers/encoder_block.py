"""The encoder block (section 3.1 of the paper)."""

import keras

from keras_transformer.layers.transformer_block import TransformerBlock
from keras_transformer.masks import check_masks


@keras.saving.register_keras_serializable(package="keras_transformer")
class EncoderBlock(TransformerBlock):
    """Self-attention, then a feed-forward network, each with a residual connection and normalization.

        x = LayerNorm(x + Dropout(SelfAttention(x)))                               (section 3.1)
        x = LayerNorm(x + Dropout(FeedForward(x)))

    Override `make_self_attention`, `make_feed_forward`, `make_norm` or `make_dropout` to change a part.

    Args:
        feed_forward_dim, num_heads, **kwargs: These and all other arguments are those of `TransformerBlock`.

    Call arguments:
        inputs: Float tensor `(B, S, M)`.
        mask: Boolean tensor `(B, S)`, False at padding, which no position then attends to. Defaults to the mask that Keras
            attached to the input, if any.
        attention_mask: Boolean tensor `(S, S)`, `(B, S, S)` or `(B, N, S, S)`, True where a position may attend to another: for
            several sentences side by side in a row, or a prefix that all of a row may see.
        use_causal_mask: Whether a position attends only to itself and those before it.
        return_attention_scores: Whether to return the attention weights as well.
        training: Whether dropout is at work.

    Returns:
        A float tensor `(B, S, M)`; with `return_attention_scores` a tuple of it and the scores, float32 `(B, N, S, S)`.

    Masking:
        All masks are joined by a logical and. Padded keys are hidden; the rows of padded positions are computed, and mean
        nothing.

    Example:

    >>> block = EncoderBlock(feed_forward_dim=2048, num_heads=8)
    >>> block(keras.random.normal((2, 10, 512))).shape
    (2, 10, 512)
    """

    def build(self, input_shape):
        model_dim = input_shape[-1]
        self.input_spec = keras.InputSpec(ndim=3, axes={-1: model_dim})
        self.self_attention = self.make_self_attention(model_dim)
        self.self_attention_norm = self.make_norm("self_attention_norm")
        self.self_attention_dropout = self.make_dropout("self_attention_dropout")
        self.feed_forward = self.make_feed_forward(model_dim)
        self.feed_forward_norm = self.make_norm("feed_forward_norm")
        self.feed_forward_dropout = self.make_dropout("feed_forward_dropout")
        for part in (self.self_attention, self.self_attention_norm, self.feed_forward, self.feed_forward_norm):
            part.build(input_shape)

    def call(self, inputs, mask=None, attention_mask=None, use_causal_mask=False, return_attention_scores=False, training=None):
        check_masks(mask=mask, attention_mask=attention_mask)
        x = inputs
        # Self-attention.
        y = self.enter(x, self.self_attention_norm)
        options = {"use_causal_mask": use_causal_mask, "return_attention_scores": return_attention_scores, "training": training}
        y, _, scores = self.attend("self_attention", y, key_mask=mask, attention_mask=attention_mask, **options)
        x = self.leave(x, y, self.self_attention_norm, self.self_attention_dropout, training)
        # Feed-forward.
        y = self.enter(x, self.feed_forward_norm)
        y = self.feed_forward(y, training=training)
        x = self.leave(x, y, self.feed_forward_norm, self.feed_forward_dropout, training)
        return (x, *scores) if return_attention_scores else x

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def compute_output_spec(self, inputs, *args, return_attention_scores=False, **kwargs):
        check_masks(**{name: kwargs.get(name) for name in ("mask", "attention_mask")})
        output = keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype=self.compute_dtype)
        if not return_attention_scores:
            return output
        return output, self.self_attention.compute_output_spec(inputs, return_attention_scores=True)[-1]
