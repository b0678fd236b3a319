"""The shapes that are measured as configurations of ours."""

import keras_transformer as kt
from benchmarks.shapes import Shape


def config_of(shape: Shape, **fields) -> kt.TransformerConfig:
    """Returns the configuration of a shape, with other fields as they are given."""
    return kt.TransformerConfig(
        **{
            "vocabulary_size": shape.vocabulary_size,
            "model_dim": shape.model_dim,
            "feed_forward_dim": shape.feed_forward_dim,
            "num_heads": shape.num_heads,
            "num_encoder_layers": shape.num_layers,
            "num_decoder_layers": shape.num_layers,
            **fields,
        }
    )
