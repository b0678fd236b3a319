"""Times the steps of `model.fit`, for every contender that is a Keras model."""

import time

import keras

from benchmarks.contenders.runner import Runner
from benchmarks.random_batches import random_batch
from benchmarks.shapes import Shape


class StepTimer(keras.callbacks.Callback):
    """Notes how long each batch took, from its beginning until its loss is known."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def on_train_batch_begin(self, batch, logs=None):
        self.started = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        float(logs["loss"])  # Waits for backends that compute asynchronously.
        self.seconds.append(time.perf_counter() - self.started)


def make_fit_runner(model: keras.Model, optimizer, loss, shape: Shape, mode: str) -> Runner:
    """Compiles a model from `{"source_ids", "target_ids"}` to logits and returns a runner of its training steps."""
    model.compile(
        optimizer=optimizer,
        loss=loss,
        jit_compile=mode == "xla",
    )
    batches = endless_batches(shape)

    def run(steps: int) -> list[float]:
        timer = StepTimer()
        model.fit(batches, steps_per_epoch=steps, verbose=0, callbacks=[timer])
        return timer.seconds

    return Runner(run, num_parameters=model.count_params())


def endless_batches(shape: Shape):
    """Returns the batch again and again, in the form that costs the backend least."""
    source_ids, target_ids, labels = random_batch(shape)
    batch = {"source_ids": source_ids, "target_ids": target_ids}, labels
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.data.Dataset.from_tensors(batch).repeat()
    return repeat(batch)


def repeat(batch):
    """Yields the same batch without end."""
    while True:
        yield batch
