"""Stopping when scores no longer rise."""

import json

import keras
import pytest

from keras_transformer.callbacks import Checkpoints, EarlyStopping, fit
from keras_transformer.callbacks.early_stopping import find_mode
from tests.callbacks.small import CutAfter, Notes, PowerCutError, equal, make_dataset, make_model, once, weights_of


class Scores(keras.callbacks.Callback):
    """Logs given scores, one an epoch; `None` logs nothing."""

    def __init__(self, *scores, name="val_bleu"):
        super().__init__()
        self.scores, self.name = scores, name

    def on_epoch_end(self, epoch, logs=None):
        if self.scores[epoch] is not None:
            logs[self.name] = self.scores[epoch]


def epochs_until_stop(stopping, *scores) -> int:
    """Shows scores to a callback, epoch by epoch; returns after how many it stops, 0 for never."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    stopping.set_model(model)
    model.stop_training = False
    stopping.on_train_begin()
    for epoch, score in enumerate(scores):
        stopping.on_epoch_end(epoch, {} if score is None else {stopping.monitor: score})
        if model.stop_training:
            return epoch + 1
    return 0


NAN = float("nan")


@pytest.mark.parametrize(
    ("options", "scores", "expected"),
    [
        ({"patience": 2}, [1, 2, 3, 4], 0),
        ({"patience": 2}, [1, 2, 1, 2], 4),  # As good is not better.
        ({"patience": 2}, [1, 2, 1, 3, 1, 1], 6),
        ({"patience": 2}, [1, None, 2, None, 1, None, 1], 7),  # What is missing is no failure.
        ({"patience": 1}, [None, None, None], 0),
        ({"patience": 2}, [5, NAN, 4], 3),
        ({"patience": 2}, [NAN, 5, NAN, NAN], 4),
        ({"patience": 2}, [NAN, NAN], 2),
        ({"patience": 2, "min_delta": 0.5}, [1, 1.4, 1.5], 3),
        ({"patience": 2, "min_delta": 0.5}, [1, 1.4, 1.6, 1.7], 0),
        ({"patience": 2, "monitor": "val_loss"}, [3, 2, 1, 2, 3], 5),
        ({"patience": 2, "monitor": "val_loss", "min_delta": 0.5}, [3, 2.6, 2.5], 3),
        ({"patience": 1, "monitor": "val_loss", "mode": "max"}, [3, 2], 2),
    ],
)
def test_when_it_stops(options, scores, expected):
    assert epochs_until_stop(EarlyStopping(**options, verbose=0), *scores) == expected


@once
def test_training_stops_and_says_so(capsys):
    notes = Notes()
    callbacks = [Scores(1.0, 2.0, None, 1.5, 1.0, 9.0), EarlyStopping(patience=2), notes]
    make_model().fit(make_dataset(), epochs=6, verbose=0, callbacks=callbacks)
    assert len(notes.weights) == 5
    expected = "Training stops after epoch 5: no better val_bleu than 2 (epoch 2) in 2 evaluations"
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize("average", [pytest.param(False, marks=once), True])
def test_the_best_weights_come_back(average):
    def train(epochs, *callbacks):
        model = make_model(optimizer=keras.optimizers.Adam(0.01, use_ema=average, ema_momentum=0.5))
        model.fit(make_dataset(), epochs=epochs, verbose=0, callbacks=callbacks)
        return weights_of(model)

    found = train(4, Scores(1.0, 2.0, 1.5, 1.0), EarlyStopping(restore_best=True, verbose=0))
    assert equal(found, train(2))


@once
def test_it_goes_on_after_an_interruption(tmp_path):
    def train(name, cut=()):
        model = make_model()
        stopping = EarlyStopping(patience=3, restore_best=True, directory=tmp_path / name / "best", verbose=0)
        callbacks = [Scores(1.0, 3.0, 2.0, 2.0, 2.0, 9.0), stopping, *cut]
        history = fit(model, make_dataset(), 6, Checkpoints(tmp_path / name / "run", 3), callbacks, verbose=0)
        return weights_of(model), history.epoch, stopping.get_state()

    whole = train("whole")
    for steps in (12, 14):
        with pytest.raises(PowerCutError):
            train("cut", [CutAfter(steps)])
    found = train("cut")
    assert found[1] == whole[1] == [0, 1, 2, 3, 4]
    assert equal(found[0], whole[0])
    assert found[2] == whole[2]
    assert [path.name for path in (tmp_path / "cut" / "best").iterdir()] == ["best-00000001.npz"]


def test_its_state_is_json():
    stopping, other = EarlyStopping(patience=3, verbose=0), EarlyStopping(patience=3, verbose=0)
    epochs_until_stop(stopping, 1.0, 2.0, 1.5)
    other.set_state(json.loads(json.dumps(stopping.get_state())))
    assert (other.best, other.best_epoch, other.wait, other.stopped) == (2.0, 1, 1, False)


@once
def test_a_score_that_never_comes_is_warned_of():
    with pytest.warns(UserWarning, match=r"never saw val_bleu.*come before it.*There were: accuracy, loss"):
        make_model().fit(make_dataset(), verbose=0, callbacks=[EarlyStopping(), Scores(1.0)])


@pytest.mark.parametrize(
    ("monitor", "mode"),
    [("val_bleu", "max"), ("val_chrf", "max"), ("token_accuracy", "max"), ("val_loss", "min"), ("val_perplexity", "min")],
)
def test_the_name_tells_what_is_better(monitor, mode):
    assert find_mode(monitor, None) == mode


def test_impossible_options():
    with pytest.raises(ValueError, match=r"Say with `mode`.*monitor='val_beauty', mode=None"):
        EarlyStopping("val_beauty")
    with pytest.raises(ValueError, match="mode='auto'"):
        EarlyStopping(mode="auto")
    with pytest.raises(ValueError, match=r"`patience` must be a positive integer.*patience=0"):
        EarlyStopping(patience=0)
