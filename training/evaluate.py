"""Measures a trained model: `python -m training.evaluate RUN --source FILE --reference FILE`.

RUN is the folder of a run, or of a translator. Translates the source and prints BLEU and chrF as sacrebleu computes them, with
the signatures that make them comparable. Without --source, the run's own validation and test sets are measured, those of the
pronoun corpus with the scores that it is made for.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from training.command import load_backend, make_console, run_command, share_cores


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0, or 2 if something is wrong with what was given."""
    options = parse_arguments(argv)
    return run_command(lambda: run(options))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m training.evaluate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run, or of a translator")
    parser.add_argument("--source", type=Path, metavar="FILE", help="sentences to translate, one a line (.gz too)")
    parser.add_argument("--reference", type=Path, nargs="+", metavar="FILE", help="their translations, in one file or several")
    parser.add_argument("--beam-size", type=int, metavar="K", help="number of beams (as in the recipe)")
    parser.add_argument("--length-penalty", type=float, metavar="A", help="exponent of the length penalty (as in the recipe)")
    parser.add_argument("--lowercase", action="store_true", default=None, help="compare without case (as in the recipe)")
    parser.add_argument("--tokenize", metavar="NAME", help="how sacrebleu cuts texts into words (as in the recipe, or 13a)")
    parser.add_argument("--batch-tokens", type=int, default=2048, metavar="N", help="source tokens translated at once (2048)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to write the translations")
    return parser.parse_args(argv)


def run(options: argparse.Namespace):
    """Does what the command line asks for."""
    if (options.source is None) != (options.reference is None):
        raise ValueError("--source and --reference go together: give both, or neither to measure the run's own sets")
    if options.source is None and options.output is not None:
        raise ValueError("--output needs --source: one file of translations for one file of sources")
    share_cores()
    load_backend()
    from training.summary import print_scores
    from training.translators import evaluation_table, find_translator

    translator = find_translator(options.run)
    table = evaluation_table(options.run, lowercase=options.lowercase, tokenize=options.tokenize)
    search = {"beam_size": options.beam_size, "length_penalty": options.length_penalty, "batch_tokens": options.batch_tokens}
    measure = own_scores if options.source is None else file_scores
    print_scores(measure(options, translator, table, search), make_console())


def file_scores(options: argparse.Namespace, translator, table, search: dict) -> dict:
    """Measures on files."""
    from keras_transformer.callbacks.bleu import paired, read_references, read_texts
    from keras_transformer.data.reading import check_is_file
    from training.scores import corpus_scores

    for file in (options.source, *options.reference):
        check_is_file(file)
    source, references = paired(read_texts(options.source), read_references(options.reference), None)
    translations = translator.translate(source, **search)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text("".join(f"{line}\n" for line in translations), encoding="utf8")
    return {options.source.name: corpus_scores(translations, references, table.lowercase, table.tokenize)}


def own_scores(options: argparse.Namespace, translator, table, search: dict) -> dict:
    """Measures on the sets that the run's recipe names."""
    from training.corpora import find_splits
    from training.recipe import read_recipe
    from training.run_folder import RunFolder
    from training.scores import split_scores

    folder = RunFolder(options.run)
    folder.check_has(folder.recipe)
    splits = find_splits(read_recipe(folder.recipe).data)
    sets = {**splits.tests, **({} if splits.validation is None else {"validation": splits.validation})}
    if not sets:
        raise ValueError(f"The recipe of {folder} names neither a validation set nor a test. Give --source and --reference")
    translations = {name: translator.translate(list(split.side("source")), **search) for name, split in sets.items()}
    return {name: split_scores(splits, name, found, table) for name, found in translations.items()}


if __name__ == "__main__":
    sys.exit(main())
