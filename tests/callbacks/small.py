"""A dataset, a model with dropout and callbacks that are small enough to train in every test."""

import functools

import keras
import numpy as np
import pytest

import keras_transformer as kt

COMPILED = keras.backend.backend() == "jax"
once = pytest.mark.once


@functools.cache
def make_tokenizer():
    corpus = kt.data.reverse(num_pairs=100)
    return kt.Tokenizer.train(iter([*corpus.train.source, *corpus.train.target]), vocabulary_size=275)


def make_dataset(batch_tokens: int = 64, **options):
    """Makes eight batches an epoch, by default."""
    pairs = kt.data.reverse(num_pairs=50, max_length=5).train
    options = {"num_shapes": 1, "progress": False, **options}
    return kt.data.parallel_dataset(pairs.source, pairs.target, make_tokenizer(), batch_tokens, **options)


def make_model(width: int = 4, optimizer=None, metrics=("accuracy",)) -> keras.Model:
    """Makes a model that takes what a Transformer takes, always with the same weights."""
    keras.utils.set_random_seed(5)
    ids = {name: keras.Input((None,), name=name, dtype="int32") for name in ("source_ids", "target_ids")}
    source = keras.layers.Embedding(275, width, name="source")(ids["source_ids"])
    target = keras.layers.Embedding(275, width, name="target")(ids["target_ids"])
    both = target + keras.ops.mean(source, axis=1, keepdims=True)
    logits = keras.layers.Dense(275, name="logits")(keras.layers.Dropout(0.3)(both))
    model = keras.Model(ids, logits)
    loss = kt.losses.SmoothedCrossEntropy(0.1)
    model.compile(optimizer or keras.optimizers.Adam(0.01), loss, metrics=list(metrics), jit_compile=COMPILED)
    return model


def make_transformer(**options) -> kt.Transformer:
    keras.utils.set_random_seed(5)
    config = kt.TransformerConfig(
        vocabulary_size=make_tokenizer().vocabulary_size,
        model_dim=8,
        feed_forward_dim=16,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
    model = kt.Transformer(config)
    loss = kt.losses.SmoothedCrossEntropy(0.1)
    model.compile(**{"optimizer": "adam", "loss": loss, "jit_compile": COMPILED, **options})
    return model


class PowerCutError(Exception):
    """What ends a training in the middle."""


class CutAfter(keras.callbacks.Callback):
    """Ends a training after some steps, counted over all epochs of this `fit`."""

    def __init__(self, steps: int):
        super().__init__()
        self.steps = steps

    def on_train_batch_end(self, batch, logs=None):
        self.steps -= 1
        if self.steps == 0:
            raise PowerCutError


class Notes(keras.callbacks.Callback):
    """Notes which methods were called, and the weights at the end of each epoch."""

    def __init__(self):
        super().__init__()
        self.calls, self.weights = [], []

    def on_train_begin(self, logs=None):
        self.calls.append("train begins")

    def on_epoch_begin(self, epoch, logs=None):
        self.calls.append(f"epoch {epoch} begins")

    def on_epoch_end(self, epoch, logs=None):
        self.calls.append(f"epoch {epoch} ends")
        self.weights.append(weights_of(self.model))

    def on_train_end(self, logs=None):
        self.calls.append("train ends")


def weights_of(model) -> list[np.ndarray]:
    return [np.array(array) for array in model.get_weights()]


def equal(arrays, others) -> bool:
    return len(arrays) == len(others) and all(np.array_equal(*pair) for pair in zip(arrays, others, strict=True))
