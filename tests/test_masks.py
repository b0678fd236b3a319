import numpy as np
import pytest

from keras_transformer import masks
from tests.gradients import numpy_of


def test_padding_mask_is_true_at_real_tokens():
    mask = masks.padding_mask(np.array([[5, 6, 0], [0, 7, 0]]))
    assert numpy_of(mask).tolist() == [[True, True, False], [False, True, False]]


def test_padding_mask_takes_any_pad_id():
    assert numpy_of(masks.padding_mask(np.array([5, 0, 9]), pad_id=9)).tolist() == [True, True, False]


def test_causal_mask_of_a_full_pass_is_a_lower_triangle():
    mask = numpy_of(masks.causal_mask(np.arange(3), np.arange(3)))
    assert mask.tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_causal_mask_of_a_cached_step_is_a_row_of_the_full_one():
    full = numpy_of(masks.causal_mask(np.arange(6), np.arange(6)))
    for position in range(6):
        step = numpy_of(masks.causal_mask(np.array([position]), np.arange(6)))
        assert step.tolist() == full[position : position + 1].tolist()


def test_causal_mask_takes_positions_of_each_sentence():
    mask = numpy_of(masks.causal_mask(np.array([[0], [2]]), np.arange(3)))
    assert mask.tolist() == [[[True, False, False]], [[True, True, True]]]


def test_combined_masks_are_a_logical_and_of_those_given():
    rows, columns = np.array([[True], [False]]), np.array([[True, False]])
    assert numpy_of(masks.combine_masks(rows, None, columns)).tolist() == [[True, False], [False, False]]


def test_nothing_to_combine_is_no_mask():
    assert masks.combine_masks(None, None) is None


def test_integers_are_taken_for_booleans_and_floats_are_refused():
    assert numpy_of(masks.combine_masks(np.array([1, 0]), np.array([True, True]))).tolist() == [True, False]
    with pytest.raises(ValueError, match=r"`mask > 0`.*`mask >= 0`.* Received: mask of dtype float16"):
        masks.combine_masks(np.array([0.0, -np.inf], "float16"))
