"""docs/attention.md and docs/paper.md: their Python, their commands, their pictures and their links."""

import re
import shlex

import pytest

pytest.importorskip("matplotlib")
from keras_transformer.visualization.__main__ import main
from tests.pages import ROOT, code_blocks, run_page
from training import figures
from training.source_links import LINK, renewed

DOCS = ROOT / "docs"


def pictures():
    return {path.stem for path in (DOCS / "figures").glob("*.png")}


def curves_of_benchmarks():
    return {name for name in pictures() if name.startswith("growth-")}


def test_python_blocks_of_the_attention_page_run(tmp_path, monkeypatch):
    names = run_page(DOCS / "attention.md", tmp_path, monkeypatch)
    assert names["attention"].target == "4 1 3"
    assert names["scores"]["cross"].shape[:2] == (2, 4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["attention.html", "attention.npz", "head.png"]


def test_python_blocks_of_the_paper_page_run(tmp_path, monkeypatch):
    names = run_page(DOCS / "paper.md", tmp_path, monkeypatch)
    assert names["logits"].shape == (1, 2, 1000)


def test_commands_of_the_attention_page_run(run_folder, capsys):
    lines = [line for block in code_blocks(DOCS / "attention.md", "bash") for line in block.splitlines()]
    commands = [shlex.split(line.split("  #")[0]) for line in lines]
    ours = [words[2:] for words in commands if words[:2] == ["keras-transformer", "explore"]]
    assert len(ours) == 4
    for words in ours:
        if words == ["--help"]:
            with pytest.raises(SystemExit, match="0"):
                main(words)
        else:
            assert main(words) == 0
            assert capsys.readouterr().out.count("\n") > 2


def test_links_lead_to_the_lines_that_define_the_names():
    page = DOCS / "paper.md"
    text = page.read_text(encoding="utf8")
    assert len(LINK.findall(text)) > 20
    assert renewed(page) == text, "run: python -m training.source_links docs/paper.md"


def test_pictures_are_those_that_the_command_draws():
    shown = set(re.findall(r"\]\(figures/(\w+)\.png\)", (DOCS / "paper.md").read_text(encoding="utf8")))
    shown |= set(re.findall(r"\]\(figures/(\w+)\.png\)", (DOCS / "attention.md").read_text(encoding="utf8")))
    assert shown == pictures() - curves_of_benchmarks()
    assert set(figures.plain_drawings()) <= shown
    assert all(path.stat().st_size < 100_000 for path in (DOCS / "figures").iterdir())


def test_the_page_of_benchmarks_shows_its_curves():
    shown = re.findall(r"\]\(figures/([\w-]+)\.png\)", (DOCS / "benchmarks.md").read_text(encoding="utf8"))
    assert set(shown) == curves_of_benchmarks()


def test_the_command_draws_them(tmp_path, run_folder, monkeypatch, capsys):
    monkeypatch.setattr("training.demo_attention.pronoun_head", lambda translator: (0, 0))
    assert figures.main(["runs/demo", "--output", str(tmp_path / "new")]) == 0
    drawn = {path.stem for path in (tmp_path / "new").iterdir()}
    assert drawn == pictures() - curves_of_benchmarks()
    assert capsys.readouterr().out.count(" KB") == len(drawn)
