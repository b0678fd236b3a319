"""Does a written SavedModel answer as the translator does, in a process that knows nothing of this package?"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from keras_transformer.translator import Translator

RUNTIME = Path(__file__).with_name("runtime.py")


def verify(folder: Path, translator: Translator, texts: Sequence[str], limits):
    """Calls every signature of a SavedModel and compares what it says with the translator's own answers.

    Args:
        folder: The SavedModel.
        translator: The translator that was exported.
        texts: What to translate.
        limits: The `ServedLimits` of the export.

    Raises:
        ValueError: If an answer differs.
    """
    texts = list(texts)
    options = translator.options
    asked = {
        "text": texts,
        "beam_size": [(1, options.beam_size)[number % 2] for number in range(len(texts))],
        "length_penalty": [options.length_penalty] * len(texts),
        "max_length": [0] * len(texts),
    }
    answers = run_signatures(
        folder,
        {
            "serving_default": {"text": texts},
            "translate_with_options": asked,
            "nbest": {"text": texts},
            "score": {"source": texts, "target": texts},
            "align": {"text": texts},
        },
    )
    expected = translator.translate(texts, return_scores=True, num_hypotheses=1, progress=False)
    compare("serving_default", texts, answers["serving_default"], expected, translator)
    expected_options = [
        translator.translate(text, beam_size=size, num_hypotheses=1, return_scores=True)
        for text, size in zip(texts, asked["beam_size"], strict=True)
    ]
    compare("translate_with_options", texts, answers["translate_with_options"], expected_options, translator)
    first = {name: [row[0] for row in answers["nbest"][f"{name}s"]] for name in ("translation", "score")}
    if limits.num_hypotheses <= options.beam_size:
        compare("nbest", texts, first, expected, translator)
    for text, ours, theirs in zip(texts, answers["score"]["log_probability"], translator.score(texts, texts), strict=True):
        if not math.isclose(ours, theirs, rel_tol=tolerance(translator), abs_tol=tolerance(translator)):
            raise ValueError(f"The export scores {text!r} with {ours}, the translator with {theirs}")
    if answers["align"]["translation"] != answers["serving_default"]["translation"]:
        raise ValueError("The signature `align` translates otherwise than `serving_default`")


def compare(signature: str, texts: Sequence[str], answer: dict, expected: Sequence, translator: Translator):
    """Raises a `ValueError` if translations differ, unless the translator thinks as well of both."""
    for text, translation, score, own in zip(texts, answer["translation"], answer["score"], expected, strict=True):
        is_close = math.isclose(score, own.score, rel_tol=tolerance(translator), abs_tol=tolerance(translator))
        if not is_close or (translation != own.text and not is_alternative(translation, text, translator)):
            raise ValueError(
                f"The export ({signature}) translates {text!r} as {translation!r} with a score of {score}; the translator as "
                f"{own.text!r} with {own.score}"
            )


def tolerance(translator: Translator) -> float:
    """Returns by how much scores may differ: a graph adds in another order."""
    return 1e-3 if translator.model.dtype_policy.compute_dtype == "float32" else 5e-2


def is_alternative(translation: str, text: str, translator: Translator) -> bool:
    """Tells whether the translator itself finds a translation among others."""
    size = max(2, translator.options.beam_size)
    return translation in translator.translate(text, beam_size=size, num_hypotheses=size)


def run_signatures(folder: Path, requests: dict[str, dict]) -> dict[str, dict]:
    """Runs signatures of a SavedModel in TensorFlow's C runtime, in a process of its own without this package.

    Args:
        folder: The SavedModel.
        requests: From names of signatures to their inputs, lists by name.

    Returns:
        From names of signatures to their outputs, lists by name.
    """
    lines = [json.dumps({"signature": name, "inputs": inputs}) for name, inputs in requests.items()]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        [sys.executable, "-I", str(RUNTIME), str(folder)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if result.returncode:
        raise ValueError(f"TensorFlow's runtime cannot run the export: {result.stderr.strip()[-2000:]}")
    return dict(zip(requests, map(json.loads, result.stdout.splitlines()), strict=True))
