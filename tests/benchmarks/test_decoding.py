"""The model that is decoded for comparison: its translations are as long as was drawn, though nobody tells the search."""

import numpy as np
import pytest

from benchmarks.decoding import DECODERS
from benchmarks.decoding.jobs import END_ID, LONGEST, SHORTEST, Job, padded
from benchmarks.decoding.measurements import Measurement, as_json
from benchmarks.decoding.ours import make_decoder
from benchmarks.decoding.report import row_of, summary
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


def test_the_reference_is_the_faster_of_two_ways():
    jobs = [Job("24", beam_size=1, batch_size=size) for size in (1, 8)]
    seconds = {"ours-tensorflow": (1.0, 4.0), "ctranslate2-float32": (2.0, 5.0), "ctranslate2-float32-split": (3.0, 2.0)}
    measurements = [
        Measurement(job, DECODERS[name], [[5] * 23] * job.batch_size, [24], 1.0, [times[place]])
        for place, job in enumerate(jobs)
        for name, times in seconds.items()
    ]
    assert [row_of(one, measurements)[4] for one in measurements] == ["2.00", "1.00", "0.67", "0.50", "0.40", "1.00"]
    columns, rows = summary(measurements)
    assert columns[2:] == ("batch 1", "batch 8")
    assert rows[0] == ("CTranslate2, float32, the faster way", "24 tokens, greedy", "2.00", "0.50")
    assert rows[1][2:] == ("2.00", "1.25") and rows[2][2:] == ("3.00", "0.50")
    assert [one["times_reference"] for one in as_json(measurements)][::3] == [2.0, 0.5]
