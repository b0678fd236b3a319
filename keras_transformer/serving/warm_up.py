"""Requests that a server answers before it takes any others. Imported when it is first needed.

A server reads `assets.extra/tf_serving_warmup_requests` in a version's folder: records of the message `PredictionLog`. Its
fields are written here by number, for the package that knows them by name is not needed otherwise.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import tensorflow as tf  # noqa: TID251

from keras_transformer.serving.local.warm_up_requests import FILE, MOST_REQUESTS
from keras_transformer.serving.runtime import field

LENGTHS = (4, 16, 48)  # Of sources, in words.


def write_warm_up(folder: Path, model_name: str, batch_sizes: Sequence[int], words: Sequence[str], options: dict):
    """Writes requests for every batch size and several lengths, and a few for each signature.

    Args:
        folder: The folder of the version.
        model_name: The model's name on the server.
        batch_sizes: The batch sizes that the server allows.
        words: Words of the source language.
        options: `beam_size`, `length_penalty` and `max_length` for the signature that takes them.
    """
    path = Path(folder) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in list(requests(batch_sizes, words, options))[:MOST_REQUESTS]:
            writer.write(prediction_log(model_name, signature, inputs))


def requests(batch_sizes: Sequence[int], words: Sequence[str], options: dict) -> Iterator[tuple[str, dict]]:
    """Yields signatures and their inputs."""
    for size in batch_sizes:
        for length in LENGTHS:
            yield "serving_default", {"text": [text_of(words, length)] * size}
    text = text_of(words, LENGTHS[0])
    for size in (batch_sizes[0], batch_sizes[-1]):
        yield "translate_with_options", {"text": [text] * size, **{name: [value] * size for name, value in options.items()}}
        yield "nbest", {"text": [text] * size}
        yield "score", {"source": [text] * size, "target": [text] * size}
        yield "align", {"text": [text] * size}


def text_of(words: Sequence[str], length: int) -> str:
    """Returns a text of this many words."""
    return " ".join(words[number % len(words)] for number in range(length))


def prediction_log(model_name: str, signature: str, inputs: dict) -> bytes:
    """Returns a `PredictionLog` of a request, as it is stored."""
    model_spec = field(1, model_name.encode()) + field(3, signature.encode())
    request = field(1, model_spec)
    for name, values in inputs.items():
        request += field(2, field(1, name.encode()) + field(2, tensor_proto(values).SerializeToString()))
    return field(6, field(1, request))  # PredictionLog.predict_log, PredictLog.request


def tensor_proto(values: list):
    """Returns values as a tensor of the type that signatures have for them."""
    dtype = {str: tf.string, int: tf.int32, float: tf.float32}[type(values[0])]
    return tf.make_tensor_proto(values, dtype=dtype)
