"""The log-probability of given translations."""

from keras import ops


def log_probabilities(model, source_ids, target_ids, labels):
    """Returns the log-probability of each token of given targets.

    Args:
        model: A `Transformer`.
        source_ids: Integer tensor `(B, S)`.
        target_ids: Integer tensor `(B, T)`, start and sentence.
        labels: Integer tensor `(B, T)`, sentence and end, padded.

    Returns:
        A float32 tensor `(B, T)`, 0 at padding.
    """
    logits = model({"source_ids": source_ids, "target_ids": target_ids}, training=False)  # (B, T, V)
    chosen = ops.take_along_axis(logits, ops.cast(labels, "int32")[..., None], axis=-1)[..., 0]  # (B, T)
    log_probs = chosen - ops.logsumexp(logits, axis=-1)
    return ops.where(labels == model.config.pad_id, 0.0, log_probs)
