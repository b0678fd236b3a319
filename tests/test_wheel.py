"""The wheel, installed as a user installs it, away from the checkout."""

import email
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import keras
import pytest
import yaml

import keras_transformer as kt
from tests.conftest import PROVING
from tests.pages import code_blocks
from tests.training.conftest import RECIPE
from training.console import COMMANDS

ROOT = Path(__file__).parents[1]
ONCE = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="does not depend on the backend")


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False, **options)
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Builds the wheel from a copy of what git knows, so that nothing lying about gets in."""
    source, output = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    for name in files:
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", output, source)
    return next(output.glob("*.whl"))


@ONCE
@pytest.mark.proof("The wheel contains keras_transformer, keras_transformer_training and nothing else")
def test_contents(wheel, seen):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    seen(f"{len(names)} files in {wheel.name}")
    assert tops == {"keras_transformer", "keras_transformer_training"}
    for name in ("py.typed", "attention/viewer/page.html", "serving/playground.html", "serving/server_ops.txt"):
        assert f"keras_transformer/{name}" in names
    tracked = {path.relative_to(ROOT).as_posix() for path in (ROOT / "keras_transformer").rglob("*.py")}
    own = [file for kind in ("*.py", "recipes/*.toml", "deploy/*") for file in (ROOT / "training").glob(kind)]
    tracked |= {f"keras_transformer_{path.relative_to(ROOT).as_posix()}" for path in own}
    assert tracked <= set(names)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel: the folder of its programs, and the variables to run them with."""
    programs = tmp_path_factory.mktemp("installed") / "environment" / "bin"
    venv.create(programs.parent, with_pip=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if PROVING:
        run(programs / "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", f"{wheel}[plots]")
    else:
        # Without the network: the wheel is installed, its dependencies are borrowed from the environment of this test.
        run(programs / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
        environment["PYTHONPATH"] = sysconfig.get_path("purelib")
    return programs, environment


@ONCE
def test_metadata_says_who_made_it_and_what_it_is_tested_with(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(archive.read(name))
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))
    assert [{"name": metadata["Author"]}] == citation["authors"] and metadata["License-Expression"] == citation["license"]
    pythons = [one.rpartition(" ")[2] for one in metadata.get_all("Classifier") if ":: Python :: 3." in one]
    assert pythons == [f"{sys.version_info.major}.{sys.version_info.minor}"]


@ONCE
@pytest.mark.proof("The wheel, installed non-editable in a fresh environment, runs the README from another folder")
def test_runs_the_readme_from_another_folder(installed, tmp_path, seen):
    programs, environment = installed
    script = tmp_path / "readme.py"
    report = "import keras_transformer; print(keras_transformer.__file__)\n"
    script.write_text("\n".join(code_blocks(ROOT / "README.md", "python")) + report, encoding="utf8")
    location = run(programs / "python", script, cwd=tmp_path, env=environment).strip().split("\n")[-1]
    seen("dependencies installed from the registry" if PROVING else "dependencies borrowed")
    assert Path(location).is_relative_to(programs.parent)


@ONCE
@pytest.mark.proof("With nothing but the wheel, commands train, measure, translate and export from another folder")
def test_commands_work_without_a_checkout(installed, tmp_path, seen, size):
    programs, environment = installed

    def command(*words):
        return run(programs / "keras-transformer", *words, cwd=tmp_path, env=environment)

    kt.data.reverse(num_pairs=80, min_length=3, max_length=4).write(tmp_path)
    (tmp_path / "digits.toml").write_text(RECIPE, encoding="utf8")
    assert "Translate: keras-transformer translate runs/digits" in command("train", "digits.toml", "--set", "epochs=1")
    assert "BLEU" in command("evaluate", "runs/digits", "--source", "test.digits", "--reference", "test.reversed")
    assert len(command("translate", "runs/digits", "test.digits").splitlines()) == 8
    if size(False, full=True):
        assert command("export", "runs/digits", "saved_models/digits").splitlines()[-1] == "saved_models/digits/1"
    seen("one epoch of a tiny model")


@ONCE
def test_help_comes_from_the_installed_package(installed, tmp_path):
    programs, environment = installed
    assert "\n  train " in run(programs / "keras-transformer", "--help", cwd=tmp_path, env=environment)
    for name in COMMANDS:
        said = run(programs / "keras-transformer", name, "--help", cwd=tmp_path, env=environment)
        assert said.startswith(f"usage: keras-transformer {name}")
        assert name != "train" or "multi30k-tiny, " in said
