"""Asks a translation server: `keras-transformer client --model NAME [TEXT ...]`.

Translates the texts of the command line, or what comes through the standard input, a sentence a line. With --scores each line
begins with the score and a tab; with --nbest there are several lines for each sentence, best first, that begin with its number
and a tab.
"""

# Imports nothing of this package, so that `keras-transformer client --help` need not wait for Keras.
import argparse
from collections.abc import Sequence


def parse_arguments(argv: Sequence[str] | None, prog: str = "python -m keras_transformer.serving.client") -> argparse.Namespace:
    """Reads the command line of the client, under the name by which it was called."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="what to translate; a - or none reads lines")
    parser.add_argument("--url", default="http://localhost:8501", help="the server (%(default)s; grpc://host:8500 for gRPC)")
    parser.add_argument("--model", required=True, metavar="NAME", help="the model's name on the server")
    parser.add_argument("--version", type=int, metavar="N", help="ask this version instead of the newest")
    parser.add_argument("--label", help="ask the version with this label")
    parser.add_argument("--beam-size", type=int, metavar="K", help="number of beams; 1 is the quickest")
    parser.add_argument("--length-penalty", type=float, metavar="A", help="exponent of the length penalty")
    parser.add_argument("--max-length", type=int, metavar="N", help="most tokens of a translation")
    parser.add_argument("--scores", action="store_true", help="show the score of each translation")
    parser.add_argument("--timeout", type=float, default=30, metavar="SECONDS", help="for one request (30)")
    parser.add_argument("--retries", type=int, default=3, metavar="N", help="if the server is overloaded (3)")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="sentences in a request (32)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--nbest", action="store_true", help="show several translations of each sentence")
    what.add_argument("--score", action="store_true", help="score lines of a sentence, a tab and its translation")
    what.add_argument("--status", action="store_true", help="show the state of the model's versions")
    what.add_argument("--metadata", action="store_true", help="show the signatures")
    return parser.parse_args(argv)
