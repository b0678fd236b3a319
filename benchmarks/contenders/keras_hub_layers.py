"""The same model out of keras-hub's layers."""

import keras
import keras_hub

from benchmarks.contenders.keras_fit import make_fit_runner
from benchmarks.contenders.runner import Runner
from benchmarks.random_batches import PAD_ID
from benchmarks.shapes import Shape


def make_runner(shape: Shape, mode: str) -> Runner:
    """Builds encoder and decoder around one embedding, which also makes the logits."""
    embedding = keras_hub.layers.TokenAndPositionEmbedding(shape.vocabulary_size, shape.length, shape.model_dim)
    source_ids = keras.Input((None,), dtype="int32", name="source_ids")
    target_ids = keras.Input((None,), dtype="int32", name="target_ids")
    source_mask = keras.ops.not_equal(source_ids, PAD_ID)

    encoded = keras.layers.Dropout(shape.dropout)(embedding(source_ids))
    for _ in range(shape.num_layers):
        encoder = keras_hub.layers.TransformerEncoder(shape.feed_forward_dim, shape.num_heads, dropout=shape.dropout)
        encoded = encoder(encoded, padding_mask=source_mask)

    decoded = keras.layers.Dropout(shape.dropout)(embedding(target_ids))
    for _ in range(shape.num_layers):
        decoder = keras_hub.layers.TransformerDecoder(shape.feed_forward_dim, shape.num_heads, dropout=shape.dropout)
        decoded = decoder(decoded, encoded, encoder_padding_mask=source_mask)

    logits = embedding.token_embedding(decoded, reverse=True)
    model = keras.Model({"source_ids": source_ids, "target_ids": target_ids}, logits)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return make_fit_runner(model, keras.optimizers.Adam(1e-4), loss, shape, mode)
