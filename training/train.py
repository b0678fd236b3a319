"""Trains a model: `keras-transformer train RECIPE`.

RECIPE is the name of a recipe that comes with the package, or the path of a .toml file. Everything goes into one folder,
runs/RECIPE unless --output says otherwise: the recipe as run, tokenizer, checkpoints, history.csv, curves.png, report.md and
the finished translator.

A run that was stopped or killed goes on, from its last checkpoint and to the same result, with the same command and --resume.
With --resume the command starts a run, too, if there is none, so that it can be given again and again.

--devices N trains on several devices of this machine, --coordinator together with other processes: see docs/scaling.md.
"""

import argparse
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from .command import load_devices, run_command
from .console import program
from .device_request import add_device_arguments, read_device_request
from .recipe import FOLDER, read_recipe

LESS_MEMORY = (
    "halve data.batch_tokens, with tokens_per_update as large as it is for the same updates, and evaluation.batch_tokens or "
    "evaluation.beam_size if it ended within an evaluation"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: The words of the command line; `None` takes those of this process.

    Returns:
        The exit code: 0, 2 if something is wrong with what was given, 130 if it was interrupted.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    options = parse_arguments(words)
    return run_command(lambda: run(options, command_of(words)), how_to_go_on(words), LESS_MEMORY)


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    names = ", ".join(sorted(file.stem for file in FOLDER.glob("*.toml")))
    parser = argparse.ArgumentParser(
        prog=program("train"), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", nargs="+", metavar="RECIPE", help=f"a .toml file, or one of: {names}")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="where the run goes (runs/RECIPE)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a value of the recipe, such as optimization.epochs=3 or data.folder=multi30k; may be repeated",
    )
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped, or start it")
    add_device_arguments(parser)
    return parser.parse_args(words)


def run(options: argparse.Namespace, command: str):
    """Does what the command line asks for."""
    check_is_recipe(options.recipe)
    recipe = read_recipe(options.recipe[0], options.set)
    request = read_device_request(options, os.environ)
    devices = load_devices(request, recipe.devices.model_parallel)  # Only now: mistakes need not wait for it.
    from .run_folder import RunFolder, default_output
    from .summary import print_results
    from .trainer import train

    folder = RunFolder(options.output or default_output(recipe))
    was_finished = folder.is_finished
    results = train(recipe, folder, options.resume, command, devices=devices)
    if request.process_id > 0:
        return
    if was_finished:
        print(f"The run in {folder} is finished; there is nothing left to do. What it found:")
    print_results(folder, results)


def check_is_recipe(words: Sequence[str]):
    """Raises a `ValueError` that says how to make a recipe if files of text were given."""
    if len(words) > 1 or (Path(words[0]).is_file() and Path(words[0]).suffix != ".toml"):
        raise ValueError(
            f"A training needs one recipe. For files of your own, write one with `{program('new')} {shlex.join(words)} > "
            f"mine.toml`, then: {program('train')} mine.toml"
        )


def command_of(words: Sequence[str]) -> str:
    """Returns the command as one would type it."""
    return f"{program('train')} {shlex.join(words)}"


def how_to_go_on(words: Sequence[str]) -> str:
    """Says what to do after an interruption."""
    again = [*words, *([] if "--resume" in words else ["--resume"])]
    return f"Stopped. Go on from the last checkpoint with:\n  {command_of(again)}"


def run_as_program(argv: Sequence[str] | None = None) -> int:
    """Runs the command as a process, which ends at once if it fails as one of several: JAX would let it wait for the others."""
    code = 1
    try:
        code = main(argv)
    finally:
        if code != 0 and is_one_of_several():
            if sys.exc_info()[0] is not None:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return code


def is_one_of_several() -> bool:
    """Tells whether this process has joined others."""
    if "jax" not in sys.modules:
        return False
    import jax  # noqa: TID251

    return jax.distributed.is_initialized()


if __name__ == "__main__":
    sys.exit(run_as_program())
