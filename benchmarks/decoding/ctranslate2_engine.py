"""CTranslate2 with the shared weights."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable

import ctranslate2

from benchmarks.decoding.decoder import with_steps
from benchmarks.decoding.jobs import LIMIT, Job
from benchmarks.decoding.words import words_of
from benchmarks.shapes import Shape


class CTranslate2Decoder:
    """Runs `Translator.translate_batch`, which drops sentences from the batch as they end.

    All threads work on a whole batch, or, if it is split, each on a part of its own.
    """

    def __init__(self, shape: Shape, precision: str, is_split: bool):
        self.num_parts = int(os.environ["OMP_NUM_THREADS"]) if is_split else 1
        self.words = words_of(shape.vocabulary_size)
        self.ids = {word: number for number, word in enumerate(self.words)}
        with tempfile.TemporaryDirectory() as folder:
            # Keras and TensorFlow stay out of this process, whose memory is measured.
            command = [sys.executable, "-m", "benchmarks.decoding.write_ctranslate2", shape.name, f"{folder}/model", precision]
            subprocess.run(command, check=True, env={**os.environ, "KERAS_BACKEND": "tensorflow"})
            self.translator = ctranslate2.Translator(
                f"{folder}/model",
                compute_type=precision,
                inter_threads=self.num_parts,
                intra_threads=int(os.environ["OMP_NUM_THREADS"]) // self.num_parts,
            )

    def prepare(self, job: Job) -> Callable[[], list]:
        """Returns a function that translates all batches of a job."""
        options = {"beam_size": job.beam_size, "max_decoding_length": job.fixed_length or LIMIT}
        if job.fixed_length is not None:
            options["min_decoding_length"] = job.fixed_length
        if self.num_parts > 1:
            options["max_batch_size"] = -(-job.batch_size // self.num_parts)
        batches = [
            [[self.words[id] for id in row[:-1]] for row in rows]  # It adds the end itself.
            for rows in job.batches(len(self.words))
        ]
        return lambda: [self.translator.translate_batch(sources, **options) for sources in batches]

    def read(self, job: Job, found: list) -> tuple[list[list[int]], list[int]]:
        """Takes the best translation of each sentence."""
        batches = [[[self.ids[word] for word in result.hypotheses[0]] for result in results] for results in found]
        return with_steps(batches, job)


def make_decoder(shape: Shape, mode: str) -> CTranslate2Decoder:
    """Writes the model and loads it."""
    return CTranslate2Decoder(shape, mode.removesuffix("-split"), mode.endswith("-split"))
