"""The command line of the client; see `keras_transformer.serving.client`."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from keras_transformer.serving.client import Client
from keras_transformer.serving.client_arguments import parse_arguments
from keras_transformer.serving.errors import ServingError, printable
from keras_transformer.text.lines import one_line, stream_lines

CHUNK = 256  # Lines that are sent before the first answer is written, unless somebody is typing them.


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0, 1 if the server fails or nobody reads on, 2 if the input is wrong."""
    options = parse_arguments(argv)
    shown = on_a_terminal if sys.stdout.isatty() else str
    try:
        with Client(
            options.url,
            model=options.model,
            version=options.version,
            label=options.label,
            timeout=options.timeout,
            retries=options.retries,
            batch_size=options.batch_size,
        ) as client:
            for line in answers(client, options):
                print(shown(line), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Or Python complains when it ends.
        return 1
    except ServingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def answers(client: Client, options: argparse.Namespace) -> Iterator[str]:
    """Yields the lines that the command prints."""
    if options.status:
        yield from (f"{one.version}\t{one.state}\t{one.message}".rstrip() for one in client.status())
    elif options.metadata:
        for name, sides in client.metadata().items():
            yield name
            yield from described_tensors("<-", sides["inputs"])
            yield from described_tensors("->", sides["outputs"])
    else:
        yield from in_chunks(client, *input_lines(options.texts), options)


def on_a_terminal(line: str) -> str:
    """Escapes what would steer a terminal, but for the tabs between columns."""
    return "\t".join(map(printable, line.split("\t")))


def described_tensors(arrow: str, tensors: dict[str, dict]) -> Iterator[str]:
    """Yields a line for each input or output."""
    for name, info in tensors.items():
        yield f"  {arrow} {name}: {info['dtype']} {info['shape']}"


def input_lines(texts: Sequence[str]) -> tuple[Iterable[str], int]:
    """Returns the texts of the command line, or the lines of the standard input, and how many to send at a time."""
    if texts and list(texts) != ["-"]:
        return texts, CHUNK
    return stream_lines(sys.stdin), 1 if sys.stdin.isatty() else CHUNK


def in_chunks(client: Client, lines: Iterable[str], size: int, options: argparse.Namespace) -> Iterator[str]:
    """Yields the answers to many lines, some at a time."""
    lines, first = iter(lines), 1
    while chunk := list(islice(lines, size)):
        answer = nbest_lines if options.nbest else score_lines if options.score else translation_lines
        yield from answer(client, chunk, options, first)
        first += len(chunk)


def translation_lines(client: Client, texts: list[str], options: argparse.Namespace, first: int) -> Iterator[str]:
    """Yields a line for each text."""
    found = client.translate(
        texts,
        beam_size=options.beam_size,
        length_penalty=options.length_penalty,
        max_length=options.max_length,
        return_scores=True,
    )
    for one in found:
        yield f"{one.score:.4f}\t" * options.scores + one_line(one.text)


def nbest_lines(client: Client, texts: list[str], options: argparse.Namespace, first: int) -> Iterator[str]:
    """Yields several lines for each text, with its number."""
    for number, hypotheses in enumerate(client.nbest(texts), first):
        for one in hypotheses:
            yield f"{number}\t" + f"{one.score:.4f}\t" * options.scores + one_line(one.text)


def score_lines(client: Client, pairs: list[str], options: argparse.Namespace, first: int) -> Iterator[str]:
    """Yields the log-probability and number of tokens of each pair."""
    for number, pair in enumerate(pairs, first):
        if "\t" not in pair:
            raise ValueError(f"--score needs a sentence, a tab and a translation a line. Received: line {number}: {pair}")
    sources, targets = zip(*(pair.split("\t", 1) for pair in pairs), strict=True)
    yield from (f"{one.log_probability:.4f}\t{one.token_count}" for one in client.score(sources, targets))
