"""Measures whether heads find what "it" means: `python -m training.attention_report RUN`.

RUN is the folder of a run of the recipe `pronouns`, or of its translator. The held-out sentences are divided in two. On one
half the head is chosen that most often puts its largest weight on the noun that is meant; how often it does so is measured on
the other half. Beside it stand the average over the heads of a layer, and a model of the same shape that was never trained.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.table import Table

from .command import load_backend, make_console, run_command
from .console import program

LOOKS = {
    "it": 'encoder, from "it"',
    "adjective": "encoder, from the adjective",
    "pronoun": "cross-attention, from er/sie/es",
}


NUM_TRAIN = 4000  # Enough for every word; none of it is used.


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0, or 2 if something is wrong with what was given."""
    parser = argparse.ArgumentParser(
        prog=program("attention_report"), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run, or of a translator")
    parser.add_argument("--sentences", type=int, default=2000, metavar="N", help="held-out sentences to measure on (2000)")
    options = parser.parse_args(argv)
    return run_command(lambda: run(options))


def run(options: argparse.Namespace):
    """Measures, and prints a table."""
    load_backend()
    import keras_transformer as kt

    translator = kt.Translator.load(options.run)
    # What is held out is drawn before what is trained on, and does not depend on how much that is.
    examples = kt.data.pronouns(num_train=NUM_TRAIN, num_test=options.sentences).examples["test"]
    rows, sizes = measure(translator, examples)
    table = Table(title=f'Does it find the noun? Chosen on {sizes[0]} sentences with "it", measured on {sizes[1]} others')
    for column in ("attention", "model", "which", "largest weight of all words", "more than the other noun"):
        table.add_column(column)
    for looks, model, which, strict, loose in rows:
        table.add_row(LOOKS[looks], model, which, f"{strict:.1%}", f"{loose:.1%}")
    make_console().print(table)


def measure(translator, examples: Sequence) -> tuple[list[tuple], tuple[int, int]]:
    """Measures a translator and a model that was never trained.

    Args:
        translator: The translator.
        examples: Sentences of the pronoun corpus.

    Returns:
        A tuple: rows of who looks, model, which head, and two shares; and the number of sentences of either half.
    """
    import keras

    import keras_transformer as kt

    from .pronoun_heads import answers, make_questions

    questions = [make_questions(translator.tokenizer, half) for half in split_in_two(examples)]
    if not all(questions):
        raise ValueError(f'There are too few sentences with "it" to measure on. Received: {len(examples)} sentences')
    keras.utils.set_random_seed(0)
    models = {"trained": translator.model, "untrained": kt.Transformer(translator.model.config)}
    found = {name: [answers(model, half) for half in questions] for name, model in models.items()}
    rows = [
        (looks, name, *measure_head(*(half[looks] for half in halves), averaged))
        for looks in LOOKS
        for name, halves in found.items()
        for averaged in (False, True)
    ]
    return rows, tuple(map(len, questions))


def split_in_two(examples: Sequence) -> tuple[list, list]:
    """Divides sentences so that no two nouns are together in both halves: sentences about them differ in little."""
    pairs = dict.fromkeys(frozenset((example.subject, example.object)) for example in examples)
    half_of = {pair: number % 2 for number, pair in enumerate(pairs)}
    halves = ([], [])
    for example in examples:
        halves[half_of[frozenset((example.subject, example.object))]].append(example)
    return halves


def measure_head(first: np.ndarray, second: np.ndarray, averaged: bool) -> tuple[str, float, float]:
    """Chooses a head, or a layer whose heads are averaged, on one half and measures it on the other."""
    from .pronoun_heads import best_head

    first, second = (hits[:, :, -1:] if averaged else hits[:, :, :-1] for hits in (first, second))
    layer, head = best_head(first)
    strict, loose = second[:, layer, head].mean(axis=0)
    return f"layer {layer + 1}, {'mean of the heads' if averaged else f'head {head + 1}'}", float(strict), float(loose)


if __name__ == "__main__":
    sys.exit(main())
