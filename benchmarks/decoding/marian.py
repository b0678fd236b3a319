"""Hugging Face's Marian with the shared weights."""

from collections.abc import Callable

import numpy as np
import torch
from transformers import MarianConfig, MarianMTModel

from benchmarks.decoding.jobs import END_ID, LIMIT, START_ID, Job, padded
from benchmarks.decoding.weights import NUM_POSITIONS, make_weights
from benchmarks.random_batches import PAD_ID
from benchmarks.shapes import Shape

LAYERS = {
    "self_attention/query": "self_attn.q_proj",
    "self_attention/key": "self_attn.k_proj",
    "self_attention/value": "self_attn.v_proj",
    "self_attention/output": "self_attn.out_proj",
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention/query": "encoder_attn.q_proj",
    "cross_attention/key": "encoder_attn.k_proj",
    "cross_attention/value": "encoder_attn.v_proj",
    "cross_attention/output": "encoder_attn.out_proj",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward/hidden": "fc1",
    "feed_forward/output": "fc2",
    "feed_forward_norm": "final_layer_norm",
}
WEIGHTS = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}
AROUND = {
    "source_embedding/embeddings": "model.encoder.embed_tokens.weight",
    "target_embedding/embeddings": "model.decoder.embed_tokens.weight",
    "source_positions/embeddings": "model.encoder.embed_positions.weight",
    "target_positions/embeddings": "model.decoder.embed_positions.weight",
    "logits/kernel": "lm_head.weight",
}


class MarianDecoder:
    """Runs `generate`, eagerly."""

    def __init__(self, shape: Shape):
        self.vocabulary_size = shape.vocabulary_size
        self.model = MarianMTModel(config_of(shape)).eval()
        state = {marian_name(path): torch.from_numpy(marian_layout(path, value)) for path, value in make_weights(shape).items()}
        missing, unexpected = self.model.load_state_dict(state, strict=False)
        if unexpected or set(missing) - {"final_logits_bias"}:
            raise ValueError(f"The weights do not fit this version of Marian: {missing} are missing, {unexpected} unknown")

    def prepare(self, job: Job) -> Callable[[], list]:
        """Returns a function that translates all batches of a job."""
        options = {"num_beams": job.beam_size, "do_sample": False, "max_new_tokens": job.fixed_length or LIMIT}
        if job.beam_size > 1:
            options["early_stopping"] = True  # At the first `num_beams` ends, as CTranslate2 does.
        if job.fixed_length is not None:
            options["min_new_tokens"] = job.fixed_length
        batches = [torch.from_numpy(padded(rows)).long() for rows in job.batches(self.vocabulary_size)]
        inputs = [{"input_ids": ids, "attention_mask": (ids != PAD_ID).long()} for ids in batches]
        return lambda: [self.model.generate(**one, **options) for one in inputs]

    def read(self, job: Job, found: list) -> tuple[list[list[int]], list[int]]:
        """Cuts each translation at its end."""
        rows = [before_end(row[1:]) for sequences in found for row in sequences.tolist()]
        return rows, [sequences.shape[1] - 1 for sequences in found]


def before_end(row: list[int]) -> list[int]:
    """Returns what stands before the end."""
    return row[: row.index(END_ID)] if END_ID in row else row


def marian_name(path: str) -> str:
    """Returns Marian's name of one of our weights."""
    if path in AROUND:
        return AROUND[path]
    block, _, rest = path.partition("/")  # "encoder_block_0", "self_attention/query/kernel"
    side, _, number = block.split("_")
    layer, _, weight = rest.rpartition("/")
    return f"model.{side}.layers.{number}.{LAYERS[layer]}.{WEIGHTS[weight]}"


def marian_layout(path: str, value: np.ndarray) -> np.ndarray:
    """Returns a weight as torch lays it out."""
    return np.ascontiguousarray(value.T) if path.endswith("kernel") else value


def config_of(shape: Shape) -> MarianConfig:
    """Describes the shape to Marian."""
    return MarianConfig(
        vocab_size=shape.vocabulary_size,
        d_model=shape.model_dim,
        encoder_layers=shape.num_layers,
        decoder_layers=shape.num_layers,
        encoder_attention_heads=shape.num_heads,
        decoder_attention_heads=shape.num_heads,
        encoder_ffn_dim=shape.feed_forward_dim,
        decoder_ffn_dim=shape.feed_forward_dim,
        max_position_embeddings=NUM_POSITIONS,
        activation_function="relu",
        scale_embedding=True,
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=False,
        pad_token_id=PAD_ID,
        eos_token_id=END_ID,
        decoder_start_token_id=START_ID,
        forced_eos_token_id=None,
    )


def make_decoder(shape: Shape, mode: str) -> MarianDecoder:
    """Builds the model."""
    return MarianDecoder(shape)
