"""Checkpoints: what is in them, when they are written, what happens when they cannot be."""

import errno
import json
import os
import shutil
import warnings

import keras
import numpy as np
import pytest

from keras_transformer import folders
from keras_transformer.callbacks import Checkpoints, Position, arrays, checkpoint_files, fit
from keras_transformer.callbacks.training_state import state_variables
from tests.callbacks.small import COMPILED, CutAfter, PowerCutError, equal, make_dataset, make_model, once, weights_of


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "checkpoints"


def values(variables) -> list[np.ndarray]:
    return [np.array(keras.ops.convert_to_numpy(variable)) for variable in variables]


def names_in(directory) -> list[str]:
    return sorted(os.listdir(directory))


def cut(directory, steps: int, **options):
    """Trains until a power cut after some steps; returns the model as it was then."""
    model = make_model()
    checkpoints = Checkpoints(directory, **{"every_steps": 2, **options})
    with pytest.raises(PowerCutError):
        fit(model, make_dataset(), 3, checkpoints, [CutAfter(steps)], verbose=0)
    return model


def test_a_restored_model_is_the_one_that_was_written(directory):
    model = make_model(optimizer=keras.optimizers.Adam(0.01, gradient_accumulation_steps=2))
    model.fit(make_dataset(), epochs=2, verbose=0, callbacks=[Checkpoints(directory)])
    other = make_model(optimizer=keras.optimizers.Adam(0.01, gradient_accumulation_steps=2))
    position = Checkpoints(directory).restore(other)
    assert position == Position(epoch=2, step=0, total_steps=16, batches=8, stopped=False)
    expected, found = state_variables(model), state_variables(other)
    for group in ("weights", "seeds", "optimizer"):
        assert len(expected[group]) > 0
        assert equal(values(expected[group]), values(found[group])), group
    assert not equal(weights_of(make_model()), weights_of(other))


@once
def test_a_checkpoint_is_a_folder_that_tools_can_read_and_check(directory):
    cut(directory, 5)
    newest = directory / "step-00000004"
    assert names_in(directory) == ["step-00000002", "step-00000004"]
    assert names_in(newest) == ["SHA256SUMS", "arrays.npz", "state.json"]
    if shutil.which("sha256sum"):
        assert os.system(f"cd {newest} && sha256sum --check --quiet SHA256SUMS") == 0
    state = json.loads((newest / "state.json").read_text())
    assert state["position"] == {"epoch": 0, "step": 4, "total_steps": 4, "batches": 8, "stopped": False}
    assert state["versions"]["backend"] == keras.backend.backend()
    with np.load(newest / "arrays.npz", allow_pickle=False) as archive:
        assert {name.split("/")[0] for name in archive.files} >= {"weights", "seeds", "optimizer", "metrics"}


@once
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"keep": 9}, [8, 16]),
        ({"every_steps": 3, "keep": 9}, [3, 6, 8, 9, 12, 15, 16]),
        ({"every_steps": 3, "keep": 2}, [15, 16]),
        ({"every_steps": 3, "keep": 1}, [16]),
        ({"every_steps": 5, "every_epochs": None, "keep": 9}, [5, 10, 15, 16]),
        ({"every_steps": 8, "every_epochs": None, "keep": 9}, [8, 16]),
        ({"every_epochs": 2, "keep": 9}, [16]),
        ({"every_epochs": 5, "keep": 9}, [16]),
    ],
)
def test_when_they_are_written_and_how_many_are_kept(directory, options, expected):
    make_model().fit(make_dataset(), epochs=2, verbose=0, callbacks=[Checkpoints(directory, **options)])
    assert names_in(directory) == [f"step-{step:08d}" for step in expected]


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="Keras takes one step at a time on torch")
def test_several_steps_at_once(directory):
    model = make_model()
    model.compile("sgd", model.loss, steps_per_execution=3, jit_compile=COMPILED)
    checkpoints = Checkpoints(directory, every_steps=4, keep=9)
    model.fit(make_dataset(), epochs=1, verbose=0, callbacks=[checkpoints])
    assert names_in(directory) == ["step-00000006", "step-00000008"]
    assert int(model.optimizer.iterations) == 8


def truncate(path):
    (path / "arrays.npz").write_bytes((path / "arrays.npz").read_bytes()[:-100])


def flip_a_bit(path):
    content = bytearray((path / "arrays.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (path / "arrays.npz").write_bytes(content)


def move_the_position(path):
    text = (path / "state.json").read_text()
    (path / "state.json").write_text(text.replace('"step": 6', '"step": 7'))


def lose_the_arrays(path):
    (path / "arrays.npz").unlink()


def lose_the_sums(path):
    (path / "SHA256SUMS").unlink()


def garble_the_sums(path):
    (path / "SHA256SUMS").write_bytes(b"\xff\x00nothing")


@once
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncate, "arrays.npz is not what was written"),
        (flip_a_bit, "arrays.npz is not what was written"),
        (move_the_position, "state.json is not what was written"),
        (lose_the_arrays, "arrays.npz is missing"),
        (lose_the_sums, "SHA256SUMS is missing"),
        (garble_the_sums, "SHA256SUMS cannot be read"),
    ],
)
def test_a_damaged_checkpoint_gives_way_to_an_older_one(directory, damage, reason):
    cut(directory, 7)
    assert names_in(directory) == ["step-00000004", "step-00000006"]
    damage(directory / "step-00000006")
    with pytest.warns(UserWarning, match=f"step-00000006 is damaged and left out: {reason}"):
        assert Checkpoints(directory).latest() == directory / "step-00000004"


@once
def test_a_run_with_a_damaged_checkpoint_ends_like_any_other(directory, tmp_path):
    whole = make_model()
    fit(whole, make_dataset(), 2, tmp_path / "whole", verbose=0)
    cut(directory, 7, keep=1)
    shutil.copytree(directory / "step-00000006", directory / "step-00000007")
    flip_a_bit(directory / "step-00000007")
    model = make_model()
    with pytest.warns(UserWarning, match="step-00000007 is damaged"):
        fit(model, make_dataset(), 2, Checkpoints(directory, every_steps=2, keep=1), verbose=0)
    assert equal(weights_of(model), weights_of(whole))
    assert names_in(directory) == ["step-00000016"]


@once
def test_when_all_are_damaged_nothing_begins_anew_by_itself(directory):
    cut(directory, 3)
    flip_a_bit(directory / "step-00000002")
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=r"All checkpoints in .* are damaged: step-00000002"):
        fit(make_model(), make_dataset(), 2, directory, verbose=0)
    assert names_in(directory) == ["step-00000002"]


@once
def test_going_back_to_an_older_one_removes_no_good_one(directory):
    cut(directory, 5)
    model, checkpoints = make_model(), Checkpoints(directory)
    checkpoints.restore(model, directory / "step-00000002")
    with pytest.raises(ValueError, match=r"of steps that are still to come.*step-00000004"):
        model.fit(make_dataset().from_step(2), verbose=0, callbacks=[checkpoints])
    assert names_in(directory) == ["step-00000002", "step-00000004"]


@once
def test_going_on_by_hand(directory, tmp_path):
    whole = make_model()
    fit(whole, make_dataset(), 2, tmp_path / "whole", verbose=0)
    cut(directory, 5)
    model, checkpoints, dataset = make_model(), Checkpoints(directory), make_dataset()
    position = checkpoints.restore(model)
    rest = {"initial_epoch": position.epoch, "epochs": position.epoch + 1, "callbacks": [checkpoints], "verbose": 0}
    model.fit(dataset.from_step(position.step), **rest)
    dataset.set_epoch(1)
    model.fit(dataset, initial_epoch=1, epochs=2, callbacks=[checkpoints], verbose=0)
    assert equal(weights_of(model), weights_of(whole))
    assert names_in(directory) == ["step-00000008", "step-00000016"]


@once
def test_nothing_to_restore(directory):
    assert Checkpoints(directory).latest() is None
    assert Checkpoints(directory).restore(make_model()) is None
    directory.mkdir()
    (directory / "step-1").write_text("a file of somebody else")
    assert Checkpoints(directory).latest() is None


class FullDisk:
    """A disk that is full after some arrays."""

    def __init__(self, monkeypatch, room: int):
        self.room, self.write = room, np.lib.format.write_array
        monkeypatch.setattr(np.lib.format, "write_array", self.write_array)

    def write_array(self, file, array, **options):
        self.room -= 1
        if self.room < 0:
            file.write(b"half of it")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.write(file, array, **options)


@once
def test_a_full_disk_leaves_the_last_checkpoint_as_it_is(directory, monkeypatch, tmp_path):
    whole = make_model()
    fit(whole, make_dataset(), 2, tmp_path / "whole", verbose=0)
    count = len(np.load(tmp_path / "whole" / "step-00000016" / "arrays.npz").files)
    with monkeypatch.context() as patched:
        FullDisk(patched, room=2 * count + count // 2)
        with pytest.raises(OSError, match=r"could not be written \(No space left.*step-00000004, is untouched") as caught:
            fit(make_model(), make_dataset(), 2, Checkpoints(directory, every_steps=2, keep=1), verbose=0)
    assert caught.value.errno == errno.ENOSPC
    assert names_in(directory) == ["step-00000004"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Checkpoints(directory).latest() == directory / "step-00000004"
    model = make_model()
    fit(model, make_dataset(), 2, Checkpoints(directory, every_steps=2, keep=1), verbose=0)
    assert equal(weights_of(model), weights_of(whole))


@once
def test_a_disk_that_is_full_from_the_beginning(directory, monkeypatch):
    FullDisk(monkeypatch, room=0)
    with pytest.raises(OSError, match="There is none yet"):
        make_model().fit(make_dataset(), verbose=0, callbacks=[Checkpoints(directory)])
    assert names_in(directory) == []


class Poison(keras.callbacks.Callback):
    """Makes one weight NaN after some steps."""

    def __init__(self, steps: int):
        super().__init__()
        self.steps = steps

    def on_train_batch_begin(self, batch, logs=None):
        if batch == self.steps:
            weight = self.model.trainable_variables[-1]
            weight.assign(weight * float("nan"))


def test_weights_that_are_no_numbers_are_never_written(directory):
    model = make_model()
    with pytest.raises(FloatingPointError, match="The loss became nan in epoch 1, after 6 steps"):
        model.fit(make_dataset(), verbose=0, callbacks=[Poison(5), Checkpoints(directory, every_steps=2)])
    assert names_in(directory) == ["step-00000002", "step-00000004"]
    other = make_model()
    assert Checkpoints(directory).restore(other).step == 4
    assert all(np.isfinite(array).all() for array in weights_of(other))


@once
def test_a_bad_weight_is_found_before_the_loss_shows_it(directory):
    with pytest.raises(FloatingPointError, match="logits/bias is not finite in epoch 1, after 4 steps of it"):
        make_model().fit(make_dataset(), verbose=0, callbacks=[Poison(4), Checkpoints(directory, every_steps=4)])
    assert names_in(directory) == []


@once
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            lambda: make_model(width=6),
            r"in its weights, source/embeddings has the shape \(275, 4\), and here .* has \(275, 6\)",
        ),
        (lambda: make_model(optimizer=keras.optimizers.SGD(0.01)), "variables among its optimizer, and here there are 2"),
    ],
)
def test_a_model_of_another_shape(directory, model, message):
    cut(directory, 3)
    model = model()
    before = weights_of(model)
    with pytest.raises(ValueError, match=message):
        Checkpoints(directory).restore(model)
    assert equal(weights_of(model), before)


def test_a_model_with_other_metrics(directory):
    cut(directory, 3)
    model = make_model(metrics=())
    with pytest.warns(UserWarning, match=r"leaves out its first 2 steps.*among its metrics"):
        fit(model, make_dataset(), 1, Checkpoints(directory, every_steps=2), verbose=0)
    assert int(model.optimizer.iterations) == 8


@once
def test_a_model_without_weights_or_optimizer(directory):
    cut(directory, 3)
    with pytest.raises(ValueError, match="only into a model that has weights and an optimizer"):
        Checkpoints(directory).restore(keras.Sequential([keras.layers.Dense(3)]))


@once
def test_another_format_is_not_damage(directory):
    cut(directory, 3)
    path = directory / "step-00000002"
    (path / "state.json").write_text((path / "state.json").read_text().replace('"format": 1', '"format": 99'))
    sums = "".join(f"{folders.file_digest(path / name)}  {name}\n" for name in ("arrays.npz", "state.json"))
    (path / "SHA256SUMS").write_text(sums)
    with pytest.raises(ValueError, match="has the format 99, and this version of the package reads 1"):
        Checkpoints(directory).restore(make_model())


@once
def test_a_new_run_does_not_mix_with_an_old_one(directory):
    cut(directory, 3)
    with pytest.raises(ValueError, match=r"a checkpoint of another run.*step-00000002.*take another directory"):
        make_model().fit(make_dataset(), verbose=0, callbacks=[Checkpoints(directory)])
    assert names_in(directory) == ["step-00000002"]


@once
def test_a_second_plain_fit_goes_on_counting(directory):
    model, checkpoints = make_model(), Checkpoints(directory, keep=9)
    for _ in range(2):
        model.fit(make_dataset(), verbose=0, callbacks=[checkpoints])
    assert names_in(directory) == ["step-00000008", "step-00000016"]


@once
def test_what_a_killed_process_left_is_removed(directory):
    (directory / ".step-00000009.0123").mkdir(parents=True)
    (directory / ".step-00000003.removed").mkdir()
    (directory / "notes").mkdir()
    make_model().fit(make_dataset(), verbose=0, callbacks=[Checkpoints(directory)])
    assert names_in(directory) == ["notes", "step-00000008"]


def test_numbers_of_few_bits_survive(tmp_path):
    variable = keras.Variable(np.array([1.0, 0.1, -3e38, 1e-38]), dtype="bfloat16", name="few_bits")
    arrays.write_arrays(tmp_path / "a.npz", arrays.named_arrays("weights", [variable]))
    other = keras.Variable(np.zeros(4), dtype="bfloat16")
    with arrays.open_arrays(tmp_path / "a.npz") as archive:
        other.assign(archive[archive.files[0]])
    assert keras.backend.standardize_dtype(other.dtype) == "bfloat16"
    assert equal(values([keras.ops.cast(variable, "float32")]), values([keras.ops.cast(other, "float32")]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": 0}, "`keep` must be a positive integer. Received: keep=0"),
        ({"every_steps": 0}, "`every_steps` must be a positive integer"),
        ({"every_epochs": -1}, "`every_epochs` must be a positive integer"),
        ({"every_epochs": None}, "Give `every_steps`, `every_epochs` or both"),
    ],
)
def test_impossible_options(directory, options, message):
    with pytest.raises(ValueError, match=message):
        Checkpoints(directory, **options)


@once
def test_a_state_that_json_cannot_hold(directory):
    class Odd(keras.callbacks.Callback):
        def get_state(self):
            return {"array": np.zeros(2)}

    with pytest.raises(ValueError, match="`get_state` of Odd must return a dictionary of JSON values"):
        fit(make_model(), make_dataset(), 1, Checkpoints(directory), [Odd()], verbose=0)
    assert not directory.exists()


def test_folders_are_sorted_by_number(tmp_path):
    for step in (99_999_999, 100_000_000, 5):
        checkpoint_files.checkpoint_path(tmp_path, step).mkdir()
    steps = [checkpoint_files.step_of(path) for path in checkpoint_files.checkpoints_in(tmp_path)]
    assert steps == [5, 99_999_999, 100_000_000]
