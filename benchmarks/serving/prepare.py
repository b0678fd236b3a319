"""Writes what the engines serve: `python -m benchmarks.serving.prepare FOLDER SHAPE`, on TensorFlow."""

import json
import sys
from pathlib import Path

import keras
import numpy as np

import keras_transformer as kt
from benchmarks.data import generate
from benchmarks.our_config import config_of
from benchmarks.serving.engines import TARGET_TOKENS
from benchmarks.shapes import SHAPES
from keras_transformer.serving.server_files import BATCH_SIZES
from keras_transformer.serving.warm_up import requests

NUM_SENTENCES = 256
NUM_LINES = 20_000


def main(folder: Path, shape_name: str):
    """Writes a model of random weights as an export and for CTranslate2, a tokenizer, and sentences."""
    shape = SHAPES[shape_name]
    generate(folder, NUM_LINES, num_tokenizer_lines=NUM_LINES)
    tokenizer = kt.Tokenizer.load(folder / "tokenizer")
    tokenizer.save(folder / "tokenizer.model")
    keras.utils.set_random_seed(0)
    config = config_of(
        shape,
        vocabulary_size=tokenizer.vocabulary_size,
    )
    # Every translation has as many tokens: random weights know no end.
    options = kt.SearchOptions(min_length=TARGET_TOKENS - 1, max_length=TARGET_TOKENS - 1)
    translator = kt.Translator(kt.Transformer(config), tokenizer, options)
    sentences = chosen(tokenizer, (folder / "source").read_text(encoding="utf8").splitlines())
    (folder / "sentences.json").write_text(json.dumps(sentences), encoding="utf8")
    kt.export_saved_model(translator, folder / "export", device="cpu", samples=sentences[:2])
    options = {"beam_size": translator.options.beam_size, "length_penalty": translator.options.length_penalty, "max_length": 0}
    warm_up = list(requests(BATCH_SIZES, sentences[0].split(), options))  # Those that are in the export.
    (folder / "warm_up.json").write_text(json.dumps(warm_up), encoding="utf8")
    kt.bridges.to_ctranslate2(translator, folder / "ctranslate2")


def chosen(tokenizer: kt.Tokenizer, lines: list[str]) -> list[str]:
    """Takes lines of 10 to 40 tokens."""
    lengths = np.array([len(row) for row in tokenizer.encode(lines)])
    return [lines[number] for number in np.flatnonzero((lengths >= 10) & (lengths <= 40))[:NUM_SENTENCES]]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
