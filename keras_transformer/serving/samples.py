"""Texts that an export is compared with its translator on, and that its pages give as examples: what the model knows."""

import os
from pathlib import Path

from keras_transformer.json_files import read_json

SAMPLES = ("The animal didn't cross the street because it was too tired.", "A house.", "", "one two three four five six seven")
RESULTS = "results.json"  # What a run found.
MOST = 3


def samples_of_run(directory: str | os.PathLike) -> list[str]:
    """Returns samples for the export of a run.

    Args:
        directory: The folder of a run, or of the translator in it.

    Returns:
        Sentences that the run was tested on, and an empty text; `SAMPLES` if the folder is in no finished run.
    """
    return samples_of_results(results_of_run(directory))


def languages_of_run(directory: str | os.PathLike) -> list[str] | None:
    """Returns the codes of the source and the target language of a run, if they are known."""
    return results_of_run(directory).get("data", {}).get("languages")


def results_of_run(directory: str | os.PathLike) -> dict:
    """Reads what a run found; nothing if a folder is neither that of a finished run nor that of the translator in it."""
    is_translator = (Path(directory) / "translator.json").is_file()
    results = (Path(directory).absolute().parent if is_translator else Path(directory)) / RESULTS
    return read_json(results) if results.is_file() else {}


def samples_of_results(results: dict) -> list[str]:
    """Returns samples for an export from what is in the `results.json` of a run."""
    texts = [sample["source"] for sample in results.get("samples", ()) if sample["source"].strip()]
    return [*texts[:MOST], ""] if texts else list(SAMPLES)


def examples_in(samples: list[str]) -> list[str]:
    """Returns the samples to show to people. Of `SAMPLES`, which a model may not know, only the first."""
    return samples[:1] if samples == list(SAMPLES) else [text for text in samples if text.strip()][:MOST]
