"""Training a SentencePiece model."""

import contextlib
import io
import re
import sys
import warnings
from collections.abc import Iterable, Iterator

import sentencepiece
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from keras_transformer.text.lines import Lines, all_lines, sample_lines
from keras_transformer.text.normalization import make_normalizer

MODELS = ("bpe", "unigram")
_RESERVED = "\u2585"  # The trainer leaves out every line with this character in it.


def train_model(
    data: Lines,
    vocabulary_size: int,
    model: str,
    normalization: str,
    character_coverage: float,
    max_lines: int,
    seed: int,
    progress: bool,
) -> bytes:
    """Trains a SentencePiece model; see `Tokenizer.train` for the arguments.

    Returns:
        The model as SentencePiece writes it to a file.
    """
    if model not in MODELS:
        raise ValueError(f'`model` must be "bpe" or "unigram". Received: model={model!r}')
    if max_lines < 1:
        raise ValueError(f"`max_lines` must be a positive integer. Received: max_lines={max_lines}")
    normalizer = make_normalizer(normalization)
    with progress_display(progress) as display:
        lines = sample_lines(counted(all_lines(data), display), max_lines, seed)
        if not lines:
            raise ValueError(f"There is no text to train on, only blank lines or none at all. Received: {data!r:.200}")
        display.add_task(f"Training the {model} model on {len(lines):,} lines", total=None)
        trained = run_trainer(lines, vocabulary_size, model, normalizer, character_coverage)
    return checked_size(named_normalization(trained, normalization), vocabulary_size)


@contextlib.contextmanager
def progress_display(wanted: bool) -> Iterator[Progress]:
    """Shows what goes on, on the standard error stream, if that is a terminal."""
    console = Console(file=sys.stderr)
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, disable=not (wanted and console.is_terminal)) as display:
        yield display


def counted(lines: Iterable[str], display: Progress, every: int = 10_000) -> Iterator[str]:
    """Passes lines on and shows how many there were."""
    task = display.add_task("Reading lines", total=None)
    number = 0
    for number, line in enumerate(lines, start=1):
        if number % every == 0:
            display.update(task, description=f"Reading lines: {number:,}")
        yield line
    display.update(task, description=f"Read {number:,} lines", total=1, completed=1)


def run_trainer(lines: list[str], vocabulary_size: int, model: str, normalizer, character_coverage: float) -> bytes:
    """Runs SentencePiece's trainer, and puts its complaints into words."""
    trained = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line.replace(_RESERVED, " ") for line in lines),
            model_writer=trained,
            model_type=model,
            vocab_size=vocabulary_size,
            normalizer=normalizer,
            character_coverage=character_coverage,
            byte_fallback=True,
            pad_id=0,
            bos_id=1,
            eos_id=2,
            unk_id=3,
            hard_vocab_limit=False,
            max_sentence_length=2**30,  # Longer lines would be left out without a word.
            num_threads=4,  # The same everywhere: the sums of unigram training depend on it.
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:
        raise ValueError(training_complaint(str(error), vocabulary_size)) from error
    return trained.getvalue()


def training_complaint(error: str, vocabulary_size: int) -> str:
    """Says what a user can do about an error of the trainer."""
    needed = re.search(r"smaller than required_chars\. \d+ vs (\d+)", error)
    if needed is None:
        return f"SentencePiece could not train on this text. It says: {error}"
    return (
        f"The vocabulary is too small for its 4 special tokens, 256 bytes and the characters of the text. It must have at "
        f"least {needed[1]} entries; a lower `character_coverage` leaves more of the rare characters to their bytes. "
        f"Received: vocabulary_size={vocabulary_size}"
    )


def named_normalization(model: bytes, normalization: str) -> bytes:
    """Writes the name of the normalization into a model that carries its rules."""
    proto = ModelProto.FromString(model)
    proto.normalizer_spec.name = normalization
    return proto.SerializeToString(deterministic=True)


def checked_size(model: bytes, vocabulary_size: int) -> bytes:
    """Warns if the text did not yield as many pieces as were wanted, and refuses a model without any of its own."""
    found = len(ModelProto.FromString(model).pieces)
    if found <= 4 + 256:
        raise ValueError("There is no text to train on: nothing is left of it after normalization")
    if found < vocabulary_size:
        warnings.warn(
            f"The text is too small for a vocabulary of {vocabulary_size:,}: there are only {found:,} pieces to be found in "
            f"it, and the tokenizer has that many. Use `tokenizer.vocabulary_size` for the model.",
            stacklevel=4,
        )
    return model
