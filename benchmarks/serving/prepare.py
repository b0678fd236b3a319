"""Writes what engines serve: `python -m benchmarks.serving.prepare FOLDER SHAPE`, or FOLDER RUN TEXT."""

import dataclasses
import json
import sys
from pathlib import Path

import keras
import numpy as np

import keras_transformer as kt
from benchmarks.data import generate
from benchmarks.our_config import config_of
from benchmarks.shapes import SHAPES
from keras_transformer.serving.server_files import BATCH_SIZES
from keras_transformer.serving.warm_up import requests

NUM_SENTENCES = 256
NUM_LINES = 20_000
TARGET_TOKENS = 24
CTRANSLATE2_SEARCH = {"penalty": "power", "ends_within_beam": True, "stopping": "first"}


def main(folder: Path, name: str, text: str | None = None):
    """Writes a model as an export and for CTranslate2, its tokenizer, and sentences.

    Args:
        folder: Where everything goes.
        name: A shape, whose weights are random, or the folder of a run.
        text: Sentences for the model of a run, one a line.
    """
    if text is None:
        translator, lines = random_translator(folder, name)
        lengths = {"min_decoding_length": TARGET_TOKENS, "max_decoding_length": TARGET_TOKENS}
        sentences = chosen(translator.tokenizer.source, lines)
    else:
        found = kt.Translator.load(name)
        translator = kt.Translator(found.model, found.tokenizer, dataclasses.replace(found.options, **CTRANSLATE2_SEARCH))
        sentences = Path(text).read_text(encoding="utf8").splitlines()
        # CTranslate2 has one limit for all: that of the longest source. Ours has one for each.
        longest = max(map(len, translator.tokenizer.source.encode(sentences)))
        lengths = {"max_decoding_length": min(longest + found.options.extra_length, translator.model.config.max_length)}
    options = translator.options
    search = {"beam_size": options.beam_size, "length_penalty": options.length_penalty}
    write_json(folder / "search.json", {**search, **lengths})
    write_json(folder / "sentences.json", sentences)
    kt.export_saved_model(translator, folder / "export", device="cpu", samples=sentences[:2])
    warm_up = list(requests(BATCH_SIZES, sentences[0].split(), {**search, "max_length": 0}))  # Those that are in the export.
    write_json(folder / "warm_up.json", warm_up)
    kt.bridges.to_ctranslate2(translator, folder / "ctranslate2")
    translator.tokenizer.source.save(folder / "tokenizer.model")


def random_translator(folder: Path, shape: str) -> tuple[kt.Translator, list[str]]:
    """Makes a model of random weights, all of whose translations have as many tokens, and sentences to choose from."""
    generate(folder, NUM_LINES, num_tokenizer_lines=NUM_LINES)
    tokenizer = kt.Tokenizer.load(folder / "tokenizer")
    keras.utils.set_random_seed(0)
    config = config_of(SHAPES[shape], vocabulary_size=tokenizer.vocabulary_size)
    options = kt.SearchOptions(min_length=TARGET_TOKENS - 1, max_length=TARGET_TOKENS - 1)
    lines = (folder / "source").read_text(encoding="utf8").splitlines()
    return kt.Translator(kt.Transformer(config), tokenizer, options), lines


def chosen(tokenizer: kt.Tokenizer, lines: list[str]) -> list[str]:
    """Takes lines of 10 to 40 tokens."""
    lengths = np.array([len(row) for row in tokenizer.encode(lines)])
    return [lines[number] for number in np.flatnonzero((lengths >= 10) & (lengths <= 40))[:NUM_SENTENCES]]


def write_json(file: Path, value):
    """Writes a file for the engines."""
    file.write_text(json.dumps(value), encoding="utf8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
