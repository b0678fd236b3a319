"""`fit` with checkpoints: going on after an interruption, on every backend."""

import re
from contextlib import nullcontext

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.callbacks import Checkpoints, EarlyStopping, Position, WeightAveraging, fit
from tests.callbacks.small import (
    CutAfter,
    Notes,
    PowerCutError,
    equal,
    make_dataset,
    make_model,
    make_tokenizer,
    make_transformer,
    once,
    weights_of,
)


def make_with_average():
    """Makes a model whose optimizer keeps all it can: moments, accumulated gradients and averages."""
    optimizer = keras.optimizers.Adam(0.01, gradient_accumulation_steps=2, use_ema=True, ema_momentum=0.8)
    return make_model(optimizer=optimizer)


def run(make, directory, epochs=3, steps_until_cut=None, callbacks=(), validation=None, **options):
    """Trains a new model, until a power cut if one is to come; returns the model and the history."""
    model = make()
    checkpoints = Checkpoints(directory, **{"every_steps": 3, **options})
    if steps_until_cut:
        with pytest.raises(PowerCutError):
            fit(model, make_dataset(), epochs, checkpoints, [*callbacks, CutAfter(steps_until_cut)], verbose=0)
        return model, None
    history = fit(model, make_dataset(), epochs, checkpoints, callbacks, verbose=0, validation_data=validation)
    return model, history


@pytest.mark.parametrize("make", [make_with_average, pytest.param(make_model, marks=once)])
def test_an_interrupted_run_ends_like_one_that_was_not(tmp_path, make):
    """The first cut comes two steps after a checkpoint of an odd step, the second in the next epoch."""
    whole, history = run(make, tmp_path / "whole", epochs=2)
    for steps in (5, 7):
        run(make, tmp_path / "cut", epochs=2, steps_until_cut=steps)
    model, found = run(make, tmp_path / "cut", epochs=2)
    assert equal(weights_of(model), weights_of(whole))
    assert found.history == history.history
    assert found.epoch == [0, 1]
    assert model.history is found


@once
def test_a_transformer_goes_on_too(tmp_path):
    """Its dataset comes to it in another way than to other models. Killed runs show the same on the other backends."""
    whole, history = run(make_transformer, tmp_path / "whole", epochs=2)
    run(make_transformer, tmp_path / "cut", epochs=2, steps_until_cut=5)
    model, found = run(make_transformer, tmp_path / "cut", epochs=2)
    assert equal(weights_of(model), weights_of(whole))
    assert found.history == history.history


@once
def test_it_is_one_training_to_the_callbacks(tmp_path):
    run(make_model, tmp_path, steps_until_cut=11)
    notes = Notes()
    run(make_model, tmp_path, callbacks=[notes])
    epochs = [f"epoch {epoch} {what}" for epoch in (1, 2) for what in ("begins", "ends")]
    assert notes.calls == ["train begins", *epochs, "train ends"]


@once
def test_a_finished_run_is_restored_and_not_trained(tmp_path):
    averaging = {"callbacks": [WeightAveraging(2, tmp_path / "averages")]}
    model, history = run(make_model, tmp_path / "run", **averaging)
    notes = Notes()
    again, found = run(make_model, tmp_path / "run", callbacks=[WeightAveraging(2, tmp_path / "averages"), notes])
    assert notes.calls == ["train begins", "train ends"]
    assert equal(weights_of(again), weights_of(model))
    assert found.history == history.history


@once
def test_more_epochs_go_on_from_the_end(tmp_path):
    whole, history = run(make_with_average, tmp_path / "whole")
    run(make_with_average, tmp_path / "run", epochs=2)
    model, found = run(make_with_average, tmp_path / "run", epochs=3)
    assert equal(weights_of(model), weights_of(whole))
    assert found.history == history.history


class StopAt(keras.callbacks.Callback):
    """Stops within an epoch, as somebody does who sees enough."""

    def __init__(self, epoch: int, step: int):
        super().__init__()
        self.at = epoch, step

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        self.model.stop_training |= (self.epoch, batch) == self.at


@once
def test_a_run_stopped_within_an_epoch_goes_on_there(tmp_path):
    whole, history = run(make_model, tmp_path / "whole")
    run(make_model, tmp_path / "run", callbacks=[StopAt(1, 4)])
    assert Checkpoints(tmp_path / "run").latest().name == "step-00000013"
    model, found = run(make_model, tmp_path / "run")
    assert equal(weights_of(model), weights_of(whole))
    assert found.history == history.history


@once
def test_a_run_that_was_stopped_early_stays_stopped(tmp_path):
    def stopping():
        return EarlyStopping("loss", patience=1, mode="max", verbose=0)  # The loss falls: it stops after two epochs.

    model, history = run(make_model, tmp_path / "run", epochs=9, callbacks=[stopping()])
    assert history.epoch == [0, 1]
    again, found = run(make_model, tmp_path / "run", epochs=9, callbacks=[stopping()])
    assert found.epoch == [0, 1]
    assert equal(weights_of(again), weights_of(model))


@once
def test_stopping_in_what_is_left_of_an_epoch(tmp_path):
    def stopping():
        return EarlyStopping("loss", patience=1, mode="max", verbose=0)

    whole, _ = run(make_with_average, tmp_path / "whole", epochs=9, callbacks=[stopping()])
    run(make_with_average, tmp_path / "run", epochs=9, callbacks=[stopping()], steps_until_cut=13)
    model, history = run(make_with_average, tmp_path / "run", epochs=9, callbacks=[stopping()])
    assert history.epoch == [0, 1]
    assert equal(weights_of(model), weights_of(whole))


def test_validation_goes_along(tmp_path):
    validation = make_dataset(shuffle=False)
    _, history = run(make_model, tmp_path / "whole", epochs=2, validation=validation)
    run(make_model, tmp_path / "run", epochs=2, steps_until_cut=5)
    _, found = run(make_model, tmp_path / "run", epochs=2, validation=validation)
    assert len(found.history["val_loss"]) == 2
    assert found.history == history.history


@once
def test_arrays_go_on_epoch_by_epoch(tmp_path):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(20, 3)).astype("float32"), random.normal(size=(20, 1)).astype("float32")

    def make():
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dropout(0.5), keras.layers.Dense(1)])
        model.compile("sgd", "mse", jit_compile=keras.backend.backend() == "jax")
        return model

    def train(directory, epochs):
        model = make()
        history = fit(model, x, epochs, directory, y=y, batch_size=5, shuffle=False, verbose=0)
        return weights_of(model), history.epoch

    whole, _ = train(tmp_path / "whole", 3)
    train(tmp_path / "run", 1)
    found, epochs = train(tmp_path / "run", 3)
    assert equal(found, whole)
    assert epochs == [0, 1, 2]


@once
def test_what_cannot_be_resumed_is_said_at_once(tmp_path):
    model = make_model()
    with pytest.raises(ValueError, match="leave away `initial_epoch`"):
        fit(model, make_dataset(), 2, tmp_path, initial_epoch=1)
    with pytest.raises(ValueError, match=r"needs a method `from_step`.*Received: list"):
        fit(model, [make_dataset()[0]], 2, Checkpoints(tmp_path, every_steps=5))


def changed_data(change=lambda pairs: pairs, tokenizer=None, **options):
    """Makes the dataset of `make_dataset` with something else about it."""
    pairs = change(kt.data.reverse(num_pairs=50, max_length=5).train)
    options = {"num_shapes": 1, "progress": False, "batch_tokens": 64, **options}
    return kt.data.parallel_dataset(pairs.source, pairs.target, tokenizer or make_tokenizer(), **options)


def other_tokenizer():
    corpus = kt.data.reverse(num_pairs=100, seed=1)
    return kt.Tokenizer.train(iter([*corpus.train.target, *corpus.train.source]), vocabulary_size=274)


CHANGES = [
    (lambda: changed_data(lambda pairs: kt.data.Pairs(pairs.source, pairs.target[::-1])), "the target sentences"),
    (lambda: changed_data(lambda pairs: kt.data.Pairs(pairs.source[::-1], pairs.target)), "the source sentences"),
    (
        lambda: changed_data(lambda pairs: kt.data.Pairs(pairs.source[::-1], pairs.target[::-1])),
        "the source sentences, the target sentences",
    ),
    (lambda: changed_data(max_length=4), "the source sentences, the target sentences"),
    (lambda: changed_data(tokenizer=other_tokenizer()), "the tokenizer"),
    (lambda: changed_data(seed=1), "`seed` (0, now 1)"),
    (lambda: changed_data(shuffle=False), "`seed` (0, now None)"),
    (lambda: changed_data(batch_tokens=128), "`batch_tokens` (64, now 128)"),
    (lambda: changed_data(subword_sampling=kt.SubwordSampling(0.2)), "`subword_sampling` (None, now {'alpha': 0.2})"),
]


@once
@pytest.mark.parametrize(("make", "what"), CHANGES, ids=[what for _, what in CHANGES])
def test_changed_data_is_refused(tmp_path, make, what):
    run(make_model, tmp_path, steps_until_cut=5)
    model, files = make_model(), sorted(tmp_path.rglob("*"))
    before = weights_of(model)
    with pytest.raises(ValueError, match=rf"changed since the checkpoint .*step-0000000\d.* written: {re.escape(what)}\. "):
        fit(model, make(), 3, Checkpoints(tmp_path, every_steps=3), verbose=0)
    assert equal(weights_of(model), before)
    assert sorted(tmp_path.rglob("*")) == files


@once
def test_changed_data_is_refused_at_the_end_of_an_epoch(tmp_path):
    run(make_model, tmp_path, epochs=1)
    with pytest.raises(ValueError, match="step-00000008 was written: the target sentences"):
        fit(make_model(), CHANGES[0][0](), 3, tmp_path, verbose=0)


@once
def test_the_same_data_goes_on_wherever_it_lies(tmp_path):
    """From lists and from files, and whichever part of the rows a process has."""
    whole, _ = run(make_model, tmp_path / "whole", epochs=2)
    run(make_model, tmp_path / "cut", steps_until_cut=5)
    pairs = kt.data.reverse(num_pairs=50, max_length=5).train
    for name, lines in (("source", pairs.source), ("target", pairs.target)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    options = {"batch_tokens": 64, "num_shapes": 1, "progress": False, "cache": tmp_path / "cache"}
    again = kt.data.parallel_dataset(tmp_path / "source", tmp_path / "target", make_tokenizer(), **options)
    part = kt.data.parallel_dataset(tmp_path / "source", tmp_path / "target", make_tokenizer(), shard=(1, 2), **options)
    assert part.fingerprint == again.fingerprint == make_dataset().fingerprint
    model = make_model()
    fit(model, again, 2, Checkpoints(tmp_path / "cut", every_steps=3), verbose=0)
    assert equal(weights_of(model), weights_of(whole))


@once
@pytest.mark.parametrize("model", [make_model, make_transformer])
def test_checkpoints_that_know_no_data_go_on_with_any(tmp_path, model, monkeypatch):
    """Those of a dataset that says nothing about itself, and those that older versions have written."""
    with monkeypatch.context() as patched:
        patched.setattr(kt.data.ParallelDataset, "fingerprint", None)
        run(model, tmp_path, steps_until_cut=5)
    fit(model(), make_dataset(seed=1), 1, Checkpoints(tmp_path, every_steps=3), verbose=0)
    with pytest.raises(ValueError, match=r"step-00000008 was written: `seed` \(1, now 0\)"):
        fit(model(), make_dataset(), 2, tmp_path, verbose=0)


@once
def test_changed_data_is_refused_in_a_plain_fit(tmp_path):
    run(make_transformer, tmp_path, steps_until_cut=5)
    for data, refused in ((make_dataset(seed=1), True), (make_dataset(), False)):
        model, checkpoints = make_transformer(), Checkpoints(tmp_path, every_steps=3)
        position = checkpoints.restore(model)
        with pytest.raises(ValueError, match=r"the checkpoint .* was written: `seed`") if refused else nullcontext():
            model.fit(data.from_step(position.step), callbacks=[checkpoints], verbose=0)
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.restore(model) == Position(1, 0, 8, 8)
    model.fit(make_dataset(seed=1), callbacks=[Checkpoints(tmp_path / "another")], verbose=0)  # Another training.


@once
def test_another_dataset_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(kt.data.ParallelDataset, "fingerprint", None)
    run(make_model, tmp_path, steps_until_cut=5)
    with pytest.raises(ValueError, match="The interrupted epoch had 8 batches, those of this dataset have 5"):
        fit(make_model(), make_dataset(batch_tokens=128), 3, Checkpoints(tmp_path, every_steps=3), verbose=0)
    with pytest.raises(ValueError, match=r"stopped 3 steps into epoch 1.*Received: list"):
        fit(make_model(), [make_dataset()[0]], 3, tmp_path, verbose=0)


@once
def test_two_callbacks_of_a_kind_keep_apart(tmp_path):
    def make():
        return [EarlyStopping("loss", patience=9, verbose=0), EarlyStopping("accuracy", patience=9, verbose=0)]

    first = make()
    run(make_model, tmp_path, epochs=1, callbacks=first)
    second = make()
    run(make_model, tmp_path, epochs=1, callbacks=second)
    assert [one.best for one in second] == [one.best for one in first]
    assert first[0].best != first[1].best


@once
def test_progress_is_shown_over_the_whole(tmp_path, capsys):
    run(make_model, tmp_path, steps_until_cut=5)
    fit(make_model(), make_dataset(), 2, Checkpoints(tmp_path, every_steps=3), verbose=2)
    shown = capsys.readouterr().out
    assert "Epoch 1/2" in shown and "Epoch 2/2" in shown
    assert "5/5" in shown and "8/8" in shown
