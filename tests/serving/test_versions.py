"""Versions of a model: they appear when they are complete, and go back one at a time."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from keras_transformer.serving.server_files import MODELS
from keras_transformer.serving.versions import (
    BESIDE,
    keep_newest,
    main,
    new_version,
    restore,
    roll_back,
    rolled_back_in,
    versions_in,
)


def add(folder, count):
    for _ in range(count):
        with new_version(folder) as new:
            (new / "saved_model.pb").write_text("whole")


def test_numbers_go_on(tmp_path):
    add(tmp_path, 3)
    assert versions_in(tmp_path) == [1, 2, 3]
    assert keep_newest(tmp_path, 1) == [1, 2]
    add(tmp_path, 1)
    assert versions_in(tmp_path) == [3, 4]
    with new_version(tmp_path, 10) as new:
        assert not new.name.isdigit()
    assert versions_in(tmp_path) == [3, 4, 10]


def test_what_lies_beside_the_versions_appears_with_one(tmp_path):
    for number in (1, 2):
        with new_version(tmp_path) as new:
            (new / BESIDE).mkdir()
            (new / BESIDE / "README.md").write_text(f"of version {number}")
            assert not (tmp_path / "README.md").exists() or (tmp_path / "README.md").read_text() == "of version 1"
    assert (tmp_path / "README.md").read_text() == "of version 2"
    with pytest.raises(OSError, match="No space left"), new_version(tmp_path) as new:
        (new / BESIDE).mkdir()
        (new / BESIDE / "README.md").write_text("of version 3")
        raise OSError("No space left on device")
    assert (tmp_path / "README.md").read_text() == "of version 2"
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".lock", "1", "2", "README.md"]


def test_a_new_version_is_the_newest(tmp_path):
    add(tmp_path, 1)
    with new_version(tmp_path, 5):
        pass
    message = "Version 3 would not be served: there is a version 5 .* Leave `version` away to get 6"
    with pytest.raises(ValueError, match=message), new_version(tmp_path, 3):
        pass
    assert versions_in(tmp_path) == [1, 5]
    roll_back(tmp_path)
    with new_version(tmp_path, 3):
        pass
    assert versions_in(tmp_path) == [1, 3] and rolled_back_in(tmp_path) == [5]


def test_rolling_back_removes_nothing(tmp_path):
    add(tmp_path, 3)
    assert roll_back(tmp_path) == (3, 2)
    assert versions_in(tmp_path) == [1, 2] and rolled_back_in(tmp_path) == [3]
    add(tmp_path, 1)  # Not 3 again.
    assert versions_in(tmp_path) == [1, 2, 4]
    restore(tmp_path, 3)
    assert versions_in(tmp_path) == [1, 2, 3, 4] and rolled_back_in(tmp_path) == []


def test_a_label_follows(tmp_path):
    add(tmp_path, 3)
    values = {"name": "en-de", "version": 3}
    (tmp_path / "models.config").write_text(MODELS.substitute(values))
    roll_back(tmp_path)
    assert (tmp_path / "models.config").read_text() == MODELS.substitute({**values, "version": 2})
    restore(tmp_path, 3)
    assert (tmp_path / "models.config").read_text() == MODELS.substitute(values)


def test_what_cannot_be_done(tmp_path):
    add(tmp_path, 1)
    with pytest.raises(ValueError, match="nothing to go back to"):
        roll_back(tmp_path)
    with pytest.raises(ValueError, match="There is a version 1"), new_version(tmp_path, 1):
        pass
    with pytest.raises(ValueError, match="positive"), new_version(tmp_path, 0):
        pass
    with pytest.raises(ValueError, match="At least one"):
        keep_newest(tmp_path, 0)
    with pytest.raises(ValueError, match="was not rolled back"):
        restore(tmp_path, 1)


def test_an_error_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError), new_version(tmp_path) as new:
        (new / "half").write_text("half")
        raise RuntimeError
    assert [entry.name for entry in tmp_path.iterdir()] == [".lock"]


def test_commands(tmp_path, capsys):
    add(tmp_path, 3)
    main([str(tmp_path), "--rollback"])
    assert "version 3 was taken out of service, 2 is the newest now" in capsys.readouterr().out
    main([str(tmp_path), "--restore", "3"])
    main([str(tmp_path), "--keep", "2"])
    assert capsys.readouterr().out.split("\n")[-3:-1] == ["2", "3"]
    with pytest.raises(SystemExit):
        main([str(tmp_path / "none")])


WRITER = """
import sys, time
from pathlib import Path
from keras_transformer.serving.versions import new_version
while True:
    with new_version(sys.argv[1]) as new:
        for number in range(40):
            (new / f"part-{number}").write_bytes(bytes(50_000))
        (new / "last").write_text("whole")
    print("written", flush=True)
"""


def test_a_killed_writer_leaves_no_half_version(tmp_path):
    problems, stop = [], threading.Event()

    def poll():
        while not stop.wait(0.001):  # Between two looks, the writer has the core.
            for version in versions_in(tmp_path):
                if not (tmp_path / str(version) / "last").exists():
                    problems.append(version)

    poller = threading.Thread(target=poll)
    poller.start()
    try:
        for moment in range(3):
            process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
            process.stdout.readline()
            time.sleep(0.01 * moment)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    finally:
        stop.set()
        poller.join()
    before = versions_in(tmp_path)
    add(tmp_path, 1)  # Clears away what was left.
    assert not problems and len(before) >= 3
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith((".unfinished", ".removed"))]
