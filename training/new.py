"""Writes a recipe for text files of your own: `keras-transformer new train.en train.de > mine.toml`.

The recipe fits the files: vocabulary, model, batches, rate and length of training follow from the number of pairs. How long it
takes is estimated for this machine. Where no files are named to validate and to test with, the recipe holds out pairs of the
training files. All values may be changed.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .command import load_backend, run_command
from .console import program

TOKENS_PER_WORD = 1.4
FILLED = 0.85  # Share of a batch's positions that hold tokens.
SAMPLE = 200_000  # From about so many pairs on, words are counted in some of the lines only.
EFFICIENCY = 0.4  # Of the speed of large products, what a training step reaches.


@dataclass(frozen=True)
class Plan:
    """What a number of pairs calls for.

    Args:
        most_pairs: Up to how many pairs the plan holds.
        preset, num_layers, dropout, vocabulary_size: The model, and its vocabulary.
        batch_tokens, tokens_per_update: The size of a batch, and of an update if that is several batches.
        peak_rate: The largest learning rate.
        total_tokens: About how many target tokens training sees.
        epochs: The fewest and the most epochs.
    """

    most_pairs: float
    preset: str
    num_layers: int
    dropout: float
    vocabulary_size: int
    batch_tokens: int
    tokens_per_update: int | None
    peak_rate: float
    total_tokens: float
    epochs: tuple[int, int]


PLANS = (
    Plan(10_000, "tiny", 2, 0.3, 2000, 1024, None, 0.003, 2e6, (10, 80)),
    Plan(100_000, "small", 4, 0.25, 6000, 1536, None, 0.002, 5e6, (6, 40)),
    Plan(1_000_000, "small", 4, 0.1, 8000, 3072, None, 0.0015, 12e6, (2, 10)),
    Plan(20_000_000, "base", 6, 0.1, 32_000, 4096, 25_000, 0.0007, 600e6, (2, 20)),
    Plan(float("inf"), "big", 6, 0.1, 32_000, 4096, 50_000, 0.0005, 3e9, (1, 3)),
)


@dataclass(frozen=True)
class Size:
    """The size of a corpus.

    Args:
        pairs: Number of pairs.
        words: Words of the target, about.
    """

    pairs: int
    words: float

    @property
    def tokens(self) -> float:
        """Target tokens, ends included, about."""
        return self.words * TOKENS_PER_WORD + self.pairs


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: The words of the command line; `None` takes those of this process.

    Returns:
        The exit code: 0, or 2 if something is wrong with what was given.
    """
    options = parse_arguments(argv)
    return run_command(lambda: run(options))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog=program("new"), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="source and target, a sentence a line (.gz too); or one .tsv file of both"
    )
    for name in ("validation", "test"):
        parser.add_argument(
            f"--{name}",
            nargs="+",
            metavar="FILE",
            help=f"the same for {name} (default: pairs of the training files are held out)",
        )
    return parser.parse_args(argv)


def run(options: argparse.Namespace):
    """Looks at the files and prints a recipe for them."""
    load_backend()
    from .machine import devices

    files = {"train": options.files, "validation": options.validation, "test": options.test}
    files = {split: sides(split, names) for split, names in files.items() if names}
    size = measure(files["train"])
    hold_out = None if len(files) == 3 else min(1000, max(50, size.pairs // 30))
    if hold_out is not None and size.pairs < 10 * hold_out:
        raise ValueError(
            f"{size.pairs} pairs are too few to learn from and to hold some out. Give 500 or more, or name files with "
            "--validation and --test"
        )
    has_gpu = any("gpu" in name.lower() or "cuda" in name.lower() for name in devices())
    text = recipe_for(files, size, hold_out, has_gpu)
    sys.stdout.write(text)
    head = [line.lstrip("# ") for line in text.splitlines() if line.startswith(("#   corpus", "#   model", "#   cost"))]
    print("\n".join(head), file=sys.stderr)


def sides(split: str, names: list[str]) -> tuple[str, ...]:
    """Checks that the words of the command line are two files, or one of two columns."""
    from .recipe_tables import has_columns

    if len(names) == 2 and not any(map(has_columns, names)):
        return tuple(names)
    if len(names) == 1 and has_columns(names[0]):
        return tuple(names)
    raise ValueError(
        f"Expected two text files of {split} pairs, source and target, or one .tsv file. Received: {' '.join(names)}"
    )


def measure(files: tuple[str, ...]) -> Size:
    """Reads the training files to their end, and counts."""
    from keras_transformer.data.reading import PairReader

    reader = PairReader([files[0]], [files[1]] if len(files) == 2 else None)
    pairs = counted = words = 0
    for number, chunk in enumerate(reader.chunks()):
        pairs += len(chunk.source)
        if pairs <= SAMPLE or number % 50 == 0:
            counted += len(chunk.target)
            words += sum(len(line.split()) for line in chunk.target)
    return Size(pairs, words / counted * pairs)


def recipe_for(files: dict[str, tuple[str, ...]], size: Size, hold_out: int | None, has_gpu: bool) -> str:
    """Returns the recipe."""
    import keras_transformer as kt
    from keras_transformer.models.presets import PRESETS

    plan = next(plan for plan in PLANS if size.pairs < plan.most_pairs)
    if has_gpu:
        plan = replace(plan, batch_tokens=max(plan.batch_tokens, 4096) if plan.tokens_per_update is None else 16_384)
    vocabulary_size = min(plan.vocabulary_size, max(400, size.pairs))
    epochs = min(max(round(plan.total_tokens / size.tokens), plan.epochs[0]), plan.epochs[1])
    update_tokens = max(plan.tokens_per_update or 0, plan.batch_tokens) * FILLED
    updates = max(100, round(epochs * size.tokens / update_tokens))
    config = kt.TransformerConfig.from_dict(
        {
            **PRESETS[plan.preset],
            "source_vocabulary_size": vocabulary_size,
            "target_vocabulary_size": vocabulary_size,
            "num_encoder_layers": plan.num_layers,
            "num_decoder_layers": plan.num_layers,
        }
    )
    values = {
        "corpus": f"{size.pairs:,} pairs, about {float(f'{size.tokens:.2g}'):,.0f} target tokens",
        "model": f"{plan.preset}, about {num_parameters(config) / 1e6:.1f} million parameters",
        "cost": cost(config, epochs * size.tokens, epochs, has_gpu),
        "data": data_lines(files, hold_out),
        "batch_tokens": plan.batch_tokens,
        "vocabulary_size": vocabulary_size,
        "preset": plan.preset,
        "layers": plan.num_layers,
        "dropout": plan.dropout,
        "max_updates": updates,
        "epochs": epochs,
        "peak_rate": plan.peak_rate,
        "warmup": min(4000, max(20, updates // 6)),
        "cooldown": updates * 2 // 5,
        "average": max(1, updates // 40),
        "checkpoint": max(20, updates // 20),
        "tokens_per_update": '"none"' if plan.tokens_per_update is None else plan.tokens_per_update,
        "dtype": "mixed_bfloat16" if has_gpu else "float32",
        "xla": "true" if has_gpu else "false",
        "every_epochs": max(1, epochs // 8),
    }
    return TEMPLATE.format_map(values)


def data_lines(files: dict[str, tuple[str, ...]], hold_out: int | None) -> str:
    """Returns the lines of the recipe that name the files."""
    from .recipe import to_toml

    lines = []
    for split, names in files.items():
        for side, name in zip(("source", "target"), names, strict=False):
            lines.append(f"{split}_{side} = {to_toml(name)}")
    if hold_out is not None:
        missing = " and ".join(split for split in ("validation", "test") if split not in files)
        lines.append(f"hold_out = {hold_out}  # pairs for {missing}; no pair with one of their sources is trained on")
    return "\n".join(lines)


def num_parameters(config) -> int:
    """Returns the number of weights in the matrices of a model."""
    model, hidden = config.model_dim, config.encoder_feed_forward_dim
    encoder = config.num_encoder_layers * (4 * model * model + 2 * model * hidden)
    decoder = config.num_decoder_layers * (8 * model * model + 2 * model * hidden)
    return encoder + decoder + config.target_vocabulary_size * model


def cost(config, tokens: float, epochs: int, has_gpu: bool) -> str:
    """Says how much work a training is, and about how long it takes here."""
    work = 6 * num_parameters(config) * tokens / FILLED
    seen = f"{tokens / 1e6:.0f} million target tokens, {epochs} epochs"
    if has_gpu:
        return f"{seen}; {work:.1e} operations, for which the GPU's own speed counts"
    minutes = work / (EFFICIENCY * speed_of_products()) / 60
    about = f"{minutes:.0f} minutes" if minutes < 100 else f"{minutes / 60:.0f} hours"
    advice = "" if minutes < 24 * 60 else ": too much for a CPU. Train on a GPU, or on fewer pairs (max_pairs)"
    return f"{seen}; about {about} on the {os.cpu_count()} cores here if nothing else runs (an estimate){advice}"


def speed_of_products() -> float:
    """Measures how many operations a second products of matrices reach on all cores together."""
    import numpy as np

    matrix = np.ones((64, 64), "float32")  # So small that one core does it.
    shortest = float("inf")
    for _ in range(2000):  # So often that some are not disturbed by other work.
        begin = time.perf_counter()
        matrix @ matrix
        shortest = min(shortest, time.perf_counter() - begin)
    return 2 * 64**3 / shortest * (os.cpu_count() or 1)


TEMPLATE = """\
# A recipe for files of your own, written by `keras-transformer new`. Paths are relative to this file.
#
#   corpus    {corpus}
#   model     {model}
#   cost      {cost}
#
# All keys and their meaning: docs/training.md. What changes with the size of a corpus: docs/your-data.md.

[data]
{data}
batch_tokens = {batch_tokens}            # positions of a batch; lower it if memory runs out
num_shapes = 16

[tokenizer]
vocabulary_size = {vocabulary_size}         # pieces of words, of both languages; more for more text

[model]
preset = "{preset}"              # tiny, small, base or big
num_encoder_layers = {layers}
num_decoder_layers = {layers}
norm = "pre"                 # learns with small updates
dropout = {dropout}                # more for less text

[optimization]
max_updates = {max_updates}           # about {epochs} epochs; more if validation still gets better at the end
tokens_per_update = {tokens_per_update}
schedule = "inverse_sqrt"
peak_rate = {peak_rate}
warmup_updates = {warmup}
cooldown_updates = {cooldown}
label_smoothing = 0.1
average_checkpoints = 10     # the finished weights are the mean of the last ten,
average_every_updates = {average}   # so many updates apart
checkpoint_every_updates = {checkpoint}
dtype = "{dtype}"
xla = {xla}

[evaluation]
every_epochs = {every_epochs}
beam_size = 4
length_penalty = 0.6
"""

if __name__ == "__main__":
    sys.exit(main())
