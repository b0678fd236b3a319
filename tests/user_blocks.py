"""A user's own blocks: rotary self-attention, a constructor argument and weights of their own."""

import keras
from keras import ops

import keras_transformer as kt


@keras.saving.register_keras_serializable(package="user")
class RotaryAttention(kt.layers.MultiHeadAttention):
    """Turns each pair of query and key channels by an angle that grows with the position."""

    def __init__(self, *args, base=10000.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.base = base

    def rotate(self, x, positions):
        half = x.shape[-1] // 2
        frequencies = self.base ** (-ops.arange(half, dtype="float32") / half)
        angles = ops.cast(positions, "float32")[..., None, None] * frequencies  # (..., T, 1, H / 2)
        cosine, sine = ops.cast(ops.cos(angles), x.dtype), ops.cast(ops.sin(angles), x.dtype)
        first, second = x[..., :half], x[..., half:]
        return ops.concatenate([first * cosine - second * sine, first * sine + second * cosine], axis=-1)

    def project_query(self, query, positions):
        return self.rotate(super().project_query(query, positions), positions)

    def project_key(self, key, positions):
        return self.rotate(super().project_key(key, positions), positions)

    def get_config(self):
        return {**super().get_config(), "base": self.base}


class RotaryMixin:
    """Rotary self-attention whose output goes through a learned gate."""

    def __init__(self, *args, base=10000.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.base = base

    def make_gate(self):
        self.gate = self.add_weight(shape=(1,), initializer=keras.initializers.RandomUniform(0.5, 1.5), name="gate")

    def make_self_attention(self, model_dim):
        return self.make_attention(model_dim, RotaryAttention, name="self_attention", base=self.base)

    def leave(self, x, sublayer_output, norm, dropout, training=None):
        return super().leave(x, sublayer_output * ops.cast(self.gate, x.dtype), norm, dropout, training)

    def get_config(self):
        return {**super().get_config(), "base": self.base}


@keras.saving.register_keras_serializable(package="user")
class RotaryEncoderBlock(RotaryMixin, kt.layers.EncoderBlock):
    def build(self, input_shape):
        super().build(input_shape)
        self.make_gate()


@keras.saving.register_keras_serializable(package="user")
class RotaryDecoderBlock(RotaryMixin, kt.layers.DecoderBlock):
    def build(self, inputs_shape, encoded_shape=None):
        super().build(inputs_shape, encoded_shape)
        self.make_gate()


def rotary_transformer(**overrides):
    """A small model that uses the blocks above throughout."""
    return kt.Transformer(
        small_config(**overrides),
        encoder_block=RotaryEncoderBlock,
        encoder_block_options={"base": 500.0},
        decoder_block=RotaryDecoderBlock,
        decoder_block_options={"base": 700.0},
    )


def small_config(**overrides):
    fields = {
        "vocabulary_size": 37,
        "model_dim": 16,
        "feed_forward_dim": 24,
        "num_heads": 4,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
    }
    return kt.TransformerConfig(**{**fields, **overrides})
