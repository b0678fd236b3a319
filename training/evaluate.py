"""Measures a trained model: `keras-transformer evaluate RUN --source FILE --reference FILE`.

RUN is the folder of a run, or of a translator. Translates the source and prints BLEU and chrF as sacrebleu computes them, with
the signatures that make them comparable. Without --source, the run's own validation and test sets are measured, or those that
--sets names, those of the pronoun corpus with the scores that it is made for. What was measured on which text is added to
evaluations.jsonl in RUN.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from .command import load_backend, make_console, run_command, share_cores
from .console import program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0, or 2 if something is wrong with what was given."""
    options = parse_arguments(argv)
    return run_command(lambda: run(options))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog=program("evaluate"), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run, or of a translator")
    parser.add_argument("--source", type=Path, metavar="FILE", help="sentences to translate, one a line (.gz too)")
    parser.add_argument("--reference", type=Path, nargs="+", metavar="FILE", help="their translations, in one file or several")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="which of the run's own sets, such as validation (all)")
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
    if options.source is not None and options.sets is not None:
        raise ValueError("--source and --sets are two ways to say what is measured: give one")
    share_cores()
    load_backend()
    import keras_transformer as kt
    from keras_transformer.text.outputs import check_output

    from .summary import print_scores
    from .translators import evaluation_table

    check_output(options.output, [options.source, *(options.reference or ())])
    translator = kt.Translator.load(options.run)
    table = evaluation_table(options.run, lowercase=options.lowercase, tokenize=options.tokenize)
    search = {"beam_size": options.beam_size, "length_penalty": options.length_penalty, "batch_tokens": options.batch_tokens}
    measure = own_scores if options.source is None else file_scores
    print_scores(measure(options, translator, table, search), make_console())


def file_scores(options: argparse.Namespace, translator, table, search: dict) -> dict:
    """Measures on files."""
    from keras_transformer.callbacks.bleu import paired, read_references, read_texts
    from keras_transformer.data.reading import check_is_file
    from keras_transformer.text.lines import one_line
    from keras_transformer.text.outputs import output_file

    from .evaluation_log import log_evaluation
    from .scores import corpus_scores

    for file in (options.source, *options.reference):
        check_is_file(file)
    source, references = paired(read_texts(options.source), read_references(options.reference), None)
    with ExitStack() as stack:
        output = options.output and stack.enter_context(output_file(options.output))
        translations = translator.translate(source, **search)
        if output:
            output.writelines(f"{one_line(text)}\n" for text in translations)
    scores = corpus_scores(translations, references, table.lowercase, table.tokenize)
    log_evaluation(options.run, str(options.source), source, references, search_of(translator, search), scores)
    return {options.source.name: scores}


def own_scores(options: argparse.Namespace, translator, table, search: dict) -> dict:
    """Measures on the sets that the run's recipe names."""
    from .corpora import find_splits
    from .evaluation_log import log_evaluation
    from .recipe import read_recipe
    from .scores import split_scores
    from .translators import run_of

    folder = run_of(options.run)
    folder.check_has(folder.recipe)
    splits = find_splits(read_recipe(folder.recipe).data)
    found = {}
    for name in chosen_sets(splits, options):
        pairs = splits.pairs_of(name)
        translations = translator.translate(pairs.source, **search)
        found[name] = split_scores(splits, name, translations, table)
        references = [[target] for target in pairs.target]
        log_evaluation(options.run, name, pairs.source, references, search_of(translator, search), found[name])
    return found


def chosen_sets(splits, options: argparse.Namespace) -> list[str]:
    """Returns the names of the sets to measure: those that are wanted, or all."""
    names = splits.measured
    if not names:
        raise ValueError(
            f"The recipe of {options.run} names neither a validation set nor a test. Give --source and --reference"
        )
    unknown = [name for name in options.sets or () if name not in names]
    if unknown:
        raise ValueError(f"The recipe of {options.run} has no set {unknown[0]!r}. There are: {', '.join(names)}")
    return options.sets or names


def search_of(translator, search: dict) -> dict:
    """Returns how a translator translated: what was asked for, and else its defaults."""
    used = {name: getattr(translator.options, name) for name in ("beam_size", "length_penalty", "penalty")}
    return {**used, **{name: value for name, value in search.items() if name in used and value is not None}}


if __name__ == "__main__":
    sys.exit(main())
