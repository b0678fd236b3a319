"""The demo, and the recipe behind it."""

import functools
import json
import re
from pathlib import Path

import keras
import pytest

import keras_transformer as kt
from tests.pages import ROOT
from training.demo import main
from training.demo_show import FAMOUS
from training.recipe import read_recipe
from training.run_folder import RunFolder
from training.scores import Score
from training.trainer import train

QUICK = ["max_pairs=4000", "num_shapes=1", "max_updates=2", "average_every_updates=1", "max_sentences=2"]
QUICK += ["num_encoder_layers=1", "num_decoder_layers=1", "model_dim=16", "feed_forward_dim=16", "num_heads=1"]
QUICK += ["positions=learned", "model.max_length=32"]


@pytest.fixture
def few_sentences(monkeypatch):
    """A corpus with little to measure on."""
    few = functools.partial(kt.data.pronouns, num_validation=2, num_test=8)
    monkeypatch.setattr(kt.data, "pronouns", few)
    monkeypatch.setattr("training.demo_attention.pronouns", few)


@pytest.fixture
def quick(few_sentences, tmp_path, monkeypatch):
    """The words for a demo that takes seconds and learns nothing."""
    monkeypatch.chdir(tmp_path)
    return [word for setting in QUICK for word in ("--set", setting)]


def test_shows_what_it_does_and_what_to_do_next(quick, capsys, monkeypatch):
    exports = keras.backend.backend() == "tensorflow"  # Elsewhere it takes another process, as in tests/serving.
    if not exports:
        monkeypatch.setattr("training.demo_export.export", lambda *arguments: None)
    assert main(quick) == 0
    first = capsys.readouterr().out
    for text in (
        "Who was tired, and what was wide?",
        "After epoch 1 it says:",
        "The finished model:",
        "exact match",
        "It knows 298 English words",
    ):
        assert text in first
    for source, _, _ in FAMOUS:
        assert first.count(f"  {source}\n  -> ") == (3 if exports else 2)
    for name in ("attention.png", "attention-tired.html", "attention-wide.html"):
        assert f"runs/demo/{name}" in first and Path("runs/demo", name).is_file()
    assert ("-m keras_transformer.serving.serve saved_models/pronouns" in first) == exports
    if exports:
        device = json.loads(Path("saved_models/pronouns/1/export_info.json").read_text())["device"]
        assert device == ("gpu" if keras.distribution.list_devices("gpu") else "cpu")
    commands = [
        line.split("  ")[1] for line in first.split("Three things to try next:")[1].splitlines() if "-m training." in line
    ]
    assert len(commands) == 3 and all(" -m training." in command for command in commands)
    last = json.loads(Path("runs/demo/results.json").read_text(encoding="utf8"))["samples"][-1]["source"]
    assert f"type: {last}" in first

    assert main(quick) == 0
    second = capsys.readouterr().out
    assert second.startswith("The model in runs/demo is trained already. To start afresh: rm -r runs/demo")
    assert "After epoch" not in second
    assert second.split("The finished model:")[1] == first.split("The finished model:")[1]


def test_an_interruption_loses_nothing(quick, capsys, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("training.trainer.callbacks.fit", interrupt)
    assert main(quick) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert main(quick) == 130  # It is no error that the run is there already.


def test_the_famous_sentences_are_in_no_training_sentence():
    corpus = kt.data.pronouns(num_train=read_recipe("pronouns").data.max_pairs)
    for (source, pronoun, meant), example in zip(FAMOUS, corpus.examples["test"], strict=False):
        assert (source, pronoun, meant) == (example.source, example.pronoun, f"the {example.referent}")
        assert source not in corpus.train.source


@pytest.mark.parametrize("page", ["README.md", "docs/serving.md", "docs/attention.md"])
def test_sentences_to_try_are_held_out_ones(page):
    corpus = kt.data.pronouns(num_train=read_recipe("pronouns").data.max_pairs)
    sentences = re.findall(r'"((?:The|Since|Because) [^"]*\.)"', (ROOT / page).read_text(encoding="utf8"))
    assert sentences and set(sentences) <= set(corpus.splits["test"].source)
    references = re.findall(r'"(Der [^"]*\.)"', (ROOT / page).read_text(encoding="utf8"))
    wrong = {"Der Bus erschreckte die Katze, weil er zu scheu war."}  # What a page shows of a translation that is wrong.
    assert set(references) <= {*corpus.splits["test"].target, *wrong}


@pytest.mark.proof(
    'The recipe `pronouns` learns which noun "it" means: at least 98% of held-out sentences right to the letter, both famous '
    "sentences right, both pronouns right in at least 95% of minimal pairs"
)
def test_the_recipe(size, seen, tmp_path, request):
    settings = size(QUICK, full=[])
    if settings:
        request.getfixturevalue("few_sentences")
    results = train(read_recipe("pronouns", settings), RunFolder(tmp_path / "run"), verbose=False)
    scores = {score.name: score for score in (Score(**one) for one in results["scores"]["test"])}
    assert len(results["samples"]) == 8 and [sample["source"] for sample in results["samples"][:2]] == [
        one[0] for one in FAMOUS
    ]
    assert json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf8")) == results
    seen("; ".join(f"{score.name} {score} {score.signature}" for score in scores.values()))
    seen(f"{results['training']['seconds']:.0f} s of training")
    if settings:
        assert scores["exact match"].signature == "of 8 sentences with new combinations"
        return
    assert scores["exact match"].value >= 0.98 and scores["both pronouns right"].value >= 0.95
    assert all(sample["translation"] == sample["reference"] for sample in results["samples"][:2])
