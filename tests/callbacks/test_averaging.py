"""Averaged weights."""

import os

import keras
import numpy as np
import pytest

from keras_transformer.callbacks import Checkpoints, WeightAveraging, average_weights, fit
from tests.callbacks.small import CutAfter, Notes, PowerCutError, equal, make_dataset, make_model, once, weights_of


def mean_of(moments) -> list[np.ndarray]:
    return [np.mean(np.array(arrays, "float64"), axis=0).astype("float32") for arrays in zip(*moments, strict=True)]


@pytest.mark.parametrize("directory", [None, pytest.param("averages", marks=once)])
def test_training_ends_with_the_mean_of_the_last_epochs(tmp_path, directory):
    model, notes = make_model(), Notes()
    averaging = WeightAveraging(3, directory and tmp_path / directory)
    model.fit(make_dataset(), epochs=4, verbose=0, callbacks=[notes, averaging])
    assert equal(weights_of(model), mean_of(notes.weights[1:]))
    assert not equal(weights_of(model), notes.weights[-1])
    if directory:
        assert sorted(os.listdir(tmp_path / directory)) == [f"weights-{step:08d}.npz" for step in (16, 24, 32)]


@once
def test_fewer_moments_than_wanted(tmp_path):
    model, notes = make_model(), Notes()
    model.fit(make_dataset(), epochs=2, verbose=0, callbacks=[notes, WeightAveraging(5)])
    assert equal(weights_of(model), mean_of(notes.weights))


class WeightsAt(keras.callbacks.Callback):
    """Notes the weights after given numbers of steps of the only epoch."""

    def __init__(self, *steps):
        super().__init__()
        self.steps, self.weights = steps, []

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 in self.steps:
            self.weights.append(weights_of(self.model))


def test_moments_within_an_epoch(tmp_path):
    model, notes = make_model(), WeightsAt(4, 6, 8)
    model.fit(make_dataset(), verbose=0, callbacks=[notes, WeightAveraging(3, tmp_path, every_steps=2)])
    assert equal(weights_of(model), mean_of(notes.weights))
    assert len(notes.weights) == 3


@once
def test_the_window_goes_on_after_an_interruption(tmp_path):
    def train(name, cut=()):
        model = make_model()
        averaging = WeightAveraging(3, tmp_path / name / "averages", every_steps=3)
        fit(model, make_dataset(), 2, Checkpoints(tmp_path / name / "run", every_steps=5), [averaging, *cut], verbose=0)
        return weights_of(model), averaging.window

    whole, window = train("whole")
    assert window == [f"weights-{step:08d}.npz" for step in (9, 12, 15)]
    for steps in (9, 6):  # After moments that no checkpoint knows of.
        with pytest.raises(PowerCutError):
            train("cut", [CutAfter(steps)])
    found, again = train("cut")
    assert equal(found, whole)
    assert again == window
    for name in window:
        contents = [(tmp_path / run / "averages" / name).read_bytes() for run in ("whole", "cut")]
        assert contents[0] == contents[1]


@once
def test_files_that_the_last_checkpoint_needs_stay(tmp_path):
    def files_after(steps):
        averaging = WeightAveraging(2, tmp_path / "averages", every_steps=2)
        with pytest.raises(PowerCutError):
            fit(make_model(), make_dataset(), 2, Checkpoints(tmp_path / "run", 5), [averaging, CutAfter(steps)], verbose=0)
        return sorted(int(path.stem.removeprefix("weights-")) for path in (tmp_path / "averages").iterdir())

    assert files_after(7) == [2, 4, 6]  # The checkpoint of step 5 speaks of 2 and 4, the window now is 4 and 6.
    assert files_after(4) == [2, 4, 6, 8]  # From step 5 to step 9, and to the checkpoint of step 8, the epoch's end.
    assert files_after(3) == [6, 8, 10]  # That checkpoint speaks of 6 and 8.


@once
def test_a_temporary_directory_cannot_be_gone_on_with(tmp_path):
    with pytest.raises(PowerCutError):
        fit(make_model(), make_dataset(), 2, tmp_path, [WeightAveraging(2), CutAfter(10)], verbose=0)
    with pytest.raises(ValueError, match=r"WeightAveraging kept went with their process.*give it a `directory`"):
        fit(make_model(), make_dataset(), 2, tmp_path, [WeightAveraging(2)], verbose=0)


@once
def test_checkpoints_can_be_averaged_too(tmp_path):
    model, notes = make_model(), Notes()
    model.fit(make_dataset(), epochs=3, verbose=0, callbacks=[notes, Checkpoints(tmp_path, keep=3)])
    paths = [tmp_path / f"step-{step:08d}" for step in (8, 16, 24)]
    assert equal(average_weights(paths), mean_of(notes.weights))
    assert equal(average_weights(paths[:1]), notes.weights[0])


@once
def test_sums_are_exact(tmp_path):
    """In float32, 2^24 ones and more could not be counted."""
    paths = [tmp_path / f"{number}.npz" for number in range(3)]
    for path, value in zip(paths, (2.0**24, 1.0, 1.0), strict=True):
        np.savez(path, **{"weights/00000/a": np.array([value], "float32"), "weights/00001/b": np.array([value], "int32")})
    array, integers = average_weights(paths)
    assert array.dtype == np.float32
    assert array[0] == np.float32((2.0**24 + 2) / 3)
    assert integers.tolist() == [1]


@once
def test_what_cannot_be_averaged(tmp_path):
    for name, shapes in (("a", [(2, 3), (4,)]), ("b", [(2, 3)]), ("c", [(2, 3), (5,)])):
        np.savez(tmp_path / f"{name}.npz", **{f"weights/{n}": np.zeros(shape) for n, shape in enumerate(shapes)})
    (tmp_path / "d.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-50])
    a, b, c, d = (tmp_path / f"{name}.npz" for name in "abcd")
    with pytest.raises(ValueError, match="nothing to average"):
        average_weights([])
    with pytest.raises(ValueError, match=r"not the weights of one model.*a.npz: 2, .*b.npz: 1"):
        average_weights([a, b])
    with pytest.raises(ValueError, match=r"weights/1 has the shape \(5,\) in .*c.npz, and \(4,\) in"):
        average_weights([a, c])
    with pytest.raises(ValueError, match=r"d\.npz is damaged, or no file of weights"):
        average_weights([a, d])
    with pytest.raises(FileNotFoundError, match="There is no such file"):
        average_weights([tmp_path / "e.npz"])


@once
def test_two_averages_at_once_are_too_many(tmp_path):
    model = make_model(optimizer=keras.optimizers.Adam(use_ema=True))
    with pytest.raises(ValueError, match="not both"):
        model.fit(make_dataset(), verbose=0, callbacks=[WeightAveraging(2)])
    with pytest.raises(ValueError, match="`num_checkpoints` must be a positive integer"):
        WeightAveraging(0)
