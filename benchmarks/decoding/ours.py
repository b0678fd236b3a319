"""This package, on whichever backend the environment names."""

from collections.abc import Callable

import keras
import numpy as np

from benchmarks.decoding.decoder import with_steps
from benchmarks.decoding.jobs import LIMIT, Job, padded
from benchmarks.decoding.our_model import make_model
from benchmarks.shapes import Shape
from keras_transformer.decoding import SearchOptions, compile_search


class OurDecoder:
    """Runs compiled searches, one for each set of options; JAX compiles for each shape as well."""

    def __init__(self, shape: Shape):
        self.vocabulary_size = shape.vocabulary_size
        self.model = make_model(shape)
        self.searches, self.warm = {}, set()

    def prepare(self, job: Job) -> Callable[[], list]:
        """Returns a function that translates all batches of a job. The end is the last of the tokens that are asked for."""
        words = LIMIT if job.fixed_length is None else job.fixed_length - 1
        options = SearchOptions(beam_size=job.beam_size, min_length=0 if job.fixed_length is None else words)
        if options not in self.searches:
            self.searches[options] = compile_search(self.model, options)
        search = self.searches[options]
        batches = [
            {"source_ids": padded(rows), "max_lengths": np.full(len(rows), words, "int32")}
            for rows in job.batches(self.vocabulary_size)
        ]
        if (options, job.batch_size) not in self.warm or keras.backend.backend() == "jax":
            translate(search, batches)  # Larger batches have another graph than small ones.
            self.warm.add((options, job.batch_size))
        return lambda: translate(search, batches)

    def read(self, job: Job, found: list) -> tuple[list[list[int]], list[int]]:
        """Takes the best translation of each sentence."""
        batches = [
            [
                tokens[: length - 1].tolist()
                for tokens, length in zip(result["tokens"][:, 0], result["lengths"][:, 0], strict=True)
            ]
            for result in found
        ]
        return with_steps(batches, job)


def translate(search, batches: list[dict]) -> list[dict]:
    """Translates batch by batch."""
    return [search(inputs) for inputs in batches]


def make_decoder(shape: Shape, mode: str) -> OurDecoder:
    """Builds the model as its users do."""
    return OurDecoder(shape)
