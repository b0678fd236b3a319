"""Does a written SavedModel answer as the translator does, in a process that knows nothing of this package?"""

import functools
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from keras_transformer.attention import attention_scores
from keras_transformer.text.cutting import cut_text, most_bytes
from keras_transformer.translator import Translation, Translator

RUNTIME = Path(__file__).with_name("runtime.py")


def verify(
    folder: Path,
    translator: Translator,
    texts: Sequence[str],
    limits,
    tell: Callable[[str], None] = lambda line: None,
):
    """Calls every signature of a SavedModel and compares what it says with the translator's own answers within its limits.

    Args:
        folder: The SavedModel.
        translator: The translator that was exported.
        texts: What to translate; of those that the export would cut, a beginning that it takes whole.
        limits: The `ServedLimits` of the export.
        tell: Is told what is being done.

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
    tell("loading it in a process of its own, and translating")
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

    tell("comparing its answers with the translator's")

    @functools.cache
    def own(text: str, beam_size: int, count: int) -> list[Translation]:
        lengths = lengths_within(limits, text, translator)
        found = translator.translate(text, beam_size=beam_size, num_hypotheses=count, return_scores=True, **lengths)
        return found if count > 1 else [found]

    beam_size, count = min(options.beam_size, limits.beam_size), limits.num_hypotheses
    searches = {  # How widely the export searches for each text.
        "serving_default": [beam_size] * len(texts),
        "translate_with_options": [min(size, limits.beam_size) for size in asked["beam_size"]],
        "nbest": [max(beam_size, count)] * len(texts),
    }
    for signature, sizes in searches.items():
        rows = hypotheses_of(answers[signature])
        for text, size, row in zip(texts, sizes, rows, strict=True):
            most = len(row) if computes_in_float32(translator) else 1  # Roundings decide about the others.
            compare(signature, text, row[:most], own(text, size, len(row))[:most], translator, limits)
        if any(answers[signature].get("truncated", [])):
            raise ValueError(f"The export ({signature}) says that it cut texts that it takes whole: {texts}")
    scored = answers["score"]["log_probability"], answers["score"]["token_count"]
    for text, target, score, length, wanted in zip(texts, targets, *scored, translator.score(texts, targets), strict=True):
        wanted_length = len(tokenizer.target.encode(target)) + 1
        if not is_close(score, wanted, translator) or length != wanted_length:
            raise ValueError(
                f"The export scores {target!r} for {text!r} with {score} for {length} tokens; the translator with {wanted} for "
                f"{wanted_length}"
            )
    if answers["align"]["translation"] != answers["serving_default"]["translation"]:
        raise ValueError("The signature `align` translates otherwise than `serving_default`")
    for number, text in enumerate(texts):
        compare_alignment(text, {name: values[number] for name, values in answers["align"].items()}, translator)


def fitting(text: str, tokenizer, limit: int) -> str:
    """Returns a text if it has no more tokens than the limit, or a beginning that has not."""
    text, _ = cut_text(text, most_bytes(tokenizer, limit))
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


def hypotheses_of(answer: dict) -> list[list[tuple[str, float]]]:
    """Returns the translations of each text with their scores, whichever signature found them."""
    if "translations" in answer:
        return [list(zip(*row, strict=True)) for row in zip(answer["translations"], answer["scores"], strict=True)]
    return [[pair] for pair in zip(answer["translation"], answer["score"], strict=True)]


def compare(signature: str, text: str, found: Sequence, expected: Sequence[Translation], translator: Translator, limits):
    """Raises a `ValueError` if translations differ, unless the translator thinks as well of both."""
    for (translation, score), own in zip(found, expected, strict=True):
        is_as_good = is_close(score, own.score, translator)
        if not is_as_good or not (translation == own.text or is_alternative(translation, text, translator, limits)):
            raise ValueError(
                f"The export ({signature}) translates {text!r} as {translation!r} with a score of {score}; the translator as "
                f"{own.text!r} with {own.score}"
            )


def is_close(ours: float, theirs: float, translator: Translator) -> bool:
    """Tells whether two scores are the same: a graph adds in another order."""
    return math.isclose(ours, theirs, rel_tol=tolerance(translator), abs_tol=tolerance(translator))


def tolerance(translator: Translator) -> float:
    """Returns by how much numbers may differ."""
    return 1e-3 if computes_in_float32(translator) else 5e-2


def computes_in_float32(translator: Translator) -> bool:
    """Tells whether a model computes in full precision."""
    return translator.model.dtype_policy.compute_dtype == "float32"


def is_alternative(translation: str, text: str, translator: Translator, limits) -> bool:
    """Tells whether the translator itself finds a translation among others."""
    lengths = lengths_within(limits, text, translator)
    size = max(2, translator.options.beam_size, limits.num_hypotheses)
    return any(
        translation in translator.translate(text, beam_size=most, num_hypotheses=most, **lengths) for most in (size, 2 * size)
    )


def compare_alignment(text: str, found: dict, translator: Translator):
    """Raises a `ValueError` if an alignment is not where the translator looks when it writes the same tokens."""
    tokenizer, end = translator.tokenizer, translator.model.config.end_id
    source = [*tokenizer.source.encode(text), end] if tokenizer.source.encode(text) else []
    places = {name: id for id, name in enumerate(pieces(tokenizer.target, range(tokenizer.target.vocabulary_size)))}
    ids = [places.get(token) for token in found["target_tokens"] if token]
    if None in ids:
        raise ValueError(f"The export (align) writes {found['target_tokens']}, not all of which are the tokenizer's")
    wanted = np.zeros(np.shape(found["alignment"]), "float32")
    if source:
        scores = attention_scores(translator.model, [source], [[translator.model.config.start_id, *ids[:-1]]])["cross"]
        wanted[: len(ids), : len(source)] = scores[0].mean(axis=(0, 1))  # Over layers and heads.
    difference = np.abs(found["alignment"] - wanted).max(initial=0.0)
    if [token for token in found["source_tokens"] if token] != pieces(tokenizer.source, source):
        raise ValueError(f"The export (align) cuts {text!r} into {found['source_tokens']}")
    if not difference < tolerance(translator):
        raise ValueError(f"The export (align) aligns {text!r} otherwise than the translator: by up to {difference:.3f}")


def pieces(tokenizer, ids: Sequence[int]) -> list[str]:
    """Returns the names that the signature `align` has for ids."""
    return tokenizer.tokens(list(ids)) if hasattr(tokenizer, "graph_tokens") else [str(id) for id in ids]


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
    if result.returncode:  # Also if one of the requests could not be answered.
        raise ValueError(f"TensorFlow's runtime cannot run the export: {result.stderr.strip()[-2000:]}")
    return dict(zip(requests, map(json.loads, result.stdout.splitlines()), strict=True))
