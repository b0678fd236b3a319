"""The tables of a recipe: what each may say.

A table is a dataclass whose fields are its keys; a field notes how its value is read. `training.recipe` reads whole recipes.
"""

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .recipe_values import (
    count,
    finite,
    integer,
    integers,
    number,
    one_of,
    or_none,
    path,
    paths,
    positive,
    share,
    switch,
    text,
)

CORPORA = ("multi30k", "pronouns", "reverse")
COLUMN_SUFFIXES = (".tsv", ".tsv.gz")
SPLITS = ("train", "validation", "test")


def key(read, default: Any = None):
    """Declares a key of a table: how its value is read, and what it is if a recipe does not say."""
    return field(default=default, metadata={"read": read})


@dataclass(frozen=True)
class DataTable:
    """The table `[data]`: what to train on, and how it becomes batches.

    Args:
        train_source: Files of source sentences, or, without `train_target`, `.tsv` files of both.
        train_target: Files of their translations, as many and in the same order.
        corpus: A built-in corpus in place of files. Its splits are those of `keras_transformer.data`.
        folder: Where the files of all splits are, or those of the corpus `"multi30k"`, which is downloaded otherwise.
        language, text: Target language and kind of text of `"multi30k"`.
        validation_source, validation_target: Files to watch training with.
        test_source, test_target: Files for the final measurement.
        hold_out: How many pairs of the training files are held out for validation if it has no files, and as many for the test.
            No pair with one of these sources is trained on.
        max_pairs: Trains on the first pairs only.
        batch_tokens, num_shapes, max_length, max_ratio: As in `keras_transformer.data.parallel_dataset`.
        subword_sampling: Alpha of the sampling that cuts each sentence anew in every epoch.
    """

    train_source: tuple[Path, ...] | None = key(paths)
    train_target: tuple[Path, ...] | None = key(paths)
    corpus: str | None = key(one_of(*CORPORA))
    folder: Path | None = field(default=None, metadata={"read": or_none(path)})
    language: str = key(one_of("de", "fr"), "de")
    text: str = key(one_of("raw", "tok"), "raw")
    validation_source: tuple[Path, ...] | None = key(paths)
    validation_target: tuple[Path, ...] | None = key(paths)
    test_source: tuple[Path, ...] | None = key(paths)
    test_target: tuple[Path, ...] | None = key(paths)
    hold_out: int | None = key(or_none(positive(integer)))
    max_pairs: int | None = key(or_none(positive(integer)))
    batch_tokens: int = key(integer, 4096)
    num_shapes: int | None = key(or_none(integer), 16)
    max_length: int | None = key(or_none(integer), 256)
    max_ratio: float | None = key(or_none(number), 4.0)
    subword_sampling: float | None = key(or_none(positive(number)))

    def __post_init__(self):
        if (self.corpus is None) == (self.train_source is None):
            raise ValueError(
                f"Name either files (`train_source` and `train_target`) or a built-in `corpus`. "
                f"Received: {'neither' if self.corpus is None else 'both'}"
            )
        for split in SPLITS:
            self._check_files(split)
        if self.corpus is not None and self.corpus != "multi30k" and self.folder is not None:
            raise ValueError(
                "Only files and the corpus 'multi30k' are read from a folder; leave `folder` away. "
                f"Received: folder={self.folder}"
            )

        if self.hold_out is not None and self.corpus is not None:
            raise ValueError(
                f"`hold_out` belongs to files: a built-in corpus has its own splits. Received: corpus={self.corpus!r}, "
                f"hold_out={self.hold_out}"
            )

    def _check_files(self, split: str):
        source, target = self.files(split)
        if self.corpus is not None and (source or target):
            name = f"{split}_target" if target else f"{split}_source"
            raise ValueError(f"`{name}` belongs to files, not to a built-in corpus. Received: corpus={self.corpus!r}")
        if source is None and target is not None:
            raise ValueError(f"`{split}_source` is missing. Received: {split}_target={[str(file) for file in target]}")
        if source is not None and target is None and not all(map(has_columns, source)):
            raise ValueError(
                f"`{split}_target` is missing: only {' and '.join(COLUMN_SUFFIXES)} files hold source and target together. "
                f"Received: {split}_source={[str(file) for file in source]}"
            )

    def files(self, split: str) -> tuple[tuple[Path, ...] | None, tuple[Path, ...] | None]:
        """Returns the files of a split, source and target, in their folder."""
        sides = (getattr(self, f"{split}_{side}") for side in ("source", "target"))
        return tuple(files if files is None else tuple((self.folder or Path()) / file for file in files) for files in sides)


@dataclass(frozen=True)
class TokenizerTable:
    """The table `[tokenizer]`: the vocabulary.

    Args:
        vocabulary_size, model, normalization: As in `keras_transformer.Tokenizer.train`, which trains on both languages.
        shared: Whether both languages have one vocabulary. Otherwise each has one of this size.
        file: A tokenizer to use instead of training one.
    """

    vocabulary_size: int = key(integer, 8000)
    model: str = key(text, "bpe")
    normalization: str = key(text, "nfc")
    shared: bool = key(switch, True)
    file: Path | None = field(default=None, metadata={"read": or_none(path)})


@dataclass(frozen=True)
class ModelTable:
    """The table `[model]`: the shape of the Transformer.

    Args:
        preset: A named shape.
        start_from: The folder of a finished run, or of a translator, whose weights and vocabulary training starts from. Its
            model must have the shape that the recipe describes; dropout may differ.
        model_dim, ...: Fields of `keras_transformer.TransformerConfig`; what is not said is as in the preset.
    """

    preset: str = key(one_of("tiny", "small", "base", "big"), "base")
    start_from: Path | None = field(default=None, metadata={"read": or_none(path)})
    model_dim: int | None = key(integer)
    feed_forward_dim: int | tuple[int, int] | None = key(integers)
    num_heads: int | tuple[int, int] | None = key(integers)
    num_encoder_layers: int | None = key(integer)
    num_decoder_layers: int | None = key(integer)
    norm: str | None = key(text)
    positions: str | None = key(text)
    max_length: int | None = key(integer)
    activation: str | None = key(text)
    use_bias: bool | None = key(switch)
    output_bias: bool | None = key(switch)
    tie: str | None = key(text)
    embedding_scale: bool | None = key(switch)
    layer_norm_epsilon: float | None = key(finite)
    dropout: float | None = key(finite)
    attention_dropout: float | None = key(finite)
    activation_dropout: float | None = key(finite)

    def overrides(self) -> dict[str, Any]:
        """Returns what the recipe says beyond the preset."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("preset", "start_from")}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class OptimizationTable:
    """The table `[optimization]`: how the weights are found. An update is one step of the optimizer.

    Args:
        epochs, max_updates: When training ends; with both, at whichever is reached first.
        tokens_per_update: At least as many target positions go into an update, from several batches if need be.
        schedule: `"paper"`, `factor * M^-0.5 * min(s^-0.5, s * warmup_updates^-1.5)`, or `"inverse_sqrt"`, which rises to
            `peak_rate` and falls with the root of the updates.
        peak_rate, factor: See `schedule`.
        warmup_updates: How long the rate rises.
        cooldown_updates: In how many updates before `max_updates` the rate of `"inverse_sqrt"` falls to 0.
        label_smoothing: Share of the probability that is spread over the vocabulary.
        r_drop: How much two passes through dropout have to agree (R-Drop). Each pair is then twice in its batch.
        clip_norm: The largest norm of all gradients together.
        ema_momentum: Keeps an exponential average of the weights and ends with it.
        average_checkpoints: Ends with the mean of the weights at the last n moments.
        average_every_updates: These moments; without it, the ends of epochs.
        checkpoint_every_updates: Writes a checkpoint within epochs, too, and not only at their ends.
        keep_checkpoints: How many checkpoints stay on the disk.
        dtype: The dtype policy: `"float32"`, `"mixed_bfloat16"` or `"mixed_float16"`.
        xla: Whether TensorFlow compiles each shape of batches. JAX always does, torch never.
        seed: Decides weights, dropout and the order of the data.
    """

    epochs: int | None = key(or_none(positive(integer)))
    max_updates: int | None = key(or_none(positive(integer)))
    tokens_per_update: int | None = key(or_none(positive(integer)))
    schedule: str = key(one_of("paper", "inverse_sqrt"), "paper")
    factor: float = key(positive(number), 1.0)
    peak_rate: float | None = key(or_none(positive(number)))
    warmup_updates: int = key(positive(integer), 4000)
    cooldown_updates: int | None = key(or_none(positive(integer)))
    label_smoothing: float = key(share, 0.1)
    r_drop: float | None = key(or_none(positive(number)))
    clip_norm: float | None = key(or_none(positive(number)))
    ema_momentum: float | None = key(or_none(share))
    average_checkpoints: int = key(positive(integer), 5)
    average_every_updates: int | None = key(or_none(positive(integer)))
    checkpoint_every_updates: int | None = key(or_none(positive(integer)))
    keep_checkpoints: int = key(positive(integer), 2)
    dtype: str = key(one_of("float32", "mixed_bfloat16", "mixed_float16"), "float32")
    xla: bool = key(switch, False)
    seed: int = key(count, 0)

    def __post_init__(self):
        if self.epochs is None and self.max_updates is None:
            raise ValueError("Say when training ends: `epochs`, `max_updates`, or both. Received: neither")
        if self.schedule == "inverse_sqrt" and self.peak_rate is None:
            raise ValueError('The schedule "inverse_sqrt" needs a `peak_rate`, such as 0.0005. Received: no `peak_rate`')
        if self.schedule == "paper" and self.peak_rate is not None:
            raise ValueError(
                'The schedule "paper" follows from the width of the model; scale it with `factor`, or choose "inverse_sqrt". '
                f"Received: peak_rate={self.peak_rate}"
            )
        if self.cooldown_updates is not None and (self.schedule == "paper" or self.cooldown_updates > (self.max_updates or 0)):
            raise ValueError(
                '`cooldown_updates` are the last ones of `max_updates`, with the schedule "inverse_sqrt". '
                f"Received: cooldown_updates={self.cooldown_updates}, max_updates={self.max_updates}, "
                f"schedule={self.schedule!r}"
            )
        if self.ema_momentum is not None and self.average_checkpoints > 1:
            raise ValueError(
                "Choose one average of the weights: `ema_momentum`, with `average_checkpoints = 1`, or `average_checkpoints`. "
                f"Received: ema_momentum={self.ema_momentum}, average_checkpoints={self.average_checkpoints}"
            )


@dataclass(frozen=True)
class EvaluationTable:
    """The table `[evaluation]`: how translations are made and measured, during training and after it.

    Args:
        every_epochs: After how many epochs validation sentences are translated.
        max_sentences: How many of them.
        num_samples: How many are shown.
        beam_size, length_penalty, penalty: As in `keras_transformer.SearchOptions`.
        lowercase, tokenize: How sacrebleu compares.
        batch_tokens: Most positions of a batch, in validation and in translation.
        early_stopping: What to watch, such as `"val_bleu"` or `"val_loss"`.
        patience: After how many measurements without improvement training ends.
        tensorboard: Whether to write logs for TensorBoard.
    """

    every_epochs: int = key(positive(integer), 1)
    max_sentences: int | None = key(or_none(positive(integer)))
    num_samples: int = key(count, 3)
    beam_size: int = key(positive(integer), 4)
    length_penalty: float = key(finite, 0.6)
    penalty: str = key(one_of("google", "power"), "google")
    lowercase: bool = key(switch, False)
    tokenize: str = key(text, "13a")
    batch_tokens: int = key(positive(integer), 2048)
    early_stopping: str | None = key(or_none(text))
    patience: int = key(positive(integer), 5)
    tensorboard: bool = key(switch, False)


@dataclass(frozen=True)
class ExportTable:
    """The table `[export]`: what else is made of the finished model.

    Args:
        saved_model: Whether to export a SavedModel for TensorFlow Serving, into the run's folder `saved_model/NAME`.
    """

    saved_model: bool = key(switch, False)


@dataclass(frozen=True)
class DevicesTable:
    """The table `[devices]`: how a model is spread. On how many devices a run is, its command says.

    Args:
        model_parallel: Among how many devices each copy of the model is divided, on JAX.
    """

    model_parallel: int = key(positive(integer), 1)


def has_columns(file: str | os.PathLike) -> bool:
    """Tells by its name whether a file holds source and target in two columns."""
    return str(file).endswith(COLUMN_SUFFIXES)
