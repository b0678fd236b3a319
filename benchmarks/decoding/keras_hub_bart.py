"""keras-hub's BART of the same shape, with random weights of its own.

BART differs from the paper's Transformer in two normalizations of the embeddings and in its activation. It takes part where
all translations are equally long.
"""

from collections.abc import Callable

import keras
import keras_hub
import numpy as np

from benchmarks.decoding.jobs import START_ID, Job, padded
from benchmarks.decoding.weights import NUM_POSITIONS
from benchmarks.random_batches import PAD_ID
from benchmarks.shapes import Shape


class KerasHubDecoder:
    """Runs `generate`, without a token to stop at."""

    def __init__(self, shape: Shape, mode: str):
        self.vocabulary_size = shape.vocabulary_size
        self.is_compiled = mode == "xla"
        self.backbone = keras_hub.models.BartBackbone(
            vocabulary_size=shape.vocabulary_size,
            num_layers=shape.num_layers,
            num_heads=shape.num_heads,
            hidden_dim=shape.model_dim,
            intermediate_dim=shape.feed_forward_dim,
            dropout=0.0,
            max_sequence_length=NUM_POSITIONS,
        )
        self.models = {}

    def model(self, beam_size: int) -> keras.Model:
        """Returns the model with its sampler."""
        if beam_size not in self.models:
            sampler = keras_hub.samplers.BeamSampler(beam_size) if beam_size > 1 else keras_hub.samplers.GreedySampler()
            self.models[beam_size] = keras_hub.models.BartSeq2SeqLM(self.backbone, preprocessor=None)
            self.models[beam_size].compile(sampler=sampler, jit_compile=self.is_compiled)
        return self.models[beam_size]

    def prepare(self, job: Job) -> Callable[[], list]:
        """Returns a function that translates all batches of a job."""
        model = self.model(job.beam_size)
        batches = [inputs_of(padded(rows), job.fixed_length) for rows in job.batches(self.vocabulary_size)]
        translate(model, batches)  # Traces a graph for each shape.
        return lambda: translate(model, batches)

    def read(self, job: Job, found: list) -> tuple[list[list[int]], list[int]]:
        """Takes what stands behind the start."""
        batches = [result["decoder_token_ids"][:, 1:] for result in found]
        return [row for ids in batches for row in ids.tolist()], [ids.shape[1] for ids in batches]


def inputs_of(source_ids: np.ndarray, length: int) -> dict[str, np.ndarray]:
    """Makes room behind the start for a number of tokens."""
    target_ids = np.full((len(source_ids), length + 1), PAD_ID, "int32")
    target_ids[:, 0] = START_ID
    return {
        "encoder_token_ids": source_ids,
        "encoder_padding_mask": source_ids != PAD_ID,
        "decoder_token_ids": target_ids,
        "decoder_padding_mask": np.broadcast_to(np.arange(length + 1) == 0, target_ids.shape),
    }


def translate(model: keras.Model, batches: list[dict]) -> list[dict]:
    """Translates batch by batch."""
    return [model.generate(inputs, stop_token_ids=None) for inputs in batches]


def make_decoder(shape: Shape, mode: str) -> KerasHubDecoder:
    """Builds the model."""
    return KerasHubDecoder(shape, mode)
