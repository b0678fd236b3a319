"""Watching several processes. (Those of a real training are in test_devices.py.)"""

import subprocess
import sys

import pytest

from training import launch


def child(program):
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)


def test_all_end_well(capsys):
    assert launch.watch([child("pass"), child("pass")], "advice") == 0
    assert capsys.readouterr().err == ""


def test_one_fails_and_the_other_is_ended(capsys, monkeypatch):
    monkeypatch.setattr(launch, "GRACE_SECONDS", 0.1)
    processes = [child("input()"), child("raise SystemExit(3)")]  # The first one waits for ever.
    assert launch.watch(processes, "Go on.") == 3
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "Process 1 of 2 failed with exit code 3. The others cannot go on without it.",
        "Process 0 was killed by SIGKILL.",
        "Go on.",
    ]
    assert all(process.poll() is not None for process in processes)


def test_one_is_killed_and_the_other_notices(capsys):
    assert launch.watch([child("import os; os.kill(os.getpid(), 15)"), child("raise SystemExit(1)")], "Go on.") in (143, 1)
    said = capsys.readouterr().err
    assert "was killed by SIGTERM" in said and "failed with exit code 1" in said


def test_words_for_the_processes_go_through():
    options, words = launch.parse_arguments(["pronouns", "--processes", "3", "--resume", "--set", "epochs=1", "--devices", "2"])
    assert (options.processes, options.devices, options.pin) == (3, 2, False)
    assert words == ["pronouns", "--resume", "--set", "epochs=1"]


def test_what_a_process_is_told(monkeypatch):
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, env: started.append((command, env)))
    monkeypatch.delenv("JAX_LOCAL_DEVICE_IDS", raising=False)
    launch.start(1, 2, 4, 15000, ["pronouns"])
    ((command, environment),) = started
    assert command[1:4] == ["-m", "training.train", "pronouns"]
    assert command[4:] == ["--devices", "4", "--coordinator", "127.0.0.1:15000", "--processes", "2", "--process-id", "1"]
    assert environment["JAX_LOCAL_DEVICE_IDS"] == "4,5,6,7"


@pytest.mark.parametrize("words", [["--processes", "0", "pronouns"], ["--devices", "0", "pronouns"]])
def test_numbers_that_cannot_be_meant(words, capsys):
    assert launch.main(words) == 2
    assert "--processes and --devices must be positive integers" in capsys.readouterr().err


def test_more_processes_than_cores(capsys):
    assert launch.main(["--processes", "100000", "--pin", "pronouns"]) == 2
    assert "There is no core for each process" in capsys.readouterr().err


def test_how_to_go_on():
    assert launch.how_to_go_on(["pronouns"]).endswith("python -m training.launch pronouns --resume")
    assert launch.how_to_go_on(["pronouns", "--resume"]).count("--resume") == 1
