"""The padding mask as a node of a functional model."""

import keras

from keras_transformer.masks import padding_mask


@keras.saving.register_keras_serializable(package="keras_transformer")
class PaddingMask(keras.layers.Layer):
    """Tells real tokens from padding: `keras_transformer.masks.padding_mask` with a name in the model's summary.

    Args:
        pad_id: The id that fills the end of short sentences.
        **kwargs: `name` of every Keras layer.

    Call arguments:
        ids: Integer tensor `(B, S)`.

    Returns:
        A boolean tensor `(B, S)`, True where a real token stands.

    Masking:
        The mask is the output; none is attached to it.

    Example:

    >>> PaddingMask(pad_id=0)(keras.ops.array([[5, 6, 0]])).shape
    (1, 3)
    """

    def __init__(self, pad_id: int = 0, **kwargs):
        super().__init__(**kwargs)
        self.pad_id = pad_id
        self.autocast = False  # Float ids would be rounded to the dtype policy first.

    def call(self, ids):
        return padding_mask(ids, self.pad_id)

    def compute_output_spec(self, ids):
        return keras.KerasTensor(ids.shape, dtype="bool")

    def get_config(self):
        return {**super().get_config(), "pad_id": self.pad_id}
