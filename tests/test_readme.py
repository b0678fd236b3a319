"""The code of the pages runs as written, from top to bottom. (The README's runs from an installed wheel, too.)"""

import re
from pathlib import Path

import keras

ROOT = Path(__file__).parents[1]


def code_blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf8"), flags=re.MULTILINE | re.DOTALL)


def run_blocks(page, folder, monkeypatch):
    """Runs a page's Python blocks one after the other in one namespace, in an empty folder."""
    monkeypatch.chdir(folder)
    names = {"__name__": "__main__"}
    for number, block in enumerate(code_blocks(page, "python"), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    return names


def test_python_blocks_of_the_readme_run(tmp_path, monkeypatch):
    names = run_blocks(ROOT / "README.md", tmp_path, monkeypatch)
    assert names["history"].history["loss"][-1] < names["history"].history["loss"][0]
    assert isinstance(names["reloaded"], keras.Model)


def test_python_blocks_of_the_layers_page_run(tmp_path, monkeypatch):
    names = run_blocks(ROOT / "docs" / "layers.md", tmp_path, monkeypatch)
    assert names["written"].tolist() == [[3, 4, 5, 6, 0, 1, 2, 3]]


def test_python_blocks_of_the_data_page_run(tmp_path, monkeypatch):
    names = run_blocks(ROOT / "docs" / "data.md", tmp_path, monkeypatch)
    assert names["history"].history["loss"]


def test_python_blocks_of_the_decoding_page_run(tmp_path, monkeypatch):
    names = run_blocks(ROOT / "docs" / "decoding.md", tmp_path, monkeypatch)
    assert names["found"]["scores"].shape == (1, 1)


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
        else:
            known = (["pip", "install"], ["git", "clone"], ["source", ".venv/bin/activate"])
            assert words[:2] in known or words[0] in ("cd", "docker", "curl"), command


def test_links_of_the_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf8")):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"
