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

from tests.conftest import PROVING
from tests.pages import code_blocks

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
@pytest.mark.proof("The wheel contains keras_transformer and nothing else")
def test_contents(wheel, seen):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    seen(f"{len(names)} files in {wheel.name}")
    assert tops == {"keras_transformer"}
    for name in ("py.typed", "attention/viewer/page.html", "serving/playground.html", "serving/server_ops.txt"):
        assert f"keras_transformer/{name}" in names
    tracked = {path.relative_to(ROOT).as_posix() for path in (ROOT / "keras_transformer").rglob("*.py")}
    assert tracked <= set(names)


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
def test_runs_the_readme_from_another_folder(wheel, tmp_path, seen):
    venv.create(tmp_path / "environment", with_pip=True)
    python = tmp_path / "environment" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if PROVING:
        run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", f"{wheel}[plots]")
    else:
        # Without the network: the wheel is installed, its dependencies are borrowed from the environment of this test.
        run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
        environment["PYTHONPATH"] = sysconfig.get_path("purelib")
    script = tmp_path / "elsewhere" / "readme.py"
    script.parent.mkdir()
    report = "import keras_transformer; print(keras_transformer.__file__)\n"
    script.write_text("\n".join(code_blocks(ROOT / "README.md", "python")) + report, encoding="utf8")
    location = run(python, script, cwd=script.parent, env=environment).strip().split("\n")[-1]
    seen("dependencies installed from the registry" if PROVING else "dependencies borrowed")
    assert Path(location).is_relative_to(tmp_path / "environment")
