"""The same training on one device, on several, and in several processes; one of them killed."""

import re
import signal

import pytest

import keras_transformer as kt
from tests.conftest import PROVING
from tests.training.device_runs import (
    RECIPE,
    arrays_of,
    column,
    difference,
    environment,
    finished,
    newest,
    run_all,
    start,
    tokens_in_epoch,
)
from training.launch import free_port, start_all, watch

SAME = 1e-5
NUM_PAIRS = 100  # 80 of them to train on: ten batches an epoch, fifty updates in five epochs.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with pairs and a recipe for them."""
    folder = tmp_path_factory.mktemp("devices")
    kt.data.reverse(num_pairs=NUM_PAIRS, min_length=3, max_length=6).write(folder)
    (folder / "digits.toml").write_text(RECIPE)
    return folder


@pytest.fixture(scope="module")
def jax_runs(folder):
    """Runs of one process on one device, on two, three, and four of which two hold a model; then on another number."""
    commands = [
        ["digits.toml", "--output", "one"],
        ["digits.toml", "--output", "two", "--devices", "2"],
        ["digits.toml", "--output", "three", "--devices", "3"],
        ["unfinish", "two", "on-one"],
        ["digits.toml", "--output", "on-one", "--resume"],
    ]
    if PROVING:
        commands += [
            ["digits.toml", "--output", "mesh", "--devices", "4", "--set", "model_parallel=2"],
            ["unfinish", "two", "on-three"],
            ["digits.toml", "--output", "on-three", "--resume", "--devices", "3"],
        ]
    run_all(folder, "jax", 4, *commands)
    return folder


def launch(folder, *words):
    return start(folder, ["training.launch", "digits.toml", *words], env=environment(folder, "jax"))


def check_same(folder, one, other, seen):
    worst = difference(folder / one, folder / other)
    losses = list(zip(column(folder / one, "loss"), column(folder / other, "loss"), strict=True))
    seen(f"{other}: weights differ by {worst:.1e} of their norm, losses by {max(abs(a / b - 1) for a, b in losses):.1e}")
    assert worst < SAME
    assert all(a == pytest.approx(b, rel=SAME) for a, b in losses)


def num_tokens(folder):
    """Counts the target tokens of the training pairs, ends included, with the run's own tokenizer."""
    tokenizer = kt.load_tokenizer(folder / "one" / "tokenizer.model")
    lines = (folder / "train.reversed").read_text().splitlines()
    return sum(len(ids) + 1 for ids in tokenizer.encode(lines))


@pytest.mark.proof("Two devices (JAX) train as one does: the same weights and losses after 50 updates")
def test_two_devices_of_jax(jax_runs, seen):
    assert column(jax_runs / "two", "updates")[-1] == 50
    check_same(jax_runs, "one", "two", seen)


@pytest.mark.proof("Three devices (JAX), among which batches of eight rows are filled up with padding, train as one does")
def test_rows_that_do_not_divide(jax_runs, seen):
    worst = difference(jax_runs / "one", jax_runs / "three")
    seen(f"weights differ by {worst:.1e} of their norm")
    assert worst < SAME
    # Of a batch's loss Keras' mean takes the rows as weights, padding too; perplexity is a mean over tokens.
    assert column(jax_runs / "three", "perplexity") == pytest.approx(column(jax_runs / "one", "perplexity"), rel=SAME)


@pytest.mark.skipif(not PROVING, reason="tests/models/test_layout.py is quicker")
@pytest.mark.proof("Four devices, two to a model (JAX), train as one does: the same weights and losses after 50 updates")
def test_mesh_of_jax(jax_runs, seen):
    check_same(jax_runs, "one", "mesh", seen)


@pytest.mark.proof("Two devices (TensorFlow) train as one does: the same weights and losses after 50 updates")
def test_two_devices_of_tensorflow(folder, seen):
    commands = (["digits.toml", "--output", f"tf-{count}", "--devices", str(count)] for count in (2, 1))
    run_all(folder, "tensorflow", 1, *commands)
    check_same(folder, "tf-1", "tf-2", seen)


@pytest.fixture(scope="module")
def two_processes(jax_runs):
    """What the launcher said of a run of two processes."""
    return finished(launch(jax_runs, "--output", "pair"))


@pytest.mark.proof("Two processes (JAX) train as one does: the same weights and losses after 50 updates")
def test_two_processes(jax_runs, two_processes, seen):
    check_same(jax_runs, "one", "pair", seen)


@pytest.mark.skipif(not PROVING, reason="two more processes")
@pytest.mark.proof("Two processes that hold a model together (JAX) train as one does, and write whole checkpoints")
def test_a_model_divided_among_processes(jax_runs, seen):
    finished(launch(jax_runs, "--output", "halves", "--set", "model_parallel=2"))
    check_same(jax_runs, "one", "halves", seen)


@pytest.mark.proof("Every pair is seen once an epoch, on two devices and in two processes: the metrics count each token once")
def test_every_token_is_counted_once(jax_runs, two_processes, seen):
    counted = {run: tokens_in_epoch(jax_runs / run) for run in ("one", "two", "three", "pair")}
    seen(f"{num_tokens(jax_runs)} tokens in the file; counted: {counted}")
    assert set(counted.values()) == {num_tokens(jax_runs)}


def test_one_process_writes_and_speaks(jax_runs, two_processes):
    assert two_processes.count("digits on jax, 2 devices of 2 processes") == 1
    assert two_processes.count("Epoch 1/") == 1 and two_processes.count("Report: pair/report.md") == 1
    assert {path.name for path in (jax_runs / "pair").iterdir()} == {path.name for path in (jax_runs / "one").iterdir()}


@pytest.mark.proof("One of two processes is killed: the other fails, the launcher says so, the restarted pair resumes exactly")
def test_a_killed_process(jax_runs, two_processes, seen, size, capfd, monkeypatch):
    for name, value in environment(jax_runs, "jax").items():
        monkeypatch.setenv(name, value)
    for victim, steps in size([(1, 23)], full=[(1, 23), (0, 37)]):
        output = f"killed-{victim}"
        words = [str(victim), str(steps), "digits.toml", "--output", output]
        dying = start_all(2, 1, free_port(), words, module="tests.training.dying_run", cwd=jax_runs)
        assert watch(dying, "Go on.") == 128 + signal.SIGKILL
        said = capfd.readouterr().err
        assert f"Process {victim} of 2 was killed by SIGKILL. The others cannot go on without it." in said
        how = re.search(rf"^Process {1 - victim} (.*)[.]$", said, flags=re.MULTILINE)[1]
        seen(f"process {victim} killed after {steps} updates: the other {how}")
        assert how not in ("ended well", "was killed by SIGKILL")  # It noticed by itself.
        assert newest(jax_runs / output).name == f"step-{steps - steps % 5:08d}"

        finished(launch(jax_runs, "--output", output, "--resume"))
        assert difference(jax_runs / "pair", jax_runs / output) == 0


@pytest.mark.proof("A run of two devices that was stopped goes on with three, or with one, to the same weights")
@pytest.mark.parametrize("run", ["on-one", *(["on-three"] if PROVING else [])])
def test_another_number_of_devices(jax_runs, run, seen):
    worst = difference(jax_runs / "one", jax_runs / run)
    seen(f"{run}: weights differ by {worst:.1e} of their norm")
    assert worst < SAME


def test_checkpoints_do_not_depend_on_devices(jax_runs):
    for group in ("weights", "optimizer", "metrics"):
        shapes = [[array.shape for array in arrays_of(jax_runs / run, group).values()] for run in ("one", "two", "three")]
        assert shapes[0] and shapes[0] == shapes[1] == shapes[2]
