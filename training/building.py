"""From a recipe to what it speaks of: model, optimizer, datasets, options of the search."""

from pathlib import Path

import keras
import numpy as np

import keras_transformer as kt
from keras_transformer import callbacks, losses, metrics, schedules
from keras_transformer.models.presets import PRESETS
from keras_transformer.serving.export import check_name

from .corpora import SplitPairs, check_numbers, make_dataset
from .device_batches import divided
from .devices import Devices
from .recipe import Recipe
from .recipe_values import did_you_mean
from .scores import comparison

VALIDATION_SHAPES = 4
MAY_DIFFER = ("dropout", "attention_dropout", "activation_dropout")
Schedule = keras.optimizers.schedules.LearningRateSchedule


def check_recipe(recipe: Recipe):
    """Raises a `ValueError` for what a recipe cannot mean, before hours are spent on its data.

    Args:
        recipe: A recipe that was read. The types of its values are right.
    """
    with_table("data", check_numbers, recipe.data)
    config = with_table("model", make_config, recipe, recipe.tokenizer.vocabulary_size, recipe.tokenizer.vocabulary_size)
    if config.tie == "all" and not recipe.tokenizer.shared:
        raise ValueError(
            'Table [model]: one matrix of embeddings (`tie = "all"`, the default) cannot serve two vocabularies. Say '
            '`tie = "decoder"`, or leave `shared` away. Received: shared = false'
        )
    with_table("evaluation", search_options, recipe)
    with_table("evaluation", comparison, recipe.evaluation.lowercase, recipe.evaluation.tokenize)
    if recipe.evaluation.early_stopping is not None:
        with_table("evaluation", check_watched, recipe)
        with_table("evaluation", callbacks.EarlyStopping, recipe.evaluation.early_stopping, recipe.evaluation.patience)
    if recipe.export.saved_model:
        with_table("export", check_name, recipe.name, "With `saved_model = true`, the name of the recipe's file")


def check_watched(recipe: Recipe):
    """Raises a `ValueError` if early stopping is to watch a number that the training will not have."""
    name, known = recipe.evaluation.early_stopping, measured_names(recipe)
    if name not in known:
        hint = did_you_mean(name.lower(), known) or f". There are {', '.join(known)}; and val_bleu with a validation set."
        raise ValueError(f"`early_stopping`: nothing is measured under this name{hint} Received: early_stopping = {name!r}")


def measured_names(recipe: Recipe) -> list[str]:
    """Returns the names of the numbers that an epoch has, those of the validation set first if there is one."""
    has_validation = recipe.data.corpus is not None or recipe.data.validation_source is not None
    names = ["loss", "token_accuracy", "perplexity"]
    return [*(f"val_{name}" for name in ["bleu", "chrf", *names] if has_validation), *names]


def with_table(name: str, check, *arguments):
    """Makes something of a table's values; an error names the table."""
    try:
        return check(*arguments)
    except ValueError as error:
        raise ValueError(f"Table [{name}]: {error}") from error


def search_options(recipe: Recipe) -> kt.SearchOptions:
    """Returns how the recipe's model translates."""
    table = recipe.evaluation
    return kt.SearchOptions(beam_size=table.beam_size, length_penalty=table.length_penalty, penalty=table.penalty)


def make_config(recipe: Recipe, source_size: int, target_size: int, **ids: int) -> kt.TransformerConfig:
    """Returns the shape of the recipe's model for two sizes of vocabulary."""
    sizes = {"source_vocabulary_size": source_size, "target_vocabulary_size": target_size}
    return kt.TransformerConfig.from_dict({**PRESETS[recipe.model.preset], **recipe.model.overrides(), **sizes, **ids})


def config_for(recipe: Recipe, tokenizer) -> kt.TransformerConfig:
    """Returns the shape of the recipe's model for a tokenizer."""
    source, target = kt.as_tokenizer(tokenizer).source, kt.as_tokenizer(tokenizer).target
    ids = {name: getattr(target, name) for name in ("pad_id", "start_id", "end_id", "unknown_id")}
    return make_config(recipe, source.vocabulary_size, target.vocabulary_size, **ids)


def make_model(recipe: Recipe, tokenizer) -> kt.Transformer:
    """Makes the recipe's model, with the weights it starts from, or with fresh ones, which the seed decides."""
    config = config_for(recipe, tokenizer)
    keras.utils.set_random_seed(recipe.optimization.seed)
    model = kt.Transformer(config, dtype=recipe.optimization.dtype)
    if recipe.model.start_from is not None:
        start = kt.Translator.load(recipe.model.start_from).model
        with_table("model", check_shape, start.config, config, recipe.model.start_from)
        model.set_weights(start.get_weights())
    return model


def check_shape(start: kt.TransformerConfig, wanted: kt.TransformerConfig, name: Path):
    """Raises a `ValueError` if a model computes something else than the one that is to start from its weights."""
    start, wanted = start.to_dict(), wanted.to_dict()
    others = [one for one in wanted if start[one] != wanted[one] and one not in MAY_DIFFER]
    if others:
        raise ValueError(
            f"The model in {name} has another shape than the recipe describes. Set in the recipe "
            + ", ".join(f"{one} = {start[one]!r}" for one in others)
            + ". Received: "
            + ", ".join(f"{one}={wanted[one]!r}" for one in others)
        )


def make_schedule(recipe: Recipe, model_dim: int) -> Schedule:
    """Makes the recipe's schedule, which counts updates."""
    table, steps = recipe.optimization, recipe.batches_per_update
    if table.schedule == "paper":
        return schedules.WarmupSchedule(model_dim, table.warmup_updates, table.factor, steps_per_update=steps)
    end = {"total_steps": table.max_updates, "cooldown_steps": table.cooldown_updates or 0}
    return schedules.InverseSquareRootSchedule(table.peak_rate, table.warmup_updates, steps_per_update=steps, **end)


def make_loss(recipe: Recipe, pad_id: int) -> losses.SmoothedCrossEntropy:
    """Makes the recipe's loss."""
    table = recipe.optimization
    if table.r_drop is None:
        return losses.SmoothedCrossEntropy(table.label_smoothing, pad_id=pad_id)
    return losses.RDropCrossEntropy(table.r_drop, table.label_smoothing, pad_id=pad_id)


def rate_at(schedule: Schedule, updates: np.ndarray, batches_per_update: int) -> np.ndarray:
    """Returns the learning rates of updates, counted from 1."""
    return np.array([float(schedule((int(update) - 1) * batches_per_update)) for update in np.atleast_1d(updates)])


def compile_model(model: kt.Transformer, recipe: Recipe, xla: bool = True):
    """Gives a model the recipe's optimizer, loss and metrics.

    Args:
        model: The model.
        recipe: The recipe.
        xla: Whether TensorFlow may compile at all where the model is.
    """
    table, pad_id = recipe.optimization, model.config.pad_id
    options = {} if table.clip_norm is None else {"global_clipnorm": table.clip_norm}
    if table.ema_momentum is not None:
        options |= {"use_ema": True, "ema_momentum": table.ema_momentum}
    optimizer = kt.optimizers.paper_adam(
        model.config.model_dim,
        learning_rate=make_schedule(recipe, model.config.model_dim),
        batches_per_update=recipe.batches_per_update,
        **options,
    )
    model.compile(
        optimizer=optimizer,
        loss=make_loss(recipe, pad_id),
        metrics=[metrics.TokenAccuracy(pad_id), metrics.Perplexity(pad_id)],
        jit_compile=table.xla and xla if keras.backend.backend() == "tensorflow" else "auto",
    )


def training_set(recipe: Recipe, pairs: SplitPairs, tokenizer, devices: Devices) -> kt.data.ParallelDataset:
    """Makes the batches to train on, or this process's part of them."""
    alpha = recipe.data.subword_sampling
    dataset = make_dataset(
        pairs,
        tokenizer,
        recipe.data,
        seed=recipe.optimization.seed,
        batches_per_update=recipe.batches_per_update,
        subword_sampling=None if alpha is None else kt.SubwordSampling(alpha=alpha),
        shard=devices.shard,
        copies=1 if recipe.optimization.r_drop is None else 2,
    )
    check_lengths(recipe, dataset, config_for(recipe, tokenizer))
    return divided(dataset, devices.num_parts)


def validation_set(recipe: Recipe, pairs: SplitPairs | None, tokenizer, devices: Devices) -> kt.data.ParallelDataset | None:
    """Makes the batches to watch training with, or this process's part of them, if there are any pairs for it."""
    if pairs is None:
        return None
    shapes = recipe.data.num_shapes and min(recipe.data.num_shapes, VALIDATION_SHAPES)
    options = {"batch_tokens": recipe.evaluation.batch_tokens, "num_shapes": shapes, "shuffle": False}
    dataset = make_dataset(pairs, tokenizer, recipe.data, shard=devices.shard, **options)
    check_lengths(recipe, dataset, config_for(recipe, tokenizer))
    return divided(dataset, devices.num_parts)


def check_lengths(recipe: Recipe, dataset: kt.data.ParallelDataset, config: kt.TransformerConfig):
    """Raises a `ValueError` if batches are longer than the positions that a model can learn."""
    longest = max(max(shape.source_length, shape.target_length) for shape in dataset.shapes())
    if config.positions == "learned" and longest > config.max_length:
        raise ValueError(
            f"Batches have up to {longest} positions, and the model learns {config.max_length}. Raise model.max_length to "
            f"{longest}, or lower data.max_length to less than model.max_length: the end of a sentence takes a position, and "
            f"data.subword_sampling some more. Received: model.max_length={config.max_length}, "
            f"data.max_length={recipe.data.max_length}"
        )


def num_epochs(recipe: Recipe, dataset: kt.data.ParallelDataset) -> int:
    """Returns after how many epochs training ends at the latest."""
    table = recipe.optimization
    if table.max_updates is None:
        return table.epochs
    needed = -(-table.max_updates * recipe.batches_per_update // len(dataset))
    return needed if table.epochs is None else min(needed, table.epochs)


def num_updates(recipe: Recipe, dataset: kt.data.ParallelDataset) -> int:
    """Returns after how many updates training ends at the latest."""
    updates = num_epochs(recipe, dataset) * len(dataset) // recipe.batches_per_update
    return min(updates, recipe.optimization.max_updates or updates)
