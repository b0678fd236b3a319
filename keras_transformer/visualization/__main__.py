"""Shows where a trained model looks: `python -m keras_transformer.visualization RUN "A sentence." --html out.html`.

RUN is the folder of a run, or of a translator. The page (--html) shows every head of every layer. The picture (--png) shows
which source words the words of the translation look at; with --kind all heads of the encoder or of the decoder, with --word
where one word looks.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from keras_transformer.attention import KINDS, Attention
from keras_transformer.translator import Translator
from keras_transformer.visualization import plot_alignment, plot_heads, plot_threads


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0, or 2 if something is wrong with what was given."""
    options = parse_arguments(argv)
    try:
        run(options)
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m keras_transformer.visualization",
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


def run(options: argparse.Namespace):
    """Does what the command line asks for."""
    translator = Translator.load(options.run)
    search = {} if options.beam_size is None else {"beam_size": options.beam_size}
    attention = translator.attend(options.source, options.target, **search)
    print(f"{attention.source}\n-> {attention.target}")
    if options.html is not None:
        attention.save_html(options.html)
        print(f"page: {options.html}")
    if options.npz is not None:
        attention.save(options.npz)
        print(f"numbers: {options.npz}")
    if options.png is not None:
        figure = picture(attention, options)
        options.png.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(options.png)
        print(f"picture: {options.png}")


def picture(attention: Attention, options: argparse.Namespace):
    """Draws one word, one alignment, or all heads."""
    layer, head = (None if number is None else number - 1 for number in (options.layer, options.head))
    if options.word is not None:
        return plot_threads(attention, options.word, options.kind, -1 if layer is None else layer, head)
    if options.kind == "cross":
        return plot_alignment(attention, layer, head)
    return plot_heads(attention, options.kind)


if __name__ == "__main__":
    sys.exit(main())
