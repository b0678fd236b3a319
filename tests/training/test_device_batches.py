"""Batches for several devices: every pair once, rows that divide evenly, the same shape for everyone."""

import numpy as np
import pytest

import keras_transformer as kt
from training.device_batches import divided

PAIRS = kt.data.reverse(num_pairs=200, min_length=1, max_length=9).splits["train"]


@pytest.fixture(scope="module")
def tokenizer():
    return kt.Tokenizer.train(iter(PAIRS.source + PAIRS.target), vocabulary_size=280)


def make(tokenizer, parts, shard=(0, 1), **options):
    options = {"batch_tokens": 70, "num_shapes": 3, "progress": False, **options}
    return divided(kt.data.parallel_dataset(PAIRS.source, PAIRS.target, tokenizer, shard=shard, **options), parts)


def targets(batches):
    """Returns all labels that are no padding, row by row."""
    return sorted(tuple(row[row != 0]) for batch in batches for row in batch[1] if row.any())


@pytest.mark.proof("Among any number of devices and processes, each epoch has every pair once, in batches of equal shapes")
@pytest.mark.parametrize(("parts", "processes"), [(1, 1), (2, 1), (3, 1), (4, 2), (6, 3), (8, 2)])
@pytest.mark.parametrize("num_shapes", [3, None])
def test_every_pair_once(tokenizer, parts, processes, num_shapes, seen):
    whole = make(tokenizer, 1, num_shapes=num_shapes)
    shards = [make(tokenizer, parts, (index, processes), num_shapes=num_shapes) for index in range(processes)]
    for epoch in (0, 3):
        epochs = [list(shard.batches(epoch)) for shard in shards]
        assert targets(batch for batches in epochs for batch in batches) == targets(whole.batches(epoch))
        for of_step in zip(*epochs, strict=True):
            assert len({batch[1].shape for batch in of_step}) == 1
            assert processes * of_step[0][1].shape[0] % parts == 0
    seen(f"{parts} devices in {processes} processes: {len(whole)} batches, each pair once")


def test_steps_are_those_of_one_device(tokenizer):
    one, three = make(tokenizer, 1), make(tokenizer, 3)
    assert len(one) == len(three) == len(three.from_step(2)) + 2
    for (_, labels), (_, more) in zip(one.batches(1), three.batches(1), strict=True):
        np.testing.assert_array_equal(labels, more[: len(labels)])
        assert not more[len(labels) :].any()


def test_weights_of_an_update_stay_the_same(tokenizer):
    one, three = make(tokenizer, 1, batches_per_update=4), make(tokenizer, 3, batches_per_update=4)
    assert [batch[2][0, 0] for batch in one.batches(0)] == [batch[2][0, 0] for batch in three.batches(0)]


def test_copies_stay_on_one_device(tokenizer):
    for batch in make(tokenizer, 3, copies=2).batches(0):
        for part in np.split(batch[1], 3):
            np.testing.assert_array_equal(part[0::2], part[1::2])


def test_nothing_is_done_for_one_part(tokenizer):
    dataset = kt.data.parallel_dataset(PAIRS.source, PAIRS.target, tokenizer, progress=False)
    assert divided(dataset, 1) is dataset
