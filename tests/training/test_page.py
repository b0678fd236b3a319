"""The page on training: its Python runs, and its recipe says what the defaults are."""

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from tests.pages import ROOT, code_blocks, run_page
from training.console import COMMANDS
from training.recipe import TABLES
from training.recipe_tables import ModelTable

PAGE = ROOT / "docs" / "training.md"


def test_python_blocks_run(tmp_path, monkeypatch):
    names = run_page(PAGE, tmp_path, monkeypatch)
    assert names["history"].history["loss"]
    assert (tmp_path / "run" / "translator" / "translator.json").is_file()


@pytest.mark.parametrize("table", [name for name, kind in TABLES.items() if kind is not ModelTable])
def test_all_keys_and_their_defaults_are_told(table):
    (block,) = code_blocks(PAGE, "toml")
    told = tomllib.loads(block)[table]
    for key in dataclasses.fields(TABLES[table]):
        if key.name.endswith(("_source", "_target")) or key.name == "corpus":
            assert key.name in block  # What has no default is told by an example.
        else:
            assert told[key.name] == ("none" if key.default is None else key.default), key.name


def test_commands_exist():
    for block in code_blocks(PAGE, "bash"):
        for module in re.findall(r"python -m ([\w.]+)", block):
            assert (ROOT / Path(*module.split(".")).with_suffix(".py")).is_file()
        assert set(re.findall(r"^keras-transformer (\S+)", block, flags=re.MULTILINE)) <= COMMANDS.keys()
