"""Writes the shared weights for CTranslate2: `python -m benchmarks.decoding.write_ctranslate2 SHAPE FOLDER PRECISION`."""

import sys

from benchmarks.decoding.our_model import make_model
from benchmarks.decoding.words import words_of
from benchmarks.shapes import SHAPES
from keras_transformer.bridges.ctranslate2 import write_model


def main():
    """Writes a model."""
    name, folder, precision = sys.argv[1:]
    words = words_of(SHAPES[name].vocabulary_size)
    write_model(make_model(SHAPES[name]), words, words, folder, precision)


if __name__ == "__main__":
    main()
