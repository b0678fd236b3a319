"""From a checkpoint to a served folder: the same text from TensorFlow's C runtime as from the translator."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import keras
import pytest

import keras_transformer as kt
from keras_transformer.bridges.marian.__main__ import main
from keras_transformer.serving.graph_checks import check_graph, read_graph
from keras_transformer.serving.runtime import SavedModelSession
from tests.bridges.marian_checkpoints import SHAPES, write_checkpoint
from tests.bridges.test_marian import tune
from tests.dying import full_disk
from tests.text.samples import hostile_bytes, hostile_strings, sentences

pytest.importorskip("transformers")
pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="an export is made on TensorFlow")

CODED = [">>deu<< the cat sleeps", ">>fra<< the cat sleeps", ">>unheard_of<< the cat", "the </s> cat <pad>", "☃ ß"]


def shallow(shape):
    """Returns a shape with one layer a side, whose graphs are quickly made."""
    return replace(shape, config={**shape.config, "encoder_layers": 1, "decoder_layers": 1})


def assert_same_texts(translator, version, texts):
    """Another text is accepted only where its score is that of the translator's."""
    with SavedModelSession(version) as session:
        answer = session.run("serving_default", {"text": texts})
        aligned = session.run("align", {"text": texts[:3]})
    expected = translator.translate(texts, return_scores=True)
    found = [text.decode("utf8") for text in answer["translation"]]
    others = 0
    for text, score, own in zip(found, answer["score"], expected, strict=True):
        assert score == pytest.approx(own.score, abs=1e-3)
        others += text != own.text
        assert text == own.text or abs(score - own.score) < 1e-4
    assert others <= len(texts) // 50
    tokens = [[one.decode("utf8") for one in row if one] for row in aligned["source_tokens"]]
    assert tokens == [[*translator.tokenizer.source.tokens(text), "</s>"] for text in texts[:3]]
    return others


@pytest.mark.proof(
    "One command goes from a Marian checkpoint to a served folder, which gives the translator's texts in the C API"
)
def test_command(tmp_path, size, seen, capfd):
    checkpoint = write_checkpoint(tmp_path / "checkpoint", size(shallow(SHAPES[0]), full=SHAPES[0]))
    out = tmp_path / "opus-mt-en-de"
    assert main([str(checkpoint), str(out), "--save", str(tmp_path / "saved"), "--batch-sizes", "1", "4"]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == str(out / "1")
    check_graph(read_graph(out / "1"))
    assert json.loads((out / "1" / "export_info.json").read_text())["batch_sizes"] == [1, 4]
    translator = kt.bridges.from_marian(checkpoint)
    assert kt.Translator.load(tmp_path / "saved").tokenizer == translator.tokenizer
    hostile = [*hostile_strings(size(20, full=500)), *hostile_bytes(size(20, full=500))]
    texts = [*CODED, *sentences(size(30, full=500), seed=21), *hostile]
    others = assert_same_texts(translator, out / "1", texts)
    seen(f"{len(texts)} texts, {len(hostile)} of them hostile; {others} with another text of the same score")


def test_only_a_translator_is_replaced(tmp_path, capsys):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    assert main([str(tmp_path / "nothing"), str(tmp_path / "out"), "--save", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.startswith("error: Only an empty folder, or one with a translator.json, is replaced")
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "checkpoints"]


def test_a_full_disk_is_said(tmp_path, capsys):
    checkpoint = write_checkpoint(tmp_path / "checkpoint", shallow(SHAPES[0]))
    with full_disk(1000):
        assert main([str(checkpoint), str(tmp_path / "out"), "--save", str(tmp_path / "saved")]) == 2
    assert re.search(r"^error: .*Make room, or choose another place: .*saved'$", capsys.readouterr().err, re.MULTILINE)
    assert list(tmp_path.iterdir()) == [checkpoint]


@pytest.mark.proof("A model that was imported, with separate vocabularies, and trained on is exported like any other")
def test_exports_again_after_fine_tuning(tmp_path, size, seen):
    if size(True, full=False):
        pytest.skip("runs in `make prove`; tests/bridges/test_marian.py trains on, and the command exports, always")
    translator = kt.bridges.from_marian(write_checkpoint(tmp_path / "checkpoint", SHAPES[2]))
    loss = tune(translator)
    version = kt.export_saved_model(translator, tmp_path / "tuned", batch_sizes=[1])
    others = assert_same_texts(translator, version, sentences(20, seed=22))
    seen(f"loss {loss[0]:.2f} -> {loss[-1]:.2f}; 20 texts, {others} with another text of the same score")


def test_the_command_says_what_is_wrong(tmp_path):
    command = [sys.executable, "-m", "keras_transformer.bridges.marian", str(tmp_path), str(tmp_path / "out")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2 and result.stderr.splitlines()[-1].startswith("error: There is no config.json in")
