"""Averages the weights of a run's last moments: `keras-transformer average RUN --last 5`.

A run ends with the mean of the weights that its recipe asks for. This makes another translator, of the mean of fewer of them,
or of a run that has not finished. It is a folder that all other commands take in place of a run:
`keras-transformer evaluate RUN/translator-last-3 --source FILE --reference FILE`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .command import load_backend, run_command
from .console import program


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0, or 2 if something is wrong with what was given."""
    options = parse_arguments(argv)
    return run_command(lambda: run(options))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog=program("average"), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("--last", type=int, metavar="N", help="how many of the last weights to average (as in the recipe)")
    parser.add_argument(
        "--checkpoints", action="store_true", help="average the checkpoints, not the weights that were kept for averaging"
    )
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="where the translator goes (RUN/translator-last-N)")
    return parser.parse_args(argv)


def run(options: argparse.Namespace):
    """Does what the command line asks for."""
    if options.last is not None and options.last < 1:
        raise ValueError(f"--last must be a positive integer. Received: {options.last}")
    load_backend()
    import keras_transformer as kt
    from keras_transformer.folders import check_replaceable

    from .building import make_model, search_options
    from .recipe import read_recipe
    from .run_folder import RunFolder

    folder = RunFolder(options.run)
    for needed in (folder.recipe, folder.tokenizer):
        folder.check_has(needed)
    recipe, tokenizer = read_recipe(folder.recipe), kt.load_tokenizer(folder.tokenizer)
    paths = weight_paths(folder, options.checkpoints, options.last, recipe.optimization.average_checkpoints)
    output = options.output or folder.directory / f"translator-last-{len(paths)}"
    check_replaceable(output, "translator.json")
    model = make_model(recipe, tokenizer)
    model.set_weights(kt.callbacks.average_weights(paths))
    kt.Translator(model, tokenizer, search_options(recipe)).save(output)
    print(f"The mean of {len(paths)}: {', '.join(path.stem for path in paths)}\nTranslator: {output}")


def weight_paths(run, from_checkpoints: bool, wanted: int | None, usual: int) -> list[Path]:
    """Returns the files of weights to average, oldest first: as many as are wanted, or at most the usual number."""
    folder, pattern = (run.checkpoints, "step-*") if from_checkpoints else (run.averages, "weights-*.npz")
    paths = sorted(folder.glob(pattern))
    if len(paths) < (wanted or 1):
        other = "" if from_checkpoints else "; --checkpoints takes the checkpoints instead"
        raise ValueError(f"There are not enough weights in {folder}{other}. Wanted: {wanted or 'one'}. Found: {len(paths)}")
    return paths[-(wanted or usual) :]


if __name__ == "__main__":
    sys.exit(main())
