"""Options that cannot be meant are refused with a reason; all others are plain, and can be looked up and stored."""

import dataclasses
import json

import numpy as np
import pytest

from keras_transformer.decoding import SearchOptions, compile_search
from keras_transformer.decoding.options import CHECKS, MOST_HYPOTHESES
from tests.decoding.models import hypotheses_of, inputs_of, make_model, random_sources, randomize
from tests.decoding.test_beam import assert_same

# Values of every kind, some of which are right for some option.
ANYTHING = [
    *(None, True, False, -1, 0, 1, 3, 2.5, 0.5, 1e-45, 1e300, 10**9, 10**12, 10**30),
    *(float("nan"), float("inf"), -float("inf"), 3 + 0j, "x", "", "4", b"4", [], {}, (), [5, 5], [2.5], ["x"], [None], [[5]]),
    *(np.int64(3), np.float32(0.5), np.float64("nan"), np.array(3), np.array([3]), np.array(2.5), np.True_, object(), len),
]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam_size": 0}, "`beam_size` must be an integer from 1 to 1024. Received: beam_size=0"),
        ({"beam_size": 2.5}, "`beam_size` must be an integer from 1 to 1024. Received: beam_size=2.5"),
        ({"beam_size": 10**9}, "`beam_size` must be an integer from 1 to 1024. Received: beam_size=1000000000"),
        (
            {"num_hypotheses": 5},
            "from 1 to `beam_size` = 4: a search cannot return more than it keeps. Received: num_hypotheses=5",
        ),
        ({"length_penalty": "x"}, "`length_penalty` must be a number from -1.0 to 5.0. Received: length_penalty='x'"),
        ({"penalty": "none"}, '`penalty` must be one of "google", "power". Received: penalty=\'none\''),
        ({"stopping": "never"}, '`stopping` must be one of "bound", "heuristic", "first"'),
        ({"min_length": 5, "max_length": 4}, "`min_length` must be at most `max_length` = 4. Received: min_length=5"),
        (
            {"max_length": 10**12},
            "`max_length` must be `None`, or an integer from 0 to 100000. Received: max_length=1000000000000",
        ),
        ({"banned_ids": [5, -1]}, "`banned_ids[1]` must be an integer from 0 to"),
        ({"banned_ids": 5}, "`banned_ids` must be a list or a tuple. Received: banned_ids=5"),
        ({"rescale": 1}, "`rescale` must be True or False. Received: rescale=1"),
        ({"top_k": 3}, "`top_k` must be `None` without a `temperature`"),
        ({"temperature": 0.0}, "`temperature` must be `None` to search, or a number from 1e-06 to 1000000.0. Received"),
        ({"temperature": 1e-45}, "or a number from 1e-06 to 1000000.0. Received: temperature=1e-45"),
        ({"temperature": 1.0, "top_p": 1.5}, "`top_p` must be `None`, or a number from 1e-06 to 1.0. Received: top_p=1.5"),
    ],
)
def test_options_that_cannot_be_meant(changes, message):
    with pytest.raises(ValueError) as error:
        SearchOptions(**changes)
    assert message in str(error.value)


def test_every_option_with_every_kind_of_value():
    """Each is refused by name, or becomes a plain value that can be looked up and stored."""
    assert CHECKS.keys() == {field.name for field in dataclasses.fields(SearchOptions)}
    for name in CHECKS:
        for value in ANYTHING:
            for others in ({}, {"temperature": 1.0}, {"beam_size": 1024, "max_length": 100_000}):
                try:
                    options = SearchOptions(**{**others, name: value})
                except ValueError as error:
                    assert "must be" in str(error) and "Received: " in str(error), error
                    continue
                assert options in {options}
                stored = json.dumps(dataclasses.asdict(options), allow_nan=False)
                assert SearchOptions(**json.loads(stored)) == options


def test_an_unknown_option():
    with pytest.raises(TypeError, match="beams"):
        SearchOptions(beams=3)


def test_the_widest_beam():
    model = make_model(vocabulary_size=6)
    randomize(model, 1)
    _, source_ids = random_sources(0, (3,), 6)
    options = SearchOptions(beam_size=MOST_HYPOTHESES, num_hypotheses=5)
    found = compile_search(model, options)(inputs_of(source_ids, 3))
    wide = compile_search(model, options.override(beam_size=200))(inputs_of(source_ids, 3))  # All 156 that there are.
    assert_same(hypotheses_of(found, 0), hypotheses_of(wide, 0))
