"""Losses: cross-entropy with smoothed labels, averaged over real tokens, and with the agreement of two passes."""

import math

import keras
from keras import ops

SMOOTHED_OVER = ("all", "others")


@keras.saving.register_keras_serializable(package="keras_transformer")
class SmoothedCrossEntropy(keras.losses.Loss):
    """Cross-entropy of logits with smoothed labels: the sum over real tokens, divided by their number (section 5.4).

    A label y stands for a distribution that gives most of the mass to y and a little to every entry of the vocabulary:

        q(j) = (1 - e) [j = y] + e / V                         over="all"
        q(j) = (1 - e) [j = y] + e / (V - 1) [j != y]          over="others"
        loss = - sum over j of q(j) log p(j),  p = softmax(logits)

    It is computed from the logits with sums alone: neither one-hot labels nor a table of log-probabilities is made, and the
    gradient is the only new tensor of the logits' size (on TensorFlow, it and a boolean one). All of it is float32, under every
    dtype policy.

    Padding counts for nothing: a batch has the same loss whatever it is padded to, and a batch of nothing but padding has the
    loss 0. On TensorFlow under `tf.distribute`, the tokens of all replicas are one batch.

    Sample weights multiply the losses of tokens but do not enter the divisor. `parallel_dataset(..., batches_per_update=N)`
    makes weights with which N batches, accumulated, have the gradient of the one batch that they are together.

    Args:
        smoothing: The share e of the mass that is spread out, at least 0 and below 1.
        pad_id: The label of positions that are not tokens.
        over: Whether the mass is spread over `"all"` entries of the vocabulary or over the `"others"`, all but the right one.
        from_floor: Whether to subtract the least loss that smoothed labels leave possible, their entropy, so that a perfect
            model has the loss 0. Gradients stay the same.
        name: Name of the loss.

    Call arguments:
        y_true: Integer tensor `(B, T)` of labels, or of any other shape.
        y_pred: Float tensor `(B, T, V)` of logits.
        sample_weight: Float tensor that broadcasts to `(B, T)`, or `(B,)`, a weight for each row.

    Returns:
        A float32 scalar.

    Example:

    >>> logits = keras.ops.array([[[0.0, 2.0, 0.0], [0.0, 0.0, 5.0]]])
    >>> loss = SmoothedCrossEntropy(smoothing=0.1, pad_id=0)
    >>> print(f"{loss(keras.ops.array([[1, 2]]), logits):.4f}")
    0.3598
    >>> print(f"{loss(keras.ops.array([[1, 0]]), logits):.4f}")  # The second token is padding.
    0.3729
    """

    def __init__(
        self,
        smoothing: float = 0.1,
        pad_id: int = 0,
        over: str = "all",
        from_floor: bool = False,
        name: str = "smoothed_cross_entropy",
    ):
        super().__init__(name=name, dtype="float32")
        if not 0 <= smoothing < 1:
            raise ValueError(f"`smoothing` must be at least 0 and below 1. Received: smoothing={smoothing}")
        if over not in SMOOTHED_OVER:
            raise ValueError(f"`over` must be one of {SMOOTHED_OVER}. Received: over={over!r}")
        self.smoothing = smoothing
        self.pad_id = pad_id
        self.over = over
        self.from_floor = from_floor

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Returns the mean loss of the real tokens."""
        with keras.name_scope(self.name):
            labels = ops.cast(y_true, "int32")
            is_real = labels != self.pad_id
            losses = ops.where(is_real, self.call(ops.where(is_real, labels, 0), y_pred), 0.0)  # (B, T)
            if sample_weight is not None:
                losses = losses * aligned_weight(sample_weight, len(losses.shape))
            return ops.sum(losses) / ops.maximum(number_in_all_replicas(is_real), 1.0)

    def call(self, y_true, y_pred):
        """Returns the loss of each token, `(B, T)`, padding not told apart."""
        labels, logits = ops.cast(y_true, "int32"), ops.cast(y_pred, "float32")
        check_shapes(labels, logits)
        share = self.spread_share(logits.shape[-1])
        losses = token_losses(labels, logits, share)
        return losses - entropy_of_labels(logits.shape[-1], share) if self.from_floor else losses

    def share_of_part(self, part, whole):
        """Returns how much of a batch's loss is that of a part of it: its share of the real tokens, a float32 scalar.

        Args:
            part: The labels of the part.
            whole: The labels of the batch.
        """
        numbers = [ops.sum(ops.cast(ops.cast(labels, "int32") != self.pad_id, "float32")) for labels in (part, whole)]
        return numbers[0] / ops.maximum(numbers[1], 1.0)

    def spread_share(self, vocabulary_size: int) -> float:
        """Returns which share of the mass is spread evenly over all entries of a vocabulary, the right one included."""
        if self.over == "all":
            return self.smoothing
        return self.smoothing * vocabulary_size / (vocabulary_size - 1) if vocabulary_size > 1 else 0.0

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {
            "smoothing": self.smoothing,
            "pad_id": self.pad_id,
            "over": self.over,
            "from_floor": self.from_floor,
            "name": self.name,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class RDropCrossEntropy(SmoothedCrossEntropy):
    """`SmoothedCrossEntropy` that asks two passes through dropout to agree (R-Drop, arXiv 2106.14448).

    Each pair stands twice in a batch, a copy right behind the other (`parallel_dataset(..., copies=2)`). Dropout hides another
    part of the model from each; their predictions p and q are drawn towards each other:

        loss = (CE(p) + CE(q)) / 2 + agreement / 4 (KL(p || q) + KL(q || p))

    which is half of the paper's loss with alpha = `agreement`. Copies are known by their labels: a row that is unlike its
    neighbour, as those of a validation set are, counts with its cross-entropy alone.

    Args:
        agreement: How much the two have to agree; 5 in the paper.
        smoothing, pad_id, over, from_floor, name: As in `SmoothedCrossEntropy`.

    Example:

    >>> logits = keras.ops.array([[[0.0, 2.0, 0.0]], [[0.0, 0.0, 0.0]]])
    >>> labels = keras.ops.array([[1], [1]])
    >>> print(f"{SmoothedCrossEntropy()(labels, logits):.4f}, {RDropCrossEntropy(agreement=5.0)(labels, logits):.4f}")
    0.7357, 1.8699
    """

    share_of_part = None  # A batch is not divided: copies might be parted.

    def __init__(
        self,
        agreement: float = 5.0,
        smoothing: float = 0.1,
        pad_id: int = 0,
        over: str = "all",
        from_floor: bool = False,
        name: str = "r_drop_cross_entropy",
    ):
        super().__init__(smoothing, pad_id, over, from_floor, name)
        if agreement < 0:
            raise ValueError(f"`agreement` must not be negative. Received: agreement={agreement}")
        self.agreement = agreement

    def call(self, y_true, y_pred):
        """Returns the loss of each token, `(B, T)`, padding not told apart."""
        labels, logits = ops.cast(y_true, "int32"), ops.cast(y_pred, "float32")
        if len(labels.shape) != 2:
            raise ValueError(f"Labels must be of shape (B, T). Received: y_true.shape={tuple(labels.shape)}")
        return super().call(labels, logits) + self.agreement / 4 * divergence_of_copies(labels, logits)

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {"agreement": self.agreement, **super().get_config()}


def divergence_of_copies(labels, logits):
    """Returns KL(p || q) + KL(q || p) of each token and its copy in the neighbouring row, and 0 for rows without one.

    The normalization cancels out: it is the sum over all entries of (p - q) times the difference of their logits.

    Args:
        labels: Integer tensor `(B, T)`.
        logits: Float32 tensor `(B, T, V)`.

    Returns:
        A float32 tensor `(B, T)`, in which rows 2 i and 2 i + 1 are equal.
    """
    paired = ops.shape(logits)[0] // 2 * 2
    first, second = logits[0:paired:2], logits[1:paired:2]  # (B / 2, T, V)
    is_copy = ops.all(labels[0:paired:2] == labels[1:paired:2], axis=-1, keepdims=True)  # (B / 2, 1)
    divergence = ops.sum((ops.softmax(first) - ops.softmax(second)) * (first - second), axis=-1)
    divergence = ops.repeat(ops.where(is_copy, divergence, 0.0), 2, axis=0)
    return ops.concatenate([divergence, ops.zeros_like(logits[paired:, :, 0])], axis=0)  # (B, T)


def token_losses(labels, logits, spread_share: float):
    """Returns the cross-entropy of each token, from labels `(B, T)` and float32 logits `(B, T, V)`.

    Args:
        labels: Integer tensor `(B, T)`.
        logits: Float32 tensor `(B, T, V)`.
        spread_share: Which share of the mass every entry gets an equal part of; the rest is the label's alone.

    Returns:
        A float32 tensor `(B, T)`.
    """
    if keras.backend.backend() == "jax":  # Its compiler finds by itself a gradient that needs no more memory.
        return smoothed_losses(labels, logits, spread_share, *largest_and_total(logits))

    fixed = ops.stop_gradient(logits)
    largest, total = largest_and_total(fixed)

    @ops.custom_gradient
    def with_lean_gradient(logits):
        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return gradient_of_logits(labels, fixed, spread_share, largest, total, upstream[..., None])

        return smoothed_losses(labels, logits, spread_share, largest, total), gradient

    return with_lean_gradient(logits)


def smoothed_losses(labels, logits, spread_share: float, largest, total):
    """Returns (1 - s) times the negative log-probability of the label, plus s times the mean over all entries."""
    log_total = ops.log(total)
    of_label = log_total - (logits_of(labels, logits) - largest)  # (B, T, 1)
    of_all = log_total - (ops.mean(logits, axis=-1, keepdims=True) - largest)  # (B, T, 1)
    return ops.squeeze((1 - spread_share) * of_label + spread_share * of_all, axis=-1)  # (B, T)


def gradient_of_logits(labels, logits, spread_share: float, largest, total, upstream):
    """Returns upstream (p - q), in no more than one tensor of the logits' size and one of booleans.

    Args:
        labels: Integer tensor `(B, T)`.
        logits: Float32 tensor `(B, T, V)`.
        spread_share: As in `token_losses`.
        largest, total: What `largest_and_total` returned.
        upstream: Float32 tensor `(B, T, 1)`, the gradient of each token's loss.

    Returns:
        A float32 tensor `(B, T, V)`.
    """
    spread = upstream * (spread_share / logits.shape[-1])
    of_label = (spread_share - 1) * upstream
    if keras.backend.backend() == "torch":
        gradient = exp_of_difference(logits, largest).mul_(upstream / total).sub_(spread)  # (B, T, V)
        return gradient.scatter_add_(-1, labels[..., None].long(), of_label)
    import tensorflow as tf  # noqa: TID251

    probabilities = ops.softmax(logits)
    with tf.control_dependencies([total]):  # Now that it has been read off the probabilities, they can be overwritten.
        gradient = probabilities * upstream - spread
    at_label = exp_of_difference(logits_of(labels, logits), largest) * (upstream / total) - spread + of_label
    return ops.where(ops.arange(logits.shape[-1], dtype="int32") == labels[..., None], at_label, gradient)


def largest_and_total(logits):
    """Returns the largest logit and the sum of exp(logit - largest), both `(B, T, 1)`.

    On TensorFlow, whose graphs compute equal things once, the sum is read off the probabilities, the largest of which is its
    reciprocal: so a loss, its gradient and `metrics.Perplexity` share one pass over the vocabulary.
    """
    largest = ops.stop_gradient(ops.max(logits, axis=-1, keepdims=True))
    if keras.backend.backend() == "tensorflow":
        return largest, 1 / ops.max(ops.softmax(logits), axis=-1, keepdims=True)
    return largest, ops.sum(exp_of_difference(logits, largest), axis=-1, keepdims=True)


def exp_of_difference(values, subtracted):
    """Returns exp(values - subtracted) without a second tensor of that size, which JAX avoids by itself."""
    difference = values - subtracted
    return difference.exp_() if keras.backend.backend() == "torch" else ops.exp(difference)


def logits_of(labels, logits):
    """Returns the logit of each label, `(B, T, 1)`."""
    return ops.take_along_axis(logits, labels[..., None], axis=-1)


def negative_log_likelihood(labels, logits):
    """Returns minus the log-probability of each label, `(B, T)`, from labels `(B, T)` and float32 logits `(B, T, V)`."""
    logits = ops.stop_gradient(logits)  # As in `token_losses`, and so the same to TensorFlow's graphs.
    return smoothed_losses(labels, logits, 0.0, *largest_and_total(logits))


def entropy_of_labels(vocabulary_size: int, spread_share: float) -> float:
    """Returns the entropy of a smoothed label: the least cross-entropy with it."""
    wrong = spread_share / vocabulary_size
    right = 1 - spread_share + wrong
    return -sum(count * mass * math.log(mass) for count, mass in ((1, right), (vocabulary_size - 1, wrong)) if mass > 0)


def aligned_weight(sample_weight, rank: int):
    """Returns weights with as many axes as the tokens have; missing ones are added behind."""
    weight = ops.cast(sample_weight, "float32")
    return ops.reshape(weight, (*ops.shape(weight), *[1] * (rank - len(weight.shape))))


def number_in_all_replicas(is_real):
    """Counts real tokens, on TensorFlow those of all replicas, as a float32 scalar."""
    number = ops.sum(ops.cast(is_real, "float32"))
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf  # noqa: TID251

        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            number = context.all_reduce(tf.distribute.ReduceOp.SUM, number)
    return number


def check_shapes(labels, logits):
    """Raises a `ValueError` unless there is a row of logits for each label."""
    known = zip(labels.shape, logits.shape[:-1], strict=False)
    if len(labels.shape) != len(logits.shape) - 1 or any(a != b for a, b in known if None not in (a, b)):
        raise ValueError(
            "Labels must be integers of shape (B, T), and logits of shape (B, T, V). "
            f"Received: y_true.shape={tuple(labels.shape)}, y_pred.shape={tuple(logits.shape)}"
        )
