"""What an export is compared on, and what its pages give as examples."""

import json

import pytest

from keras_transformer.serving.samples import SAMPLES, examples_in, languages_of_run, samples_of_run

SENTENCES = ["drei vier", " ", "eins", "zwei", "fünf"]


@pytest.fixture
def run(tmp_path):
    """The folder of a run with a translator."""
    results = {"samples": [{"source": text, "translation": "", "reference": ""} for text in SENTENCES]}
    results["data"] = {"languages": ["en", "de"]}
    (tmp_path / "results.json").write_text(json.dumps(results), encoding="utf8")
    (tmp_path / "translator").mkdir()
    (tmp_path / "translator" / "translator.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize("part", ["", "translator"])
def test_samples_of_a_run_are_those_it_was_tested_on(run, part):
    assert samples_of_run(run / part) == ["drei vier", "eins", "zwei", ""]


@pytest.mark.parametrize("part", ["", "translator"])
def test_languages_of_a_run(run, part):
    assert languages_of_run(run / part) == ["en", "de"]
    (run / "results.json").write_text('{"data": {}}', encoding="utf8")  # Of an older one.
    assert languages_of_run(run / part) is None and languages_of_run(run / "elsewhere") is None


def test_without_a_run_or_its_samples_there_are_others(tmp_path):
    assert samples_of_run(tmp_path / "translator") == list(SAMPLES)
    (tmp_path / "results.json").write_text('{"samples": []}', encoding="utf8")
    assert samples_of_run(tmp_path) == list(SAMPLES)


def test_examples_are_samples_that_say_something():
    assert examples_in(["drei vier", "", "eins", "zwei", "fünf"]) == ["drei vier", "eins", "zwei"]
    assert examples_in(list(SAMPLES)) == [SAMPLES[0]]
