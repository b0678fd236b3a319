"""Draws the pictures of the documents: `python -m training.figures [RUN]`.

RUN is the folder of a run of the recipe `pronouns` (`make demo` makes runs/demo). Without it, only the pictures that need no
trained model are drawn.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from .command import load_backend, run_command
from .console import program

OUTPUT = Path("docs/figures")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0, or 2 if something is wrong with what was given."""
    parser = argparse.ArgumentParser(
        prog=program("figures"), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, nargs="?", metavar="RUN", help="folder of a run, or of a translator")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FOLDER", help=f"where to write ({OUTPUT})")
    options = parser.parse_args(argv)
    return run_command(lambda: run(options))


def run(options: argparse.Namespace):
    """Draws and writes the pictures."""
    load_backend()
    options.output.mkdir(parents=True, exist_ok=True)
    drawings = {**plain_drawings(), **(dict(model_drawings(options.run)) if options.run else {})}
    for name, draw in drawings.items():
        path = options.output / f"{name}.png"
        # Without the names of programs in it, the same picture is the same file.
        draw().savefig(path, dpi=100, metadata={"Software": None})
        print(f"{path}  {path.stat().st_size / 1000:.0f} KB")


def plain_drawings() -> dict[str, Callable]:
    """Returns the pictures that need no trained model, by name."""
    from keras_transformer import visualization

    from . import worked_examples

    return {
        "stacks": visualization.plot_stacks,
        "scaled_dot_product": worked_examples.plot_scaled_dot_product,
        "scaling": worked_examples.plot_scaling,
        "masks": visualization.plot_masks,
        "norms": worked_examples.plot_norms,
        "positions": visualization.plot_positions,
        "schedule": visualization.plot_schedule,
        "search": worked_examples.plot_search,
    }


def model_drawings(folder: Path) -> Iterator[tuple[str, Callable]]:
    """Yields the pictures of a trained model, with their names."""
    import keras_transformer as kt
    from keras_transformer import visualization

    from .demo_attention import attend_to_famous, plot_pronouns

    translator = kt.Translator.load(folder)
    tired, _ = attend_to_famous(translator)
    yield "heads", lambda: visualization.plot_heads(tired, join=True)
    yield "alignment", lambda: visualization.plot_alignment(tired)
    yield "pronouns", lambda: plot_pronouns(translator)


if __name__ == "__main__":
    sys.exit(main())
