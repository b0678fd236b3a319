"""Logs for TensorBoard, read back as it would read them."""

import keras
import numpy as np

from training.tensorboard import TensorBoardLog


def test_the_numbers_of_each_epoch(tmp_path):
    import tensorflow as tf

    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    history = model.fit(np.ones((4, 1)), np.ones((4, 1)), epochs=3, verbose=0, callbacks=[TensorBoardLog(tmp_path)])
    found = []
    for file in tmp_path.iterdir():
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                assert value.metadata.plugin_data.plugin_name == "scalars"
                found.append((value.tag, event.step, float(tf.make_ndarray(value.tensor))))
    assert found == [("loss", epoch, np.float32(loss)) for epoch, loss in enumerate(history.history["loss"], start=1)]
