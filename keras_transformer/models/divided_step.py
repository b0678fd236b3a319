"""A training step whose parts of a batch are computed at the same time, on TensorFlow. Imported when it is first needed."""

import itertools

import keras
import tensorflow as tf  # noqa: TID251

from keras_transformer.threads import num_parts


def parts_of_step(model: keras.Model) -> int:
    """Returns into how many parts a model's training steps are divided.

    One, unless operations have one thread (see `parallel_sentences`), the step is a graph that is neither compiled nor
    distributed, and the loss tells how much a part of a batch counts.
    """
    is_plain_graph = not (tf.executing_eagerly() or model.jit_compile or tf.distribute.has_strategy())
    return num_parts() if is_plain_graph and getattr(model.loss, "share_of_part", None) is not None else 1


def divided_train_step(model: keras.Model, data, count: int) -> dict:
    """Does what Keras' own step does, with the parts of a batch side by side.

    Each part has its own way through the model and back, and nothing in one waits for the other; their losses, each by its
    share, add up to the loss of the batch.

    Args:
        model: A compiled model.
        data: A batch, as `fit` has it.
        count: The number of parts.

    Returns:
        The logs.
    """
    parts = [keras.utils.unpack_x_y_sample_weight(part) for part in divided(data, count)]
    _, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
    with tf.GradientTape() as tape:
        outputs, losses = [], []
        for x, y, sample_weight in parts:
            outputs.append(model(x, training=True))
            loss = model.compute_loss(x, y, outputs[-1], sample_weight, training=True)
            losses.append(loss * model.loss.share_of_part(y, labels))
        loss = tf.add_n(losses)
        scaled_loss = model.optimizer.scale_loss(loss)
    gradients = tape.gradient(scaled_loss, model.trainable_weights)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_weights, strict=True))
    loss_tracker = next(metric for metric in model.metrics if metric.name == "loss")
    loss_tracker.update_state(loss, sample_weight=tf.shape(labels)[0])
    return [model.compute_metrics(x, y, output, weight) for (x, y, weight), output in zip(parts, outputs, strict=True)][-1]


def divided(data, count: int) -> list:
    """Divides a batch into parts, whose sizes differ by one at most."""
    size = tf.shape(keras.tree.flatten(data)[0])[0]
    bounds = [size * number // count for number in range(count + 1)]
    return [
        keras.tree.map_structure(lambda x, begin=begin, end=end: x[begin:end], data, none_is_leaf=False)
        for begin, end in itertools.pairwise(bounds)
    ]
