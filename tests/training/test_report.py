"""The model card, word by word where it matters."""

import pytest

from training.recipe import read_recipe
from training.report import card, duration, plain, several
from training.run_folder import RunFolder

RESULTS = {
    "command": "python -m training.train digits.toml",
    "scores": {"test": [{"name": "BLEU", "value": 27.345, "signature": "nrefs:1|case:mixed"}]},
    "samples": [
        {"source": '3 "1" 4', "translation": "4 1 3", "reference": "4 1 3"},
        {"source": "2 7", "translation": "", "reference": "7 | 2"},
    ],
    "training": {"epochs": 2, "updates": 1234, "tokens": 56789, "seconds": 432.0, "tokens_per_second": 131.4},
    "data": {
        "train": "train.digits",
        "validation": None,
        "tests": {"test": "test.digits"},
        "statistics": ["pairs       64 read, 64 kept"],
        "batches": 5,
        "shapes": 1,
        "padding": 0.25,
    },
    "model": {
        "parameters": 10048, "num_encoder_layers": 1, "num_decoder_layers": 1, "norm": "post", "model_dim": 16,
        "feed_forward_dim": 32, "num_heads": 2, "source_vocabulary_size": 280, "target_vocabulary_size": 280, "tie": "all",
        "positions": "sinusoidal", "dropout": 0.3, "attention_dropout": 0.0, "activation_dropout": 0.0,
    },
    "machine": "an abacus",
    "versions": {"keras": "3.15.1"},
}  # fmt: skip


@pytest.fixture
def text(recipe):
    return card(RunFolder("runs/digits"), read_recipe(recipe), RESULTS)


def test_says_what_it_is_and_what_it_scores(text):
    assert text.startswith(
        "# digits\n\nA Transformer of 10,048 parameters, trained on train.digits in 7.2 minutes. BLEU 27.34 on"
    )
    assert "| test | BLEU | 27.34 | nrefs:1\\|case:mixed |" in text


def test_shows_samples_beside_references(text):
    assert '- 3 "1" 4<br>**4 1 3** (as the reference)\n' in text
    assert "- 2 7<br>**(empty)**<br>reference: 7 \\| 2\n" in text


def test_says_how_it_was_trained(text):
    for line in (
        "| updates | 1,234 in 2 epochs |",
        "| speed | 131 target tokens a second |",
        "| an update | 2 batches of up to 64 tokens a side |",
        "| machine | an abacus |",
        "batches     5 an epoch in 1 shapes, 25.0% of all positions padding",
        "The weights are the mean of the last 2 saved ones.",
        "python -m training.train digits.toml",
        "keras 3.15.1",
    ):
        assert line in text


def test_its_code_can_be_pasted(text):
    code = text.split("```python\n")[1].split("```")[0]
    compile(code, "card", "exec")
    assert 'kt.Translator.load("runs/digits/translator")' in code


def test_there_is_no_picture_where_none_was_drawn(recipe, text, tmp_path):
    assert "![" not in text
    run = RunFolder(tmp_path)
    run.curves.write_bytes(b"")
    assert "](curves.png)" in card(run, read_recipe(recipe), RESULTS)


def test_a_run_without_tests(recipe):
    text = card(RunFolder("x"), read_recipe(recipe), {**RESULTS, "scores": {}, "samples": []})
    assert "Nothing to measure on" in text


def test_words():
    assert [duration(seconds) for seconds in (0.4, 119, 120, 7199, 7200)] == [
        "0 s",
        "119 s",
        "2.0 minutes",
        "120.0 minutes",
        "2.0 hours",
    ]
    assert [several(1, "batch", "es"), several(2, "batch", "es"), several(1500, "epoch")] == [
        "1 batch",
        "2 batches",
        "1,500 epochs",
    ]
    assert plain("a*b_c|d") == "a\\*b\\_c\\|d"
