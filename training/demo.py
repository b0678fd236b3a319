"""Teaches a small Transformer what "it" means, in a few minutes: `make demo`.

Trains the recipe `pronouns` into runs/demo, shows how the translation of two sentences changes on the way, and what it can do
in the end; draws what it looks at, and exports it for TensorFlow Serving into saved_models/pronouns. If it is stopped, the next
call goes on; if it has finished, the next call shows the results.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from .command import load_backend, make_console, python_name, run_command
from .console import program
from .recipe import read_recipe

OUTPUT = Path("runs/demo")
EXPORT = Path("saved_models/pronouns")
GREETING = """\
  The animal didn't cross the street because it was too tired.
  The animal didn't cross the street because it was too wide.

Who was tired, and what was wide? English says "it" for both. German has to decide: "es" is the animal (das Tier), "sie" is
the street (die Straße). A small Transformer is about to find out, from {pairs} examples and by attention alone.
"""
NEXT = {
    "translate {run}": "type: {sentence}",
    "evaluate {run} --beam-size 1": "is greedy search as good?",
    "train multi30k-tiny": "a real corpus: captions of photographs",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the demo and returns its exit code: 0, 2 if something went wrong, 130 if it was interrupted."""
    parser = argparse.ArgumentParser(
        prog=program("demo"), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FOLDER", help=f"where the run goes ({OUTPUT})")
    parser.add_argument("--export", type=Path, default=EXPORT, metavar="FOLDER", help=f"where the SavedModel goes ({EXPORT})")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a value of the recipe")
    options = parser.parse_args(argv)
    return run_command(lambda: run(options), "Stopped. Nothing is lost: the same command goes on where it was.")


def run(options: argparse.Namespace):
    """Trains, or shows what was trained."""
    recipe = read_recipe("pronouns", options.set)
    console = make_console()
    load_backend()
    from .corpora import find_splits
    from .demo_attention import draw
    from .demo_export import export
    from .demo_show import ThinkingAloud, show, what_it_knows
    from .run_folder import RunFolder
    from .trainer import train

    folder = RunFolder(options.output)
    if folder.is_finished:
        say(console, f"The model in {folder} is trained already. To start afresh: rm -r {folder}\n")
    else:
        say(console, GREETING.format(pairs=f"{recipe.data.max_pairs or 50_000:,}"))
    command = f"{program('demo')} --output {folder}"
    results = train(recipe, folder, resume=True, command=command, extra_callbacks=[ThinkingAloud(folder, console)])
    show(folder, results, console)
    say(console, what_it_knows(find_splits(recipe.data).train.side("source")))
    draw(folder, console)
    export(folder, console, options.export)
    say(console, f"{next_steps(folder, results['samples'][-1]['source'])}\n\nAll about this run, with curves: {folder.report}")


def next_steps(folder, sentence: str) -> str:
    """Says what to try next; the sentence is one that the model can translate."""
    commands = {
        f"{python_name()} -m {__package__}.{command.format(run=folder)}": reason.format(sentence=sentence)
        for command, reason in NEXT.items()
    }
    width = max(map(len, commands))
    return "\n".join(["Three things to try next:\n", *(f"  {line:<{width}}  {why}" for line, why in commands.items())])


def say(console: Console, text: str):
    """Prints a text as it is."""
    console.print(Text(text), soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
