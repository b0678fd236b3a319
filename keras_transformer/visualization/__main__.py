"""Shows where a trained model looks; see `keras_transformer.visualization.arguments`."""

import argparse
import sys
from collections.abc import Sequence

from keras_transformer.attention import Attention
from keras_transformer.translator import Translator
from keras_transformer.visualization import plot_alignment, plot_heads, plot_threads
from keras_transformer.visualization.arguments import parse_arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0, or 2 if something is wrong with what was given."""
    options = parse_arguments(argv)
    try:
        run(options)
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


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
