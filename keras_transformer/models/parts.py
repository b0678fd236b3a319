"""The layers of a Transformer, as a `TransformerConfig` asks for them."""

from dataclasses import dataclass

import keras
from keras import ops

from keras_transformer.layers import (
    LearnedPositionalEncoding,
    PaddingMask,
    SinusoidalPositionalEncoding,
    TiedLogits,
    TokenEmbedding,
)
from keras_transformer.layers.initializers import initializer_for
from keras_transformer.layers.lean_norm import normalize
from keras_transformer.layers.rows import on_rows
from keras_transformer.models.config import TransformerConfig


@dataclass(frozen=True)
class TransformerParts:
    """The layers of a Transformer by name, and the two ways through them, encoder and decoder."""

    source_mask: keras.layers.Layer
    source_embedding: keras.layers.Layer
    target_embedding: keras.layers.Layer
    source_positions: keras.layers.Layer
    target_positions: keras.layers.Layer
    source_dropout: keras.layers.Layer
    target_dropout: keras.layers.Layer
    encoder_blocks: list[keras.layers.Layer]
    decoder_blocks: list[keras.layers.Layer]
    encoder_norm: keras.layers.Layer | None
    decoder_norm: keras.layers.Layer | None
    logits: keras.layers.Layer

    def encode(self, source_ids, source_mask, training=None):
        """Runs the encoder: ids `(B, S)` -> `(B, S, M)`."""
        x = self.source_positions(self.source_embedding(source_ids))
        x = self.source_dropout(x, training=training)
        for block in self.encoder_blocks:
            x = block(x, mask=source_mask, training=training)
        return x if self.encoder_norm is None else normalize(self.encoder_norm, x)

    def decode(self, target_ids, encoded, source_mask):
        """Runs the decoder on whole targets: ids `(B, T)` -> float32 logits `(B, T, V)`."""
        x = self.target_positions(self.target_embedding(target_ids))
        x = self.target_dropout(x)
        for block in self.decoder_blocks:
            x = block(x, encoded, encoded_mask=source_mask)
        return self.logits(self.leave_decoder(x))

    def decode_step(self, target_ids, positions, cache):
        """Runs the decoder on the next tokens: ids `(B, T)` -> float32 logits `(B, T, V)`, cache."""
        if keras.backend.is_float_dtype(getattr(positions, "dtype", "int32")):  # Blocks would round them first.
            positions = ops.cast(positions, "int32")
        x = self.target_positions(self.target_embedding(target_ids), positions=positions)
        source_mask = cache["source_mask"]
        new_cache = {"source_mask": source_mask}
        for block in self.decoder_blocks:
            x, new_cache[block.name] = block(x, encoded_mask=source_mask, positions=positions, cache=cache[block.name])
        return on_rows(self.logits, self.leave_decoder(x)), new_cache

    def leave_decoder(self, x):
        """Normalizes the output of the last decoder block, `(B, T, M)`, if the model does so."""
        return x if self.decoder_norm is None else normalize(self.decoder_norm, x)


def make_parts(
    config: TransformerConfig,
    policy,
    encoder_block: type,
    encoder_block_options: dict | None,
    decoder_block: type,
    decoder_block_options: dict | None,
) -> TransformerParts:
    """Makes all layers of a model."""
    source_embedding, target_embedding = make_embeddings(config, policy)
    return TransformerParts(
        source_mask=PaddingMask(config.pad_id, name="source_mask"),
        source_embedding=source_embedding,
        target_embedding=target_embedding,
        source_positions=make_positions(config, policy, "source_positions"),
        target_positions=make_positions(config, policy, "target_positions"),
        source_dropout=keras.layers.Dropout(config.dropout, dtype=policy, name="source_dropout"),
        target_dropout=keras.layers.Dropout(config.dropout, dtype=policy, name="target_dropout"),
        encoder_blocks=make_blocks(encoder_block, encoder_block_options, config, policy, "encoder"),
        decoder_blocks=make_blocks(decoder_block, decoder_block_options, config, policy, "decoder"),
        encoder_norm=make_final_norm(config, policy, "encoder_norm"),
        decoder_norm=make_final_norm(config, policy, "decoder_norm"),
        logits=make_logits(config, target_embedding),
    )


def make_embeddings(config: TransformerConfig, policy) -> tuple[TokenEmbedding, TokenEmbedding]:
    """Makes the embeddings of source and target: one layer twice if they are tied."""

    def make(size, name):
        return TokenEmbedding(size, config.model_dim, scale=config.embedding_scale, dtype=policy, name=name)

    if config.tie == "all":
        embedding = make(config.source_vocabulary_size, "token_embedding")
        return embedding, embedding
    source = make(config.source_vocabulary_size, "source_embedding")
    return source, make(config.target_vocabulary_size, "target_embedding")


def make_positions(config: TransformerConfig, policy, name: str) -> keras.layers.Layer:
    """Makes the positional encoding of one side."""
    if config.positions == "learned":
        return LearnedPositionalEncoding(config.max_length, dtype=policy, name=name)
    layout = "halves" if config.positions == "sinusoidal_halves" else "interleaved"
    return SinusoidalPositionalEncoding(layout, dtype=policy, name=name)


def make_blocks(block_class: type, options: dict | None, config: TransformerConfig, policy, side: str) -> list:
    """Makes the stack of blocks of one side, `"encoder"` or `"decoder"`."""
    return [
        block_class(
            **{
                "feed_forward_dim": getattr(config, f"{side}_feed_forward_dim"),
                "num_heads": getattr(config, f"{side}_num_heads"),
                "norm": config.norm,
                "activation": config.activation,
                "dropout": config.dropout,
                "attention_dropout": config.attention_dropout,
                "activation_dropout": config.activation_dropout,
                "use_bias": config.use_bias,
                "layer_norm_epsilon": config.layer_norm_epsilon,
                "dtype": policy,
                "name": f"{side}_block_{index}",
                **options_of_block(options or {}, f"{side}_block_{index}"),
            }
        )
        for index in range(getattr(config, f"num_{side}_layers"))
    ]


def options_of_block(options: dict, name: str) -> dict:
    """Returns the options of one of several blocks: a seeded initializer would give all of them the same weights."""
    initializer = keras.initializers.Initializer
    return {key: initializer_for(value, name) if isinstance(value, initializer) else value for key, value in options.items()}


def make_final_norm(config: TransformerConfig, policy, name: str) -> keras.layers.Layer | None:
    """Makes the normalization behind a stack of pre-norm blocks; post-norm blocks end in one of their own."""
    if config.norm == "post":
        return None
    return keras.layers.LayerNormalization(epsilon=config.layer_norm_epsilon, dtype=policy, name=name)


def make_logits(config: TransformerConfig, target_embedding: TokenEmbedding) -> keras.layers.Layer:
    """Makes the output projection, in float32 under every policy."""
    if config.tie == "none":
        return keras.layers.Dense(config.target_vocabulary_size, use_bias=config.output_bias, dtype="float32", name="logits")
    return TiedLogits(target_embedding, use_bias=config.output_bias, dtype="float32", name="logits")
