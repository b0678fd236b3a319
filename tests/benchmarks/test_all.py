"""All benchmarks in one run: what is run, and what happens to one that fails."""

import importlib
import sys
from types import SimpleNamespace

import pytest

from benchmarks import all as everything
from benchmarks.serve import best_round
from benchmarks.serve_trained import table
from benchmarks.serving.process import Engine


@pytest.fixture
def runs(monkeypatch):
    """Commands that were run; those of `fit` fail."""
    commands = []

    def run(command):
        commands.append(command)
        return SimpleNamespace(returncode=int("benchmarks.fit" in command))

    monkeypatch.setattr(everything.subprocess, "run", run)
    return commands


def test_one_that_fails_does_not_stop_the_others(runs, tmp_path, capsys):
    assert everything.main(["--docs", str(tmp_path)]) == 1
    assert [command[2].removeprefix("benchmarks.") for command in runs] == list(everything.PLAN)
    assert {command[-1] for command in runs} == {str(tmp_path / name) for name in ("benchmarks.md", "bridges.md")}
    assert "benchmarks.fit failed" in capsys.readouterr().err
    page = (tmp_path / "benchmarks.md").read_text()
    assert "| `benchmarks.fit` | failed |" in page
    assert "| `benchmarks.train_step` | 0.0 |" in page


def test_some_of_them(runs, tmp_path):
    assert everything.main(["--docs", str(tmp_path), "--only", "serve", "growth"]) == 0
    assert [command[2] for command in runs] == ["benchmarks.serve", "benchmarks.growth"]
    assert not (tmp_path / "benchmarks.md").exists()  # It says what one run of everything took.


@pytest.mark.parametrize("name", everything.PLAN)
def test_every_benchmark_knows_its_options(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit):
        importlib.import_module(f"benchmarks.{name}").main()
    known = capsys.readouterr().out
    assert all(option in known for option in [*everything.PLAN[name].split(), "--write"] if option.startswith("--"))


def engine_of(name, *answers):
    engine = object.__new__(Engine)
    engine.name, engine.answers = name, list(answers)
    return engine


def test_engines_beside_each_other():
    ours = engine_of(
        "ours",
        ({"batch": 8}, {"seconds": 2.0, "translations": ["ein hund", "eine katze"], "peak_gib": 1.0}),
        ({"batch": 8}, {"seconds": 1.0, "translations": ["ein hund", "eine katze"], "peak_gib": 1.5}),
    )
    peer = engine_of("ctranslate2", ({"batch": 8}, {"seconds": 4.0, "translations": ["ein hund", "katze"], "peak_gib": 0.5}))
    assert table([ours, peer], [8], None).splitlines()[2:] == [
        "| 8 | SavedModel, TensorFlow's C runtime | 2.0 | 4.00 | 50.0% | - | 1.50 |",
        "| 8 | CTranslate2, float32 | 0.5 | 1.00 | 100.0% | - | 0.50 |",
    ]


def test_the_best_round_counts():
    slow, quick = {"each": [4.0], "seconds": 4.0}, {"each": [2.0, 1.0, 3.0], "seconds": 3.0}
    engine = engine_of("ours", *(({"clients": 2, "seconds": 5.0}, {"waits": waits}) for waits in (slow, quick)))
    assert best_round(engine, 2) == {"sentences": 1.0, "p50": 2.0, "p95": 3.0}
