"""Where two files that should be parallel part company."""

import numpy as np


def first_line_out_of_step(source_lengths, target_lengths) -> int:
    """Guesses where lines are missing from one of two parallel texts.

    Translations are about as long as what they translate. Up to the place looked for, line i of one text fits line i of the
    other; after it, it fits the line that is as many further on as lines are missing. The guess is the place at which the
    lengths fit best on both sides of it.

    Args:
        source_lengths: Number of characters of each source line.
        target_lengths: Number of characters of each target line, more or fewer lines.

    Returns:
        The number of the line, counted from 0.
    """
    longer, shorter = (np.log1p(np.asarray(side, np.float64)) for side in (source_lengths, target_lengths))
    if len(longer) < len(shorter):
        longer, shorter = shorter, longer
    if len(shorter) == 0:
        return 0
    missing = len(longer) - len(shorter)
    usual = np.median(longer) - np.median(shorter)  # One language may need more letters than the other.
    before = np.abs(longer[: len(shorter)] - shorter - usual)
    after = np.abs(longer[missing:] - shorter - usual)
    cost = np.concatenate([[0.0], np.cumsum(before)]) + np.concatenate([np.cumsum(after[::-1])[::-1], [0.0]])
    return int(np.argmin(cost))
