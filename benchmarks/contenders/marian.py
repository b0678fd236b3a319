"""Hugging Face's Marian, the architecture of the OPUS-MT models, with fresh weights."""

import torch
from transformers import MarianConfig, MarianMTModel

from benchmarks.contenders.runner import Runner
from benchmarks.contenders.torch_training import make_torch_runner
from benchmarks.random_batches import PAD_ID
from benchmarks.shapes import Shape


class Marian(torch.nn.Module):
    """Calls Marian as training does: hidden source padding, no cache."""

    def __init__(self, config: MarianConfig):
        super().__init__()
        self.model = MarianMTModel(config)

    def forward(self, source_ids, target_ids):
        """Computes logits `(B, T, V)`."""
        return self.model(
            input_ids=source_ids,
            attention_mask=(source_ids != PAD_ID).long(),
            decoder_input_ids=target_ids,
            use_cache=False,
        ).logits


def make_runner(shape: Shape, mode: str) -> Runner:
    """Builds the module."""
    config = MarianConfig(
        vocab_size=shape.vocabulary_size,
        d_model=shape.model_dim,
        encoder_layers=shape.num_layers,
        decoder_layers=shape.num_layers,
        encoder_attention_heads=shape.num_heads,
        decoder_attention_heads=shape.num_heads,
        encoder_ffn_dim=shape.feed_forward_dim,
        decoder_ffn_dim=shape.feed_forward_dim,
        max_position_embeddings=shape.length,
        activation_function="relu",
        dropout=shape.dropout,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        pad_token_id=PAD_ID,
        eos_token_id=2,
        decoder_start_token_id=1,
        forced_eos_token_id=2,
    )
    return make_torch_runner(Marian(config), shape)
