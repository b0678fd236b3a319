"""The README's code prints on each backend what it says; its commands and the links of all pages lead somewhere."""

import re

import keras

from tests.pages import ROOT, code_blocks, run_page
from training.console import COMMANDS


def test_python_blocks_print_what_they_say(tmp_path, monkeypatch):
    names = run_page(ROOT / "README.md", tmp_path, monkeypatch)
    assert isinstance(names["reloaded"], keras.Model)


def test_shell_blocks_name_commands_that_exist():
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    commands = [line for block in code_blocks(ROOT / "README.md", "bash") for line in block.splitlines() if line]
    assert commands
    for command in commands:
        words = command.split("#")[0].split()
        if words[0] == "make":
            assert words[1] in targets, command
        elif words[:2] == ["python", "-m"]:
            module = ROOT / words[2].replace(".", "/")
            assert module.with_suffix(".py").is_file() or (module / "__main__.py").is_file(), command
        elif words[0] == "keras-transformer":
            assert words[1] in COMMANDS, command
        else:
            known = (["pip", "install"], ["git", "clone"], ["source", ".venv/bin/activate"])
            assert words[:2] in known or words[0] in ("cd", "docker", "curl"), command


def test_links_of_the_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf8")):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"
