"""The model that is decoded for comparison: its translations are as long as was drawn, though nobody tells the search."""

import numpy as np
import pytest

from benchmarks.decoding.jobs import END_ID, LONGEST, SHORTEST, Job, padded
from benchmarks.decoding.measurements import Measurement
from benchmarks.decoding.ours import make_decoder
from benchmarks.shapes import Shape

SMALL = Shape("small", 1, 192, 128, 4, vocabulary_size=200, batch_size=1, length=1)


@pytest.fixture(scope="module")
def decoder():
    return make_decoder(SMALL, "graph")


def test_translations_end_where_they_should(decoder):
    job = Job("realistic", beam_size=2, batch_size=4)
    ids, steps = decoder.read(job, decoder.prepare(job)())
    lengths = [len(row) + 1 for row in ids]
    assert lengths == job.drawn_lengths()[1].tolist()
    assert steps == [max(lengths)]
    assert not any(END_ID in row for row in ids)


def test_translations_of_a_fixed_length(decoder):
    job = Job("24", beam_size=1, batch_size=2)
    ids, steps = decoder.read(job, decoder.prepare(job)())
    assert [len(row) for row in ids] == [23, 23]
    assert steps == [24]


def test_jobs():
    job = Job("realistic", beam_size=1, batch_size=1)
    assert [len(rows) for rows in job.batches(200)] == [1, 1, 1, 1]
    sources, targets = Job("realistic", 1, 500).drawn_lengths()
    assert {*sources, *targets} == set(range(SHORTEST, LONGEST + 1))
    assert np.array_equal(padded([[5, 6, END_ID], [7, END_ID]]), [[5, 6, END_ID], [7, END_ID, 0]])


def test_measurements():
    job = Job("24", beam_size=1, batch_size=2)
    mine, theirs = (Measurement(job, None, ids, [24], 1.0, [2.0, 1.0, 4.0]) for ids in ([[5] * 23] * 2, [[5] * 24, [6] * 24]))
    assert mine.best_tokens_per_second == 48 and mine.median_tokens_per_second == 24
    assert mine.share_equal(theirs) == 0.5
