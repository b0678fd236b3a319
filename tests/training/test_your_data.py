"""The page "Your own data", followed as it is written: from two text files to an answer of a server."""

import contextlib
import dataclasses
import io
import json
import shlex
import urllib.request
from pathlib import Path

import pytest

import keras_transformer as kt
from keras_transformer.serving.serve import make_server
from tests.pages import ROOT, code_blocks
from training import console, new

PAGE = ROOT / "docs" / "your-data.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two files of 500 pairs, in which a training is short."""
    corpus = kt.data.pronouns(num_train=3000, num_validation=50, num_test=50)
    for name, pairs in {"train": corpus.train[:500], "valid": corpus.validation, "test": corpus.test}.items():
        (tmp_path / f"{name}.en").write_text("".join(f"{line}\n" for line in pairs.source), encoding="utf8")
        (tmp_path / f"{name}.de").write_text("".join(f"{line}\n" for line in pairs.target), encoding="utf8")
    short = dataclasses.replace(new.PLANS[0], total_tokens=1, epochs=(1, 1), num_layers=1)
    monkeypatch.setattr(new, "PLANS", (short, *new.PLANS[1:]))
    monkeypatch.setenv("KERAS_TRANSFORMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands(number):
    return code_blocks(PAGE, "bash")[number].splitlines()


def run(line):
    """Runs a command of the page as a shell does."""
    program, *words = shlex.split(line)
    assert program == "keras-transformer"
    if ">" not in words:
        assert console.main(words) == 0, line
        return
    *words, _, file = words
    with open(file, "w", encoding="utf8") as output, contextlib.redirect_stdout(output):
        assert console.main(words) == 0, line


def test_four_commands_and_an_answer(folder):
    *before, serve = commands(0)
    for line in before:
        run(line)
    program, command, served = shlex.split(serve)
    assert (program, command) == ("keras-transformer", "serve")
    (curl,) = commands(1)
    _, _, body, url = shlex.split(curl)
    with make_server(Path(served), "127.0.0.1", 0) as server:
        request = urllib.request.Request(url.replace("http://localhost:8501", server.url), body.encode())
        with urllib.request.urlopen(request) as answer:
            (found,) = json.load(answer)["predictions"]
    assert set(found) == {"score", "translation", "truncated"}


def test_files_to_validate_and_to_test_with(folder):
    (line,) = commands(2)
    run(line)
    assert 'validation_source = "valid.en"' in (folder / "mine.toml").read_text(encoding="utf8")


def test_what_changes_with_the_amount_of_text_is_what_the_command_does():
    page = PAGE.read_text(encoding="utf8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    table = [row for row in rows if len(row) == 4 and ("`" in row[1])]
    assert [row[2].replace(",", "") for row in table] == [str(plan.vocabulary_size) for plan in new.PLANS]
    assert all(f"`{plan.preset}`" in row[1] for plan, row in zip(new.PLANS, table, strict=True))


def test_a_recipe_is_written_to_the_standard_output_alone(folder, capsys):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert new.main(["train.en", "train.de"]) == 0
    assert output.getvalue().startswith("# A recipe for files of your own") and "corpus" in capsys.readouterr().err
