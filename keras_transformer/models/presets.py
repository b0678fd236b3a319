"""Shapes of Transformers that have a name."""

PRESETS = {
    # The paper's base model (table 3).
    "base": {},
    # The paper's big model (table 3).
    "big": {"model_dim": 1024, "feed_forward_dim": 4096, "num_heads": 16, "dropout": 0.3},
    # A model for a corpus of some hundred thousand sentences, or for a laptop.
    "small": {
        "model_dim": 256,
        "feed_forward_dim": 1024,
        "num_heads": 4,
        "num_encoder_layers": 4,
        "num_decoder_layers": 4,
    },
    # "Transformer-Tiny" of Wu et al., "Good for Misconceived Reasons" (2021): the best size for Multi30k's 29,000 sentences.
    "tiny": {
        "model_dim": 128,
        "feed_forward_dim": 256,
        "num_heads": 4,
        "num_encoder_layers": 4,
        "num_decoder_layers": 4,
        "dropout": 0.3,
    },
}
