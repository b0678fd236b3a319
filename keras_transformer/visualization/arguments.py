"""Shows where a trained model looks: `keras-transformer explore RUN "A sentence." --html out.html`.

RUN is the folder of a run, or of a translator. The page (--html) shows every head of every layer. The picture (--png) shows
which source words the words of the translation look at; with --kind all heads of the encoder or of the decoder, with --word
where one word looks.
"""

# Imports nothing of this package, so that `keras-transformer explore --help` need not wait for Keras.
import argparse
from collections.abc import Sequence
from pathlib import Path

KINDS = ("encoder_self", "decoder_self", "cross")  # Those of `keras_transformer.attention`.


def parse_arguments(argv: Sequence[str] | None, prog: str = "python -m keras_transformer.visualization") -> argparse.Namespace:
    """Reads the command line, under the name by which it was called."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run, or of a translator")
    parser.add_argument("source", metavar="SENTENCE", help="what to translate")
    parser.add_argument("--target", metavar="TEXT", help="a translation, instead of the one that the model finds")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the page here")
    parser.add_argument("--png", type=Path, metavar="FILE", help="write a picture here (or .svg, .pdf)")
    parser.add_argument("--npz", type=Path, metavar="FILE", help="write the numbers here")
    parser.add_argument("--kind", choices=KINDS, default="cross", help="what the picture shows (cross)")
    parser.add_argument("--word", help="draw where this word looks")
    parser.add_argument("--layer", type=int, metavar="N", help="layer of the picture, from 1 (all, or the last)")
    parser.add_argument("--head", type=int, metavar="N", help="head of the picture, from 1 (the average)")
    parser.add_argument("--beam-size", type=int, metavar="K", help="number of beams")
    options = parser.parse_args(argv)
    for name in ("layer", "head"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name} counts from 1")
    return options
