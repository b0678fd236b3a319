"""Encoding short and long sources apart gives what encoding them together does."""

import keras
import numpy as np
import pytest

from keras_transformer import Transformer
from keras_transformer.decoding.length_groups import FEWEST_SENTENCES, encode_by_length

pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only a TensorFlow graph does this")

BATCHES = {
    "no source": [],
    "one": [5],
    "mixed": [3, 40, 1, 17, 18, 2, 9, 33, 30, 4, 4, 4, 8, 25, 1, 12, 6, 7, 39, 21],
    "all alike": [4] * 33,
    "one long, many short": [2] * 40 + [40],
    "one that is all padding": [6] * 10 + [0],
}


@pytest.mark.parametrize("lengths", BATCHES.values(), ids=BATCHES.keys())
def test_equals_encoding_all_at_once(lengths):
    ids = sources_of(lengths, longest=40)
    found, expected = encoded(ids)
    assert found.shape == expected.shape
    is_real = np.arange(40) < np.array(lengths, dtype=int)[:, None]
    np.testing.assert_allclose(found[is_real], expected[is_real], atol=2e-5)


def test_padding_within_a_source_does_not_end_it():
    ids = sources_of([12] * 9, longest=12)
    ids[4, 2:7] = 0
    found, expected = encoded(ids)
    np.testing.assert_allclose(found[ids != 0], expected[ids != 0], atol=2e-5)


def test_short_sources_have_less_computed():
    import tensorflow as tf

    lengths = [2] * FEWEST_SENTENCES * 20 + [40]
    seen = []

    class Watched(Transformer):
        def encode(self, source_ids, source_mask=None, training=None):
            result = super().encode(source_ids, source_mask, training)
            with tf.control_dependencies([tf.py_function(lambda x: seen.append(tuple(x.numpy())), [tf.shape(source_ids)], [])]):
                return tf.identity(result)

    encoded(sources_of(lengths, longest=40), Watched)
    whole, *grouped = seen  # The first is of all at once.
    assert sum(size for size, _ in grouped) == len(lengths)
    assert sum(size * length for size, length in grouped) < 0.2 * whole[0] * whole[1]


def sources_of(lengths: list[int], longest: int) -> np.ndarray:
    """Draws sources with so many tokens, padded with 0."""
    ids = np.random.default_rng(0).integers(4, 50, (len(lengths), longest), dtype="int32")
    return np.where(np.arange(longest) < np.array(lengths, dtype=int)[:, None], ids, 0)


def encoded(ids: np.ndarray, model_class=Transformer) -> tuple[np.ndarray, np.ndarray]:
    """Returns what the graph computes for groups, and what the model does for all at once."""
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    model = model_class.from_preset("tiny", vocabulary_size=50, num_encoder_layers=1)
    expected = model.encode(ids, ids != 0)
    graph = tf.function(lambda ids: encode_by_length(model, ids, ids != 0), autograph=False)
    spec = tf.TensorSpec([None, None], "int32")
    return graph.get_concrete_function(spec)(tf.constant(ids)).numpy(), expected.numpy()
