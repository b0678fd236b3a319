"""Hugging Face's own classes with the checkpoint."""

from collections.abc import Callable

import torch
from transformers import MarianMTModel

from benchmarks.decoding.jobs import Job
from benchmarks.importing.checkpoint import source_rows


class HuggingFaceDecoder:
    """Runs `generate`, eagerly, with the checkpoint's own settings, but for beams and lengths."""

    def __init__(self, folder: str):
        self.model = MarianMTModel.from_pretrained(folder).eval()

    def prepare(self, job: Job) -> Callable[[], list]:
        """Returns a function that translates all batches of a job."""
        options = {"num_beams": job.beam_size, "max_new_tokens": job.fixed_length, "min_new_tokens": job.fixed_length - 1}
        batches = [torch.tensor(rows) for rows in source_rows(job, self.model.config.vocab_size)]
        inputs = [{"input_ids": ids, "attention_mask": torch.ones_like(ids)} for ids in batches]
        return lambda: [self.model.generate(**one, **options) for one in inputs]

    def read(self, job: Job, found: list) -> tuple[list[list[int]], list[int]]:
        """Takes the tokens between start and end."""
        rows = [row[1 : job.fixed_length] for sequences in found for row in sequences.tolist()]
        return rows, [sequences.shape[1] - 1 for sequences in found]


def make_decoder(folder: str, mode: str) -> HuggingFaceDecoder:
    """Loads the checkpoint."""
    return HuggingFaceDecoder(folder)
