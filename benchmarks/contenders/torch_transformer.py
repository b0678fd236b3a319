"""`torch.nn.Transformer` with a tied embedding and output."""

import torch

from benchmarks.contenders.runner import Runner
from benchmarks.contenders.torch_training import make_torch_runner
from benchmarks.random_batches import PAD_ID
from benchmarks.shapes import Shape


class TorchTransformer(torch.nn.Module):
    """Adds to `torch.nn.Transformer` what it leaves to its users: embedding, positions, masks and logits."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.scale = shape.model_dim**0.5
        self.embedding = torch.nn.Embedding(shape.vocabulary_size, shape.model_dim)
        torch.nn.init.normal_(self.embedding.weight, std=shape.model_dim**-0.5)
        self.positions = torch.nn.Parameter(torch.zeros(shape.length, shape.model_dim))
        self.dropout = torch.nn.Dropout(shape.dropout)
        self.transformer = torch.nn.Transformer(
            d_model=shape.model_dim,
            nhead=shape.num_heads,
            num_encoder_layers=shape.num_layers,
            num_decoder_layers=shape.num_layers,
            dim_feedforward=shape.feed_forward_dim,
            dropout=shape.dropout,
            batch_first=True,
        )
        future = torch.nn.Transformer.generate_square_subsequent_mask(shape.length, dtype=torch.bool)
        self.register_buffer("future", future)

    def embed(self, ids):
        """Looks up tokens and adds positions: `(B, T)` -> `(B, T, M)`."""
        return self.dropout(self.embedding(ids) * self.scale + self.positions)

    def forward(self, source_ids, target_ids):
        """Computes logits `(B, T, V)`."""
        source_is_padding = source_ids == PAD_ID
        decoded = self.transformer(
            self.embed(source_ids),
            self.embed(target_ids),
            tgt_mask=self.future,
            src_key_padding_mask=source_is_padding,
            memory_key_padding_mask=source_is_padding,
            tgt_is_causal=True,
        )
        return torch.nn.functional.linear(decoded, self.embedding.weight)


def make_runner(shape: Shape, mode: str) -> Runner:
    """Builds the module."""
    return make_torch_runner(TorchTransformer(shape), shape)
