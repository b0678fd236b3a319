"""A loss that is no number ends a training."""

import os

import keras
import numpy as np
import pytest

from keras_transformer.callbacks import Checkpoints, StopOnNonFinite, WeightAveraging, fit
from tests.callbacks.small import Notes, make_dataset, make_model, once, weights_of


class Spoil(keras.callbacks.Callback):
    """Puts a number into the weights before the third step of the second epoch."""

    def __init__(self, number: float):
        super().__init__()
        self.number = number

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if (self.epoch, batch) == (1, 2):
            weight = self.model.trainable_variables[-1]
            weight.assign(np.full(weight.shape, self.number, "float32"))


@pytest.mark.parametrize("number", [float("nan"), pytest.param(float("inf"), marks=once)])
def test_training_ends_with_a_message(number):
    notes = Notes()
    with pytest.raises(FloatingPointError, match=r"The loss became nan in epoch 2, \d steps .*Lower the learning rate"):
        make_model().fit(make_dataset(), epochs=3, verbose=0, callbacks=[Spoil(number), StopOnNonFinite(), notes])
    assert notes.calls[-1] == "epoch 1 begins"


@once
def test_the_last_good_checkpoint_stays(tmp_path):
    callbacks = [Spoil(float("nan")), WeightAveraging(2, tmp_path / "averages")]
    with pytest.raises(FloatingPointError, match="The loss became nan in epoch 2"):
        fit(make_model(), make_dataset(), 3, tmp_path / "run", callbacks, verbose=0)
    assert os.listdir(tmp_path / "run") == ["step-00000008"]
    model = make_model()
    position = Checkpoints(tmp_path / "run").restore(model)
    assert (position.epoch, position.step) == (1, 0)
    assert all(np.isfinite(array).all() for array in weights_of(model))


@once
def test_a_good_loss_passes():
    history = make_model().fit(make_dataset(), epochs=2, verbose=0, callbacks=[StopOnNonFinite()])
    assert len(history.history["loss"]) == 2
