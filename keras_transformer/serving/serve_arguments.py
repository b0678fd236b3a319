"""Serves an export on this machine, without Docker: for trying a model and for tests, not for production.

    keras-transformer serve saved_models/en-de

TensorFlow's C runtime computes, as in TensorFlow Serving, behind the same REST interface: status, metadata, `:predict` in
rows and in columns, errors, batching, and new versions while it serves. There is no gRPC, no monitoring, and nobody is asked
who they are. The page to try the model is at the same port. For production, start TensorFlow Serving: see the README.md of
the export.
"""

# Imports nothing of this package, so that `keras-transformer serve --help` need not wait for Keras.
import argparse
from collections.abc import Sequence
from pathlib import Path


def parse_arguments(argv: Sequence[str] | None, prog: str = "python -m keras_transformer.serving.serve") -> argparse.Namespace:
    """Reads the command line of the server, under the name by which it was called."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folder", type=Path, help="the folder of an exported model, of which the newest version serves, or of a version"
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (%(default)s: this machine alone)")
    parser.add_argument("--port", type=int, default=8501, help="the port; 0 takes a free one (%(default)s)")
    return parser.parse_args(argv)
