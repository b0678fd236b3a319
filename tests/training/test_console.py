"""The command `keras-transformer`. (What it does once it is installed is in tests/test_wheel.py.)"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer.attention import KINDS
from keras_transformer.visualization import arguments
from training import average, console
from training.console import COMMANDS, main

ROOT = Path(__file__).parents[2]
RUN = """
import sys
from training.console import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print(code, "keras" in sys.modules, "tensorflow" in sys.modules)
"""


def run(*words):
    result = subprocess.run([sys.executable, "-c", RUN, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return result.stdout, result.stderr


def test_help_lists_all_commands_without_keras():
    out, _ = run("--help")
    for name, command in COMMANDS.items():
        assert f"  {name} " in out and command.help in out
    assert out.endswith("0 False False\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_needs_no_keras(name):
    out, err = run(name, "--help")
    assert out.startswith("usage: ") and f" {name}" in out and out.endswith("\n0 False False\n")
    assert err == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "keras-transformer: error: argument COMMAND: invalid choice: 'trian' (choose from "),
        (["export"], "keras-transformer export: error: the following arguments are required: run, out"),
        (["client", "--nbest", "--score", "a"], "keras-transformer client: error: argument --score: not allowed with"),
        (["explore", "runs/demo", "A dog.", "--layer", "0"], "keras-transformer explore: error: --layer counts from 1"),
        (["import", "opus-mt-en-de"], "keras-transformer import: error: the following arguments are required: out"),
        (["train", "pronouns", "--set"], "error: argument --set: expected one argument"),
    ],
)
def test_mistakes_are_said_without_keras(words, message):
    out, err = run(*words)
    assert out == "2 False False\n"
    assert err.startswith("usage: ") and message in err


def test_a_command_gets_its_words_and_gives_its_exit_code(monkeypatch):
    monkeypatch.setattr(average, "main", lambda words: 3 if words == ["runs/demo", "--last", "2"] else 4)
    assert main(["average", "runs/demo", "--last", "2"]) == 3


def test_messages_name_the_command_that_works(monkeypatch):
    assert console.program("train") == "python -m training.train"
    monkeypatch.setattr(console, "__package__", "keras_transformer_training")
    assert console.program("train") == "keras-transformer train"
    assert console.program("launch") == "python -m keras_transformer_training.launch"


def test_the_pictures_that_can_be_chosen_are_those_there_are():
    assert arguments.KINDS == KINDS


@pytest.mark.parametrize("file", sorted((ROOT / "training").glob("*.py")), ids=lambda file: file.stem)
def test_modules_import_each_other_relatively(file):
    """They have another name where they are installed."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0]
    assert not [name for name in names if name.split(".")[0] == "training"]
