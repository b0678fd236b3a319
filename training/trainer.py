"""A run from its recipe to its report."""

import contextlib
import json
import sys
import warnings
from collections.abc import Sequence

import keras

import keras_transformer as kt
from keras_transformer import callbacks
from keras_transformer.callbacks.processes import is_writer, wait_for_each_other

from .building import (
    check_recipe,
    compile_model,
    config_for,
    make_config,
    make_model,
    make_schedule,
    num_epochs,
    num_updates,
    rate_at,
    search_options,
    training_set,
    validation_set,
)
from .console import program
from .corpora import Splits, find_splits, make_tokenizer
from .devices import Devices
from .finishing import finish
from .progress import ProgressLines
from .recipe import Recipe
from .recipe_values import check_unicode
from .report import several
from .run_folder import RunFolder
from .run_log import RunLog, StopAfter
from .tensorboard import TensorBoardLog

LARGE = 100  # Parameters for each token of text, from which on a model is too large for it.


def train(
    recipe: Recipe,
    run: RunFolder,
    resume: bool = False,
    command: str = "",
    extra_callbacks: Sequence[keras.callbacks.Callback] = (),
    verbose: bool = True,
    devices: Devices | None = None,
) -> dict:
    """Trains what a recipe describes, or goes on with it.

    Of several processes that train together, the first one begins the run, writes all its files and finishes it.

    Args:
        recipe: The recipe.
        run: Where everything goes.
        resume: Whether to go on if the run has begun already. Without it, that is an error.
        command: The command that asks for this, for the report.
        extra_callbacks: Further callbacks, called before the others.
        verbose: Whether to show progress.
        devices: What to train on; defaults to one device.

    Returns:
        The results: scores, samples, facts; as in the run's `results.json`. Empty in all processes but the first.
    """
    devices = devices or Devices()
    for text in (str(run), command):  # Else it would be known when the report is written.
        check_unicode(text)
    with begin(recipe, run, resume, devices):
        if run.is_finished:
            return json.loads(run.results.read_text(encoding="utf8"))
        return carry_out(recipe, run, command, extra_callbacks, verbose and is_writer(), devices)


def carry_out(
    recipe: Recipe,
    run: RunFolder,
    command: str,
    extra_callbacks: Sequence[keras.callbacks.Callback],
    verbose: bool,
    devices: Devices,
) -> dict:
    """Does what is left to do of a run that has begun, and returns its results; see `train`."""
    splits = find_splits(recipe.data)
    tokenizer = own_tokenizer(run, recipe, splits)
    devices.check_config(config_for(recipe, tokenizer))
    dataset = training_set(recipe, splits.train, tokenizer, devices)
    with devices.scope():
        model = make_model(recipe, tokenizer)
        compile_model(model, recipe, devices.can_compile)
        if is_writer():
            warn_of_disproportion(recipe, dataset, model)
        if verbose:
            print(introduction(recipe, run, splits, dataset, model, devices), flush=True)
        log = run_log(recipe, run, dataset, model)
        callbacks.fit(
            model,
            dataset,
            epochs=num_epochs(recipe, dataset),
            checkpoints=make_checkpoints(recipe, run),
            callbacks=[*extra_callbacks, *make_callbacks(recipe, run, splits, tokenizer, log, verbose)],
            validation_data=validation_set(recipe, splits.validation, tokenizer, devices),
            verbose=(1 if sys.stdout.isatty() else 2) if verbose else 0,
        )
    model = devices.trained(model)
    if not is_writer():
        return {}
    translator = kt.Translator(model, tokenizer, search_options(recipe))
    return finish(run, recipe, translator, splits, log, dataset, command)


def begin(recipe: Recipe, run: RunFolder, resume: bool, devices: Devices) -> contextlib.AbstractContextManager:
    """Sees to it that a recipe can be trained on the devices, and makes the folder of its run, or goes on in it.

    Returns:
        What to do the training in: in the first process, what keeps others from training in the folder.
    """
    check_recipe(recipe)
    devices.check_recipe(recipe)
    devices.check_config(make_config(recipe, recipe.tokenizer.vocabulary_size, recipe.tokenizer.vocabulary_size))
    held = run.begin(recipe, resume) if is_writer() else contextlib.nullcontext()
    wait_for_each_other("the run has begun")
    return held


def own_tokenizer(run: RunFolder, recipe: Recipe, splits: Splits):
    """Returns the run's tokenizer, which is made when the run begins, or is that of the run it starts from."""
    if is_writer() and not run.tokenizer.is_file():
        start = recipe.model.start_from
        tokenizer = kt.Translator.load(start).tokenizer if start else make_tokenizer(splits.train, recipe.tokenizer)
        tokenizer.save(run.tokenizer)
    wait_for_each_other("there is a tokenizer")
    return kt.load_tokenizer(run.tokenizer)


def run_log(recipe: Recipe, run: RunFolder, dataset: kt.data.ParallelDataset, model: kt.Transformer) -> RunLog:
    """Makes the log of a run."""
    schedule, batches = make_schedule(recipe, model.config.model_dim), recipe.batches_per_update
    return RunLog(run.history, run.steps, dataset, batches, lambda update: float(rate_at(schedule, update, batches)[0]))


def make_checkpoints(recipe: Recipe, run: RunFolder) -> callbacks.Checkpoints:
    """Makes the checkpoints of a run."""
    table = recipe.optimization
    steps = table.checkpoint_every_updates and table.checkpoint_every_updates * recipe.batches_per_update
    return callbacks.Checkpoints(run.checkpoints, every_steps=steps, keep=table.keep_checkpoints)


def make_callbacks(recipe: Recipe, run: RunFolder, splits: Splits, tokenizer, log: RunLog, verbose: bool) -> list:
    """Makes what watches a training, in the order in which one sees what the other has measured."""
    table, watch = recipe.optimization, recipe.evaluation
    found = []
    if splits.validation is not None:
        found.append(bleu_evaluation(recipe, splits, tokenizer, verbose))
    found.append(log)
    if verbose and not sys.stdout.isatty():
        steps = num_updates(recipe, log.dataset) * recipe.batches_per_update
        found.append(ProgressLines(log, num_epochs(recipe, log.dataset), steps))
    if watch.early_stopping is not None:
        found.append(callbacks.EarlyStopping(watch.early_stopping, watch.patience, verbose=int(verbose)))
    if table.average_checkpoints > 1:
        steps = table.average_every_updates and table.average_every_updates * recipe.batches_per_update
        found.append(callbacks.WeightAveraging(table.average_checkpoints, run.averages, every_steps=steps))
    if table.max_updates is not None:
        found.append(StopAfter(table.max_updates * recipe.batches_per_update))
    if watch.tensorboard and is_writer():
        found.append(TensorBoardLog(run.tensorboard))
    return found


def bleu_evaluation(recipe: Recipe, splits: Splits, tokenizer, verbose: bool) -> callbacks.BleuEvaluation:
    """Makes the measurement of translations during training."""
    table, pairs = recipe.evaluation, splits.validation.pairs()
    return callbacks.BleuEvaluation(
        pairs.source,
        pairs.target,
        tokenizer,
        every_epochs=table.every_epochs,
        beam_size=table.beam_size,
        length_penalty=table.length_penalty,
        num_samples=table.num_samples,
        max_sentences=table.max_sentences,
        batch_tokens=table.batch_tokens,
        lowercase=table.lowercase,
        tokenize=table.tokenize,
        verbose=int(verbose),
    )


def introduction(
    recipe: Recipe, run: RunFolder, splits: Splits, dataset: kt.data.ParallelDataset, model, devices: Devices
) -> str:
    """Says what is about to happen."""
    updates, epochs, batches = num_updates(recipe, dataset), num_epochs(recipe, dataset), recipe.batches_per_update
    return (
        f"{recipe.name} on {keras.backend.backend()}, {devices}, into {run}\n"
        f"data        {splits.train.name}\n{dataset.describe()}\n"
        f"model       {model.count_params():,} parameters, {recipe.optimization.dtype}\n"
        f"training    {updates:,} updates in {several(epochs, 'epoch')}, {several(batches, 'batch', 'es')} an update"
    )


def warn_of_disproportion(recipe: Recipe, dataset: kt.data.ParallelDataset, model):
    """Warns of a model or a schedule that does not fit the amount of text, with which nothing would be learned for long."""
    updates, warmup = num_updates(recipe, dataset), recipe.optimization.warmup_updates
    parameters, tokens = model.count_params(), dataset.statistics.tokens("target")
    advice = f"`{program('new')}` writes a recipe that fits the text"
    if 2 * warmup > updates:
        warnings.warn(
            f"The learning rate rises for {warmup:,} of {updates:,} updates. Lower warmup_updates to {max(1, updates // 6):,}, "
            f"or train longer; {advice}",
            stacklevel=2,
        )
    if parameters > LARGE * tokens:
        warnings.warn(
            f"The model has {parameters:,} parameters for a text of {tokens:,} tokens. Choose a smaller `preset`, such as "
            f'"tiny"; {advice}',
            stacklevel=2,
        )
