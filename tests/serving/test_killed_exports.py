"""Exports that are killed, and exports that a server watches: whatever has a number loads and answers."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import keras
import pytest

from keras_transformer.serving.verification import run_signatures
from keras_transformer.serving.versions import versions_in
from tests.serving.translators import make_translator

pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="an export is made on TensorFlow")


def start_export(run, folder):
    command = [sys.executable, "-m", "keras_transformer.serving.export", str(run), str(folder), "--samples", "eins zwei"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def answers(version) -> bool:
    found = run_signatures(version, {"serving_default": {"text": ["eins zwei", ""]}})
    return len(found["serving_default"]["translation"]) == 2


@pytest.mark.proof("Killed at any moment, an export leaves no numbered folder that does not load and answer")
def test_killed_exports(tmp_path, size, seen):
    kills = size(0, full=30)
    if not kills:
        pytest.skip("runs in `make prove`; the writing of versions is killed in test_versions.py")
    make_translator().save(tmp_path / "run")
    begun = time.perf_counter()
    process = start_export(tmp_path / "run", tmp_path / "model")
    assert process.wait() == 0, process.stderr.read()[-2000:]
    duration = time.perf_counter() - begun
    moments = random.Random(0)
    checked = 0
    for _ in range(kills):
        process = start_export(tmp_path / "run", tmp_path / "model")
        time.sleep(moments.uniform(0.3, 1.0) * duration)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert all(answers(tmp_path / "model" / str(version)) for version in versions_in(tmp_path / "model")[-2:])
        checked += 1
    seen(f"{checked} kills; {len(versions_in(tmp_path / 'model'))} versions, all of which load and answer")


@pytest.mark.proof("A poller that reads the folder during exports never sees a numbered folder that does not load and answer")
def test_watched_exports(tmp_path, size, seen):
    exports = size(0, full=10)
    if not exports:
        pytest.skip("runs in `make prove`")
    make_translator().save(tmp_path / "run")
    loaded, problems, stop = set(), [], threading.Event()

    def poll():
        while not stop.is_set():
            for version in set(versions_in(tmp_path / "model")) - loaded:
                try:
                    assert answers(tmp_path / "model" / str(version))
                except (ValueError, AssertionError) as error:
                    problems.append((version, error))
                loaded.add(version)
            time.sleep(0.05)

    poller = threading.Thread(target=poll)
    poller.start()
    for _ in range(exports):
        assert start_export(tmp_path / "run", tmp_path / "model").wait() == 0
    deadline = time.monotonic() + 60
    while len(loaded) < exports and time.monotonic() < deadline:
        time.sleep(0.1)
    stop.set()
    poller.join()
    assert not problems and loaded == set(range(1, exports + 1))
    seen(f"{exports} exports, each loaded within a moment of its appearance")
