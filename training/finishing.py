"""The end of a run: a translator, what it scores, curves and a report."""

import importlib.util
import io
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np

import keras_transformer as kt
from keras_transformer.serving.samples import samples_of_results
from keras_transformer.text.files import write_bytes

from . import machine
from .building import make_schedule, rate_at
from .corpora import Splits
from .evaluation_log import log_evaluation
from .recipe import Recipe
from .report import write_report
from .run_folder import RunFolder
from .scores import Score, split_scores

NUM_SAMPLES = 8


def finish(run: RunFolder, recipe: Recipe, translator: kt.Translator, splits: Splits, log, dataset, command: str) -> dict:
    """Saves a trained model as a translator, measures it and writes about it.

    Args:
        run: The run.
        recipe: Its recipe.
        translator: The finished translator.
        splits: The data.
        log: The `RunLog` of the training.
        dataset: What was trained on.
        command: The command that trained it.

    Returns:
        The results, as in `results.json`.
    """
    model = translator.model
    translator.save(run.translator)
    results = {
        "recipe": recipe.name,
        "command": command,
        "scores": {},
        "samples": [],
        "training": training_facts(log),
        "data": data_facts(splits, dataset),
        "model": {**asdict(model.config), "parameters": model.count_params()},
        "machine": machine.machine(),
        "versions": machine.versions(),
    }
    measure(run, results, translator, splits, recipe)
    save_curves(run, recipe, log, model.config.model_dim)
    if recipe.export.saved_model:
        kt.export_saved_model(
            translator,
            run.directory / "saved_model" / recipe.name,
            samples=samples_of_results(results),
            languages=results["data"]["languages"],
            progress=True,
        )
    run.write_results(results)
    write_report(run, recipe, results)
    return results


def measure(run: RunFolder, results: dict, translator: kt.Translator, splits: Splits, recipe: Recipe):
    """Translates the validation set and all tests, and notes scores, and samples of the first test."""
    table = recipe.evaluation
    search = {"beam_size": table.beam_size, "length_penalty": table.length_penalty, "penalty": table.penalty}
    for name in splits.measured:
        pairs = splits.pairs_of(name)
        translations = translator.translate(pairs.source, batch_tokens=table.batch_tokens)
        scores = split_scores(splits, name, translations, table)
        log_evaluation(run.directory, name, pairs.source, [[target] for target in pairs.target], search, scores)
        results["scores"][name] = [score.as_json() for score in scores]
        results["samples"] = results["samples"] or samples(pairs, translations)


def samples(pairs: kt.data.Pairs, translations: list[str]) -> list[dict]:
    """Returns the first two sentences and some from all over a split, with their translations."""
    places = np.linspace(0, len(pairs) - 1, min(NUM_SAMPLES, len(pairs))).astype(int)
    places = sorted({*range(min(2, len(pairs))), *map(int, places)})[:NUM_SAMPLES]
    columns = {"source": pairs.source, "translation": translations, "reference": pairs.target}
    return [{name: texts[place] for name, texts in columns.items()} for place in places]


def training_facts(log) -> dict:
    """Returns how much was trained, and how fast."""
    last = log.rows[-1]
    return {
        "epochs": last["epoch"],
        "updates": last["updates"],
        "tokens": last["tokens"],
        "seconds": last["seconds"],
        "tokens_per_second": round(last["tokens"] / max(last["train_seconds"], 1e-9), 1),
        "last_epoch": last,
    }


def data_facts(splits: Splits, dataset: kt.data.ParallelDataset) -> dict:
    """Returns what was trained on."""
    return {
        "languages": languages_of(splits),
        "train": splits.train.name,
        "validation": None if splits.validation is None else splits.validation.name,
        "tests": {name: split.name for name, split in splits.tests.items()},
        "statistics": dataset.statistics.describe().splitlines(),
        "batches": len(dataset.plan(0)),
        "shapes": len(dataset.shapes()),
        "padding": dataset.padding_share(),
    }


def languages_of(splits: Splits) -> list[str] | None:
    """Returns the codes of the two languages: those of the corpus, or the endings of files such as `train.en.gz`."""
    if splits.corpus is not None:
        codes = [splits.corpus.source_language, splits.corpus.target_language]
    else:
        sides = (splits.train.source, splits.train.target or splits.train.source)
        codes = [Path(side[0]).name.removesuffix(".gz").rpartition(".")[2] if isinstance(side, list) else "" for side in sides]
    return codes if codes[0] != codes[1] and all(len(code) == 2 and code.islower() for code in codes) else None


def save_curves(run: RunFolder, recipe: Recipe, log, model_dim: int):
    """Draws the course of the training, if there is something to draw with."""
    if importlib.util.find_spec("matplotlib") is None:
        warnings.warn('No curves.png: matplotlib is not installed. Install it with: pip install ".[plots]"', stacklevel=2)
        return
    from keras_transformer.visualization import plot_training

    schedule = make_schedule(recipe, model_dim)
    figure = plot_training(
        log.rows, recipe.name, lambda updates: rate_at(schedule, updates, recipe.batches_per_update), log.parts
    )
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_bytes(run.curves, picture.getvalue())


def scores_of(results: dict) -> dict[str, list[Score]]:
    """Returns the scores of results that were read from a file, by split."""
    return {split: [Score(**one) for one in scores] for split, scores in results["scores"].items()}
