"""Does a written SavedModel answer as the translator does, in a process that knows nothing of this package?"""

import functools
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from keras_transformer.translator import Translation, Translator

RUNTIME = Path(__file__).with_name("runtime.py")


def verify(folder: Path, translator: Translator, texts: Sequence[str], limits):
    """Calls every signature of a SavedModel and compares what it says with the translator's own answers within its limits.

    Args:
        folder: The SavedModel.
        translator: The translator that was exported.
        texts: What to translate; of those that the export would cut, a beginning that it takes whole.
        limits: The `ServedLimits` of the export.

    Raises:
        ValueError: If an answer differs.
    """
    options, tokenizer = translator.options, translator.tokenizer
    texts = [fitting(text, tokenizer.source, limits.source_tokens) for text in texts]
    targets = [fitting(text, tokenizer.target, limits.target_tokens) for text in texts]
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
            "score": {"source": texts, "target": targets},
            "align": {"text": texts},
        },
    )

    @functools.cache
    def own(text: str, beam_size: int) -> Translation:
        lengths = lengths_within(limits, text, translator)
        return translator.translate(text, beam_size=beam_size, num_hypotheses=1, return_scores=True, **lengths)

    expected = [own(text, min(options.beam_size, limits.beam_size)) for text in texts]
    compare("serving_default", texts, answers["serving_default"], expected, translator, limits)
    sizes = [min(size, limits.beam_size) for size in asked["beam_size"]]
    compare("translate_with_options", texts, answers["translate_with_options"], map(own, texts, sizes), translator, limits)
    first = {name: [row[0] for row in answers["nbest"][f"{name}s"]] for name in ("translation", "score")}
    expected = [own(text, max(options.beam_size, limits.num_hypotheses)) for text in texts]
    compare("nbest", texts, first, expected, translator, limits)
    for text, ours, theirs in zip(texts, answers["score"]["log_probability"], translator.score(texts, targets), strict=True):
        if not math.isclose(ours, theirs, rel_tol=tolerance(translator), abs_tol=tolerance(translator)):
            raise ValueError(f"The export scores {text!r} with {ours}, the translator with {theirs}")
    if answers["align"]["translation"] != answers["serving_default"]["translation"]:
        raise ValueError("The signature `align` translates otherwise than `serving_default`")


def fitting(text: str, tokenizer, limit: int) -> str:
    """Returns a text if it has no more tokens than the limit, or a beginning that has not."""
    ids = tokenizer.encode(text)
    beginning = text if len(ids) <= limit else tokenizer.decode(ids[:limit])
    while len(tokenizer.encode(beginning)) > limit:
        beginning = beginning[:-1]
    return beginning


def lengths_within(limits, text: str, translator: Translator) -> dict[str, int]:
    """Returns the lengths that a search for the translation of a text has under the limits of an export."""
    options = translator.options
    usual = options.max_length
    if usual is None:
        usual = len(translator.tokenizer.source.encode(text)) + options.extra_length
    most = min(max(usual, options.min_length), limits.target_tokens)
    return {"min_length": min(options.min_length, most), "max_length": most}


def compare(signature: str, texts: Sequence[str], answer: dict, expected: Iterable, translator: Translator, limits):
    """Raises a `ValueError` if translations differ, unless the translator thinks as well of both."""
    for text, translation, score, own in zip(texts, answer["translation"], answer["score"], expected, strict=True):
        is_close = math.isclose(score, own.score, rel_tol=tolerance(translator), abs_tol=tolerance(translator))
        if not is_close or (translation != own.text and not is_alternative(translation, text, translator, limits)):
            raise ValueError(
                f"The export ({signature}) translates {text!r} as {translation!r} with a score of {score}; the translator as "
                f"{own.text!r} with {own.score}"
            )


def tolerance(translator: Translator) -> float:
    """Returns by how much scores may differ: a graph adds in another order."""
    return 1e-3 if translator.model.dtype_policy.compute_dtype == "float32" else 5e-2


def is_alternative(translation: str, text: str, translator: Translator, limits) -> bool:
    """Tells whether the translator itself finds a translation among others."""
    size = max(2, translator.options.beam_size, limits.num_hypotheses)
    lengths = lengths_within(limits, text, translator)
    return translation in translator.translate(text, beam_size=size, num_hypotheses=size, **lengths)


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
