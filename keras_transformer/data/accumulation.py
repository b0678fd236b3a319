"""Batches that make one update of the optimizer together: how many there are, and how much each of them counts."""

import warnings
from collections.abc import Sequence

import numpy as np

from keras_transformer.data.plan import EpochPlan


def filled_up(plan: EpochPlan, batches_per_update: int) -> EpochPlan:
    """Adds batches of nothing but padding, as few as it takes to make every update of an epoch complete.

    Args:
        plan: The batches of an epoch.
        batches_per_update: How many of them make an update.

    Returns:
        A plan whose length is a multiple of `batches_per_update`. What was added comes last, in the smallest of the shapes.
    """
    missing = -len(plan) % batches_per_update
    if missing == 0:
        return plan
    smallest = min(plan.shapes, key=lambda shape: (shape.rows * (shape.source_length + shape.target_length), shape.rows))
    added = np.arange(len(plan.shapes), len(plan.shapes) + missing, dtype=plan.sequence.dtype)
    return EpochPlan(
        order=plan.order,
        starts=np.append(plan.starts, np.full(missing, plan.starts[-1])),
        shapes=[*plan.shapes, *[smallest] * missing],
        sequence=np.append(plan.sequence, added),
    )


def weights_in_update(shape: tuple[int, int], tokens: Sequence[int], position: int) -> np.ndarray:
    """Returns what the loss of each token of a batch is multiplied by.

    Keras averages the gradients of the N batches of an update, and the loss of a batch is an average over its own tokens. With
    the weight `N tokens[i] / sum(tokens)` for all tokens of batch i, each token of the update counts the same.

    Args:
        shape: Rows and length of the labels.
        tokens: Number of real tokens in each batch of the update.
        position: Which of them it is.

    Returns:
        Float32 weights of that shape, all equal.
    """
    return np.full(shape, len(tokens) * tokens[position] / sum(tokens), np.float32)


def check_accumulation(model, batches_per_update: int):
    """Raises a `ValueError` if a model's optimizer makes an update of another number of batches than a dataset.

    Args:
        model: A compiled Keras model.
        batches_per_update: Number of batches that the dataset has weighted to make an update together.
    """
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)  # With loss scaling, one is around the other.
    steps = getattr(optimizer, "gradient_accumulation_steps", None) or 1
    if steps == batches_per_update:
        return
    message = (
        "Dataset and optimizer should agree on how many batches make an update. Make the dataset with "
        f"`batches_per_update={steps}`, or the optimizer with `gradient_accumulation_steps={batches_per_update}` "
        f"(`paper_adam`: `batches_per_update={batches_per_update}`). "
        f"Received: batches_per_update={batches_per_update}, gradient_accumulation_steps={steps}"
    )
    if batches_per_update > 1:
        raise ValueError(message)
    warnings.warn(f"Batches with few tokens will count as much as those with many. {message}", stacklevel=2)


def check_steps(steps_per_epoch: int | None, batches_per_update: int):
    """Raises a `ValueError` if an epoch would end within an update."""
    if steps_per_epoch is not None and steps_per_epoch % batches_per_update:
        raise ValueError(
            "`steps_per_epoch` must be a multiple of the dataset's `batches_per_update`. "
            f"Received: steps_per_epoch={steps_per_epoch}, batches_per_update={batches_per_update}"
        )
