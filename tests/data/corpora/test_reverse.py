import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.data.corpora import reverse


@given(num_pairs=st.integers(10, 300), seed=st.integers(0, 2**32), min_length=st.integers(3, 6), more=st.integers(0, 4))
def test_targets_are_reversed_and_splits_disjoint(num_pairs, seed, min_length, more):
    corpus = reverse(num_pairs, seed, min_length, min_length + more)
    pairs = [pair for split in corpus.splits.values() for pair in split]
    assert len(pairs) == len(set(pairs)) == num_pairs
    for source, target in pairs:
        digits = source.split(" ")
        assert target.split(" ") == digits[::-1]
        assert all(len(digit) == 1 and digit.isdecimal() for digit in digits)
        assert min_length <= len(digits) <= min_length + more
    assert len(corpus.validation) == len(corpus.test) == num_pairs // 10


def test_is_a_function_of_the_seed():
    assert reverse(100, seed=1).splits == reverse(100, seed=1).splits
    assert reverse(100, seed=1).train != reverse(100, seed=2).train


def test_can_use_up_all_strings():
    corpus = reverse(110, min_length=1, max_length=2)
    assert {source for split in corpus.splits.values() for source in split.source} == {
        *(str(n) for n in range(10)),
        *(f"{a} {b}" for a in range(10) for b in range(10)),
    }


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_pairs": 111, "min_length": 1, "max_length": 2}, "There are 110 strings.*num_pairs=111"),
        ({"num_pairs": 9}, "between 10 and.*num_pairs=9"),
        ({"min_length": 0}, "positive.*min_length=0"),
        ({"min_length": 5, "max_length": 4}, "min_length=5, max_length=4"),
    ],
)
def test_impossible_wishes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        reverse(**arguments)
