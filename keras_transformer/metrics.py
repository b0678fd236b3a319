"""Metrics of the real tokens of an epoch, exact whatever the batches and however many the tokens."""

import keras
from keras import ops

from keras_transformer.losses import negative_log_likelihood


class TokenMean(keras.metrics.Metric):
    """The mean of a value over all real tokens; subclasses say of which value.

    Sums and counts are kept in pairs of float32 numbers (see `added`). A single one could not count beyond 2^24 tokens, and JAX
    has no wider type unless it is told to.

    Args:
        pad_id: The label of positions that are not tokens.
        name: Name of the metric.
    """

    def __init__(self, pad_id: int, name: str):
        super().__init__(name=name, dtype="float32")
        self.pad_id = pad_id
        self.total = self.add_variable((2,), "zeros", dtype="float32", name="total")
        self.count = self.add_variable((2,), "zeros", dtype="float32", name="count")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Takes a batch into account: labels `(B, T)` and logits `(B, T, V)`; weights have no influence."""
        labels = ops.cast(y_true, "int32")
        is_real = labels != self.pad_id
        values = self.values(ops.where(is_real, labels, 0), ops.cast(y_pred, "float32"))
        self.total.assign(added(self.total, ops.sum(ops.where(is_real, values, 0.0))))
        self.count.assign(added(self.count, ops.sum(ops.cast(is_real, "float32"))))

    def values(self, labels, logits):
        """Returns the value of each token, float32 `(B, T)`."""
        raise NotImplementedError

    def mean(self):
        """Returns the mean of all values so far; 0 before the first one."""
        return ops.sum(self.total) / ops.maximum(ops.sum(self.count), 1.0)

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {"pad_id": self.pad_id, "name": self.name}


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenAccuracy(TokenMean):
    """The share of real tokens whose label has the largest logit.

    Args:
        pad_id: The label of positions that are not tokens.
        name: Name of the metric.

    Call arguments:
        y_true: Integer tensor `(B, T)` of labels.
        y_pred: Float tensor `(B, T, V)` of logits.
        sample_weight: Has no influence.

    Returns:
        A float32 scalar: the share in all batches since the last `reset_state`, 0 if there was no token.

    Example:

    >>> accuracy = TokenAccuracy(pad_id=0)
    >>> logits = keras.ops.one_hot([[3, 1, 2, 2]], 4)
    >>> print(f"{accuracy([[3, 1, 1, 0]], logits):.4f}")  # The last token is padding.
    0.6667
    """

    def __init__(self, pad_id: int = 0, name: str = "token_accuracy"):
        super().__init__(pad_id, name)

    def values(self, labels, logits):
        """Returns 1 where the label has the largest logit."""
        return ops.cast(ops.cast(ops.argmax(logits, axis=-1), "int32") == labels, "float32")

    def result(self):
        """Returns the share so far."""
        return self.mean()


@keras.saving.register_keras_serializable(package="keras_transformer")
class Perplexity(TokenMean):
    """The exponential of the mean negative log-probability of real tokens, labels not smoothed.

    Args:
        pad_id: The label of positions that are not tokens.
        name: Name of the metric.

    Call arguments:
        y_true: Integer tensor `(B, T)` of labels.
        y_pred: Float tensor `(B, T, V)` of logits.
        sample_weight: Has no influence.

    Returns:
        A float32 scalar: the perplexity of all batches since the last `reset_state`, 1 if there was no token.

    Example:

    >>> perplexity = Perplexity(pad_id=0)
    >>> print(f"{perplexity([[3, 1, 0]], keras.ops.zeros((1, 3, 8))):.1f}")  # All eight equally likely.
    8.0
    """

    def __init__(self, pad_id: int = 0, name: str = "perplexity"):
        super().__init__(pad_id, name)

    def values(self, labels, logits):
        """Returns minus the log-probability of each label."""
        return negative_log_likelihood(labels, logits)

    def result(self):
        """Returns the perplexity so far."""
        return ops.exp(self.mean())


def added(pair, value):
    """Adds a number to a sum that is kept as two numbers: the nearest float32 number, and what it leaves out.

    The two hold about 48 bits. What an addition of floats rounds away can be computed (D. Knuth, The Art of Computer
    Programming, volume 2, section 4.2.2); it is collected in the second number.

    Args:
        pair: Float32 tensor `(2,)`.
        value: Float32 scalar.

    Returns:
        A float32 tensor `(2,)`.
    """
    total = pair[0] + value
    taken = total - pair[0]
    lost = (pair[0] - (total - taken)) + (value - taken)
    rest = pair[1] + lost
    nearest = total + rest
    return ops.stack([nearest, rest - (nearest - total)])
