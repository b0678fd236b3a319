"""Translates with a trained model: `keras-transformer translate RUN`.

RUN is the folder of a run, or of a translator. Translates a file, or what comes through the standard input, a sentence a line;
on a terminal it asks for sentences. With --scores each line begins with the score and a tab; with --num-hypotheses N > 1 there
are N lines for each sentence, best first, that begin with the sentence's number and a tab.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from .command import load_backend, run_command, share_cores
from .console import program

CHUNK = 1000  # Lines that are translated before the first of them is written.


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0, or 2 if something is wrong with what was given."""
    options = parse_arguments(argv)
    return run_command(lambda: run(options), on_interrupt="")


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog=program("translate"), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run, or of a translator")
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="sentences, one a line (.gz too)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to write, instead of the standard output")
    parser.add_argument("--beam-size", type=int, metavar="K", help="number of beams; 1 is the quickest")
    parser.add_argument("--length-penalty", type=float, metavar="A", help="exponent of the length penalty")
    parser.add_argument("--num-hypotheses", type=int, metavar="N", help="translations of each sentence")
    parser.add_argument("--scores", action="store_true", help="show the score of each translation")
    parser.add_argument("--batch-tokens", type=int, default=2048, metavar="N", help="source tokens translated at once (2048)")
    return parser.parse_args(argv)


def run(options: argparse.Namespace):
    """Does what the command line asks for."""
    share_cores()
    load_backend()
    import keras_transformer as kt
    from keras_transformer.data.reading import check_is_file
    from keras_transformer.text.lines import read_lines, stream_lines
    from keras_transformer.text.outputs import STANDARD_INPUT, check_output

    if options.file is not None:
        check_is_file(options.file)
    check_output(options.output, [STANDARD_INPUT if options.file is None else options.file])
    translator = kt.Translator.load(options.run)
    if options.file is not None:
        write(options, translate_lines(translator, read_lines(options.file), options))
    elif sys.stdin.isatty():
        converse(translator, options)
    else:
        write(options, translate_lines(translator, stream_lines(sys.stdin), options))


def write(options: argparse.Namespace, lines: Iterable[str]):
    """Prints lines as they come, or writes them to a file, which appears when it is complete."""
    if options.output is None:
        for line in lines:
            print(line, flush=True)
        return
    from keras_transformer.text.outputs import output_file

    with output_file(options.output) as file:
        file.writelines(f"{line}\n" for line in lines)


def translate_lines(translator, lines: Iterable[str], options: argparse.Namespace, first: int = 1) -> Iterator[str]:
    """Yields the translations of many lines, some at a time."""
    lines = iter(lines)
    while chunk := list(islice(lines, CHUNK)):
        for number, found in enumerate(translations(translator, chunk, options), start=first):
            yield from (output_line(number, one, options) for one in found)
        first += len(chunk)


def translations(translator, texts: list[str], options: argparse.Namespace) -> list[list]:
    """Returns the `Translation`s of each text, best first."""
    found = translator.translate(
        texts,
        beam_size=options.beam_size,
        length_penalty=options.length_penalty,
        num_hypotheses=options.num_hypotheses,
        batch_tokens=options.batch_tokens,
        return_scores=True,
    )
    return [one if isinstance(one, list) else [one] for one in found]


def output_line(number: int, translation, options: argparse.Namespace) -> str:
    """Returns a translation as a line, with its number and its score in front if they are wanted."""
    from keras_transformer.text.lines import one_line

    several = (options.num_hypotheses or 1) > 1
    columns = [str(number)] * several + [f"{translation.score:.4f}"] * options.scores
    return "\t".join([*columns, one_line(translation.text)])


def converse(translator, options: argparse.Namespace):
    """Asks for sentences until there are no more."""
    print("Type a sentence and press Enter; an empty line, or Ctrl-D, ends it.")
    while text := ask():
        for found in translate_lines(translator, [text], options):
            print(f"  {found.removeprefix(f'1{chr(9)}')}")


def ask() -> str:
    """Returns what was typed, or an empty string at the end of the input."""
    try:
        return input("> ").strip()
    except EOFError:
        print()
        return ""


if __name__ == "__main__":
    sys.exit(main())
