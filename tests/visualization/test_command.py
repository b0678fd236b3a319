"""`python -m keras_transformer.visualization`."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from keras_transformer.attention import Attention
from keras_transformer.visualization.__main__ import main

SENTENCE = "The animal didn't cross the street because it was too tired."


def test_writes_a_page_a_picture_and_numbers(run_folder, translator, capsys):
    assert main(["runs/demo", SENTENCE, "--html", "a/out.html", "--png", "b/out.png", "--npz", "out.npz"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == SENTENCE and lines[1].startswith("-> ")
    assert lines[2:] == ["page: a/out.html", "numbers: out.npz", "picture: b/out.png"]
    wanted = translator.attend(SENTENCE)
    np.testing.assert_allclose(Attention.load("out.npz").cross, wanted.cross, atol=1e-6)
    with open("a/out.html", encoding="utf8") as file:
        assert "application/json" in file.read()
    with open("b/out.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"


def test_a_given_translation_and_a_word(run_folder, capsys):
    options = ["--target", "Das Tier schlief.", "--kind", "cross", "--word", "Tier", "--layer", "1", "--head", "2"]
    assert main(["runs/demo/translator", SENTENCE, "--png", "word.svg", *options]) == 0
    assert "-> Das Tier schlief." in capsys.readouterr().out
    assert main(["runs/demo", SENTENCE, "--target", "Das Tier.", "--kind", "decoder_self", "--png", "heads.png"]) == 0


def test_errors_are_said_in_one_line(run_folder, capsys):
    assert main(["runs/nothing", SENTENCE]) == 2
    assert capsys.readouterr().err.startswith("error: There is no translator in runs/nothing")
    assert main(["runs/demo", SENTENCE, "--word", "cow", "--kind", "encoder_self", "--png", "out.png"]) == 2
    assert "There is no such word" in capsys.readouterr().err
    assert main(["runs/demo", SENTENCE, "--layer", "9", "--png", "out.png"]) == 2
    assert "`layer` must be from 0 to 1" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["runs/demo", SENTENCE, "--head", "0", "--png", "out.png"])
    assert "--head counts from 1" in capsys.readouterr().err
