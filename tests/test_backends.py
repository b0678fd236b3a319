"""A backend that there is not, or that is not installed, is named together with those that there are."""

import os
import subprocess
import sys

import pytest


def python(*words, **environment):
    environment = {**os.environ, "KERAS_BACKEND": "jaxx", **environment}
    return subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)


def assert_says_what_to_do(line, backend):
    assert "Set KERAS_BACKEND to one of the backends tensorflow, jax and torch" in line
    assert 'pip install "keras3-transformer[jax]"' in line and line.endswith(f"Received: KERAS_BACKEND={backend}")


def test_a_misspelled_backend():
    result = python("-c", "import keras_transformer")
    lines = result.stderr.splitlines()
    assert result.returncode == 1 and lines[-1].startswith("ImportError: Keras cannot be loaded: Unable to import backend")
    assert_says_what_to_do(lines[-1], "jaxx")
    assert not [line for line in lines if "keras/src" in line]


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_a_backend_that_is_not_installed(backend):
    result = python("-c", f"import sys; sys.modules['{backend}'] = None; import keras_transformer", KERAS_BACKEND=backend)
    assert_says_what_to_do(result.stderr.splitlines()[-1], backend)


@pytest.mark.parametrize("words", [["train", "pronouns"], ["translate", "run"], ["demo"]], ids=lambda words: words[0])
def test_commands_say_it_in_one_line(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = python("-m", f"training.{words[0]}", *words[1:], PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    assert result.returncode == 2 and result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert_says_what_to_do(result.stderr.strip(), "jaxx")
    assert not list(tmp_path.iterdir())
