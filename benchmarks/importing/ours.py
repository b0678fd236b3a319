"""This package with an imported checkpoint, on whichever backend the environment names."""

from collections.abc import Callable

import keras
import numpy as np

from benchmarks.decoding.decoder import with_steps
from benchmarks.decoding.jobs import Job
from benchmarks.decoding.ours import translate
from benchmarks.importing.checkpoint import source_rows
from keras_transformer.bridges import from_marian
from keras_transformer.decoding import compile_search


class ImportedDecoder:
    """Runs compiled searches with the checkpoint's own options, but for beam and lengths."""

    def __init__(self, folder: str):
        self.translator = from_marian(folder)
        self.searches = {}

    def prepare(self, job: Job) -> Callable[[], list]:
        """Returns a function that translates all batches of a job. The end is the last of the tokens that are asked for."""
        words = job.fixed_length - 1
        options = self.translator.options.override(beam_size=job.beam_size, min_length=words, max_length=None, extra_length=0)
        is_new = options not in self.searches
        if is_new:
            self.searches[options] = compile_search(self.translator.model, options)
        search = self.searches[options]
        batches = [
            {"source_ids": np.array(rows, "int32"), "max_lengths": np.full(len(rows), words, "int32")}
            for rows in source_rows(job, self.translator.model.config.source_vocabulary_size)
        ]
        if is_new or keras.backend.backend() == "jax":
            translate(search, batches)
        return lambda: translate(search, batches)

    def read(self, job: Job, found: list) -> tuple[list[list[int]], list[int]]:
        """Takes the best translation of each sentence, without its end."""
        rows = [[tokens[: job.fixed_length - 1].tolist() for tokens in result["tokens"][:, 0]] for result in found]
        return with_steps(rows, job)


def make_decoder(folder: str, mode: str) -> ImportedDecoder:
    """Imports the checkpoint."""
    return ImportedDecoder(folder)
