"""CTranslate2 with the checkpoint, which goes through our bridges in and out."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import ctranslate2

from benchmarks.decoding.decoder import with_steps
from benchmarks.decoding.jobs import Job
from benchmarks.importing.checkpoint import source_rows

CONVERT = """
import sys
from keras_transformer.bridges import from_marian, to_ctranslate2
to_ctranslate2(from_marian(sys.argv[1]), sys.argv[2], sys.argv[3])
"""


class CTranslate2Decoder:
    """Runs `Translator.translate_batch`. All threads work on a whole batch, or, if it is split, each on a part of its own."""

    def __init__(self, folder: str, precision: str, is_split: bool):
        self.num_parts = int(os.environ["OMP_NUM_THREADS"]) if is_split else 1
        self.tokens = list(json.loads((Path(folder) / "vocab.json").read_text(encoding="utf8")))
        self.ids = {token: id for id, token in enumerate(self.tokens)}
        with tempfile.TemporaryDirectory() as written:
            # Keras and TensorFlow stay out of this process, whose memory is measured.
            command = [sys.executable, "-c", CONVERT, folder, f"{written}/model", precision]
            subprocess.run(command, check=True, env={**os.environ, "KERAS_BACKEND": "tensorflow"})
            self.translator = ctranslate2.Translator(
                f"{written}/model",
                compute_type=precision,
                inter_threads=self.num_parts,
                intra_threads=int(os.environ["OMP_NUM_THREADS"]) // self.num_parts,
            )

    def prepare(self, job: Job) -> Callable[[], list]:
        """Returns a function that translates all batches of a job."""
        options = {
            "beam_size": job.beam_size,
            "min_decoding_length": job.fixed_length,
            "max_decoding_length": job.fixed_length,
            "suppress_sequences": [["<pad>"]],
        }
        if self.num_parts > 1:
            options["max_batch_size"] = -(-job.batch_size // self.num_parts)
        batches = [
            [[self.tokens[id] for id in row[:-1]] for row in rows]  # It adds the end itself.
            for rows in source_rows(job, len(self.tokens))
        ]
        return lambda: [self.translator.translate_batch(sources, **options) for sources in batches]

    def read(self, job: Job, found: list) -> tuple[list[list[int]], list[int]]:
        """Takes the best translation of each sentence, without the last token, where the others have an end."""
        words = job.fixed_length - 1
        batches = [[[self.ids[token] for token in result.hypotheses[0][:words]] for result in results] for results in found]
        return with_steps(batches, job)


def make_decoder(folder: str, mode: str) -> CTranslate2Decoder:
    """Imports the checkpoint, writes it and loads it."""
    return CTranslate2Decoder(folder, mode.removesuffix("-split"), mode.endswith("-split"))
