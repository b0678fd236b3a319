"""From a Marian checkpoint to a folder that TensorFlow Serving runs: `keras-transformer import MODEL OUT`.

MODEL is a folder with the files of a checkpoint, or the name of a published one, such as opus-mt-en-de. OUT is the folder of
the served model, such as saved_models/opus-mt-en-de. Further options are those of `keras-transformer export`.
"""

# Imports nothing of this package, so that `keras-transformer import --help` need not wait for Keras.
import argparse
from collections.abc import Sequence
from pathlib import Path


def parse_arguments(
    argv: Sequence[str] | None, prog: str = "python -m keras_transformer.bridges.marian"
) -> tuple[argparse.Namespace, list[str]]:
    """Reads the command line of the import, under the name by which it was called, and returns the words for the export too."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", help="the folder or the name of a checkpoint")
    parser.add_argument("out", type=Path, help="the folder of the served model, such as saved_models/opus-mt-en-de")
    parser.add_argument("--revision", help="branch, tag or commit of a published checkpoint")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="also save the translator, to train it on or to load it")
    return parser.parse_known_args(argv)
