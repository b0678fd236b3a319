"""Numbers of each epoch for TensorBoard, from any backend."""

import os

import keras


class TensorBoardLog(keras.callbacks.Callback):
    """Writes the logs of each epoch into files that TensorBoard shows: `tensorboard --logdir runs`.

    Keras' own callback needs the package `tensorboard` in order to write. This one writes with TensorFlow alone, whatever the
    backend; only to look at the files takes `pip install tensorboard`.

    Args:
        directory: Where the files go.
    """

    def __init__(self, directory: str | os.PathLike):
        super().__init__()
        self.directory = str(directory)
        self._writer = None

    def on_train_begin(self, logs=None):
        """Is called by Keras."""
        import tensorflow as tf  # noqa: TID251

        if keras.backend.backend() != "tensorflow":
            tf.config.set_visible_devices([], "GPU")  # The memory of GPUs belongs to the backend.
        self._writer = tf.summary.create_file_writer(self.directory)

    def on_epoch_end(self, epoch, logs=None):
        """Is called by Keras."""
        import tensorflow as tf  # noqa: TID251

        metadata = tf.compat.v1.SummaryMetadata(plugin_data={"plugin_name": "scalars"})
        with self._writer.as_default():
            for name, value in (logs or {}).items():
                tf.summary.write(name, tf.constant(float(value)), step=epoch + 1, metadata=metadata)
        self._writer.flush()

    def on_train_end(self, logs=None):
        """Is called by Keras."""
        self._writer.close()
