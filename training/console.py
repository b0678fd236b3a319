"""The command `keras-transformer`, which comes with the package: one name for all that users do.

Nothing here imports Keras or a backend, so that help and the first mistakes are said at once.
"""

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

NAME = "keras-transformer"
CHECKOUT = "training"  # The name of this folder in a checkout; installed, it is `keras_transformer_training`.


@dataclass(frozen=True)
class Command:
    """A command.

    Args:
        help: What it does, in a line.
        module: The module that does it; one of this folder begins with a dot.
        arguments: Where that module imports Keras: the file in `keras_transformer` that reads its command line and does not.
        function: The function of the module that takes the words of the command line and returns the exit code.
    """

    help: str
    module: str
    arguments: str | None = None
    function: str = "main"


COMMANDS = {
    "data": Command("show a corpus as a model will see it", ".data"),
    "new": Command("write a recipe that fits your files", ".new"),
    "train": Command("train a recipe, or go on with a run", ".train", function="run_as_program"),
    "evaluate": Command("measure BLEU and chrF of a trained model", ".evaluate"),
    "translate": Command("translate a file, or what you type", ".translate"),
    "average": Command("average the last weights of a run", ".average"),
    "explore": Command(
        "show where a trained model looks", "keras_transformer.visualization.__main__", "visualization/arguments.py"
    ),
    "export": Command("export for TensorFlow Serving", "keras_transformer.serving.export", "serving/export_arguments.py"),
    "serve": Command(
        "serve an export on this machine, to try it", "keras_transformer.serving.serve", "serving/serve_arguments.py"
    ),
    "client": Command("ask a server for translations", "keras_transformer.serving.command", "serving/client_arguments.py"),
    "import": Command(
        "export a published Marian model", "keras_transformer.bridges.marian.__main__", "bridges/marian/arguments.py"
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: The words of the command line; `None` takes those of this process.

    Returns:
        The exit code.
    """
    options = parse_arguments(argv)
    command = COMMANDS[options.command]
    if command.arguments is not None:  # Read here already: help and mistakes need not wait for Keras.
        read_module(command.arguments).parse_arguments(options.words, f"{NAME} {options.command}")
    module = load(command.module)
    return getattr(module, command.function)(options.words) or 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command's name, and returns all words after it as they are."""
    width = max(map(len, COMMANDS))
    parser = argparse.ArgumentParser(
        prog=NAME,
        usage=f"{NAME} COMMAND ...",
        description="\n".join(f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()),
        epilog=f"{NAME} COMMAND --help says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    words = sys.argv[1:] if argv is None else argv
    return parser.parse_args(words or ["--help"])


def read_module(file: str) -> ModuleType:
    """Runs a file of `keras_transformer` that needs nothing of it, without the package, which would import Keras."""
    package = importlib.util.find_spec("keras_transformer")
    spec = importlib.util.spec_from_file_location(Path(file).stem, Path(package.origin).parent / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(name: str) -> ModuleType:
    """Imports the module of a command, without what TensorFlow has to say about drivers that it misses."""
    from .command import kept_back

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with kept_back():
        return importlib.import_module(name, __package__)


def program(name: str) -> str:
    """Returns the beginning of a command as one types it, where this process runs.

    Args:
        name: Name of a module of this folder.

    Returns:
        `keras-transformer train`, or from a checkout `python -m training.train`.
    """
    return f"{NAME} {name}" if __package__ != CHECKOUT and name in COMMANDS else f"python -m {__package__}.{name}"


if __name__ == "__main__":
    sys.exit(main())
