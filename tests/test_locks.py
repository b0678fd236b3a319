"""Locks between processes, and between those who open the same file twice."""

import subprocess
import sys

import pytest

from keras_transformer import locks

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
input()
"""


def test_one_at_a_time(tmp_path):
    with locks.hold_lock(tmp_path / ".lock"), pytest.raises(BlockingIOError):
        locks.hold_lock(tmp_path / ".lock", wait=False)
    locks.hold_lock(tmp_path / ".lock", wait=False).close()


def test_a_process_that_is_killed_gives_its_lock_back(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError):
            locks.hold_lock(tmp_path / ".lock", wait=False)
        process.kill()
    locks.hold_lock(tmp_path / ".lock", wait=False).close()


def test_a_symbolic_link_is_refused_and_what_it_points_to_is_left_alone(tmp_path):
    (tmp_path / "thesis").write_text("precious")
    (tmp_path / ".lock").symlink_to(tmp_path / "thesis")
    with pytest.raises(ValueError, match=r"A lock must be a file, not a symbolic link. Remove the link. Received: .*\.lock"):
        locks.hold_lock(tmp_path / ".lock")
    assert (tmp_path / "thesis").read_text() == "precious"


def test_what_is_in_a_file_stays(tmp_path):
    (tmp_path / ".lock").write_text("precious")
    locks.hold_lock(tmp_path / ".lock").close()
    assert (tmp_path / ".lock").read_text() == "precious"


def test_where_there_are_no_locks_everybody_may(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    with locks.hold_lock(tmp_path / ".lock"), locks.hold_lock(tmp_path / ".lock", wait=False):
        assert (tmp_path / ".lock").is_file()
