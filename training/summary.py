"""What a finished run tells at the end, on a console."""

import shlex

from rich.console import Console
from rich.text import Text

from .command import make_console
from .console import program
from .data_tables import print_table
from .finishing import scores_of
from .report import duration
from .run_folder import RunFolder
from .scores import Score


def print_results(run: RunFolder, results: dict):
    """Prints scores, samples, and where everything is.

    Args:
        run: The run.
        results: What `training.trainer.train` returned.
    """
    console, facts = make_console(), results["training"]
    print_scores(scores_of(results), console)
    for sample in results["samples"][:3]:
        print_sample(sample, console)
    speed = f"{facts['tokens_per_second']:,.0f} target tokens a second"
    say(console, f"{facts['updates']:,} updates in {duration(facts['seconds'])}, {speed}.")
    say(console, f"Report: {run.report}\nTranslate: {program('translate')} {shlex.quote(str(run))}")


def print_scores(scores: dict[str, list[Score]], console: Console):
    """Prints a table of scores."""
    rows = [[split, score.name, str(score), score.signature] for split, found in scores.items() for score in found]
    if rows:
        print_table(console, ["set", "score", "", "signature"], rows, ["left", "left", "right", "left"])


def print_sample(sample: dict, console: Console):
    """Prints a translation beside its source, and its reference if it is another."""
    say(console, f"  {sample['source']}\n  -> {sample['translation']}")
    if sample["translation"] != sample["reference"]:
        say(console, f"     reference: {sample['reference']}")
    console.print()


def say(console: Console, line: str):
    """Prints a text as it is."""
    console.print(Text(line), soft_wrap=True)
