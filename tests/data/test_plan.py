"""How pairs are put into batches: shapes that waste little, and nothing lost."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keras_transformer as kt
from keras_transformer.data.plan import Planner
from keras_transformer.data.shapes import choose_shapes, rows_of

LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=200)


@settings(max_examples=100, deadline=None)
@given(LENGTHS, st.sampled_from([1, 2, 5, 16, None]), st.integers(1, 300), st.sampled_from([None, 0, 3]))
def test_every_pair_is_in_one_batch_that_has_room_for_it(lengths, num_shapes, batch_tokens, seed):
    source, target = np.array(lengths).T
    planner = Planner(source, target, batch_tokens, num_shapes, seed)
    plans = [planner.plan(epoch) for epoch in (0, 1)]
    assert len(plans[0]) == len(plans[1])
    for plan in plans:
        used = [plan.batch(step) for step in range(len(plan))]
        assert sorted(number for numbers, _ in used for number in numbers) == list(range(len(lengths)))
        assert num_shapes is None or len({shape for _, shape in used}) <= num_shapes
        for numbers, shape in used:
            assert 0 < len(numbers) <= shape.rows
            assert source[numbers].max() <= shape.source_length and target[numbers].max() <= shape.target_length
            assert shape.rows == 1 or shape.rows * max(shape[1:]) <= batch_tokens


def test_rows_are_a_multiple_of_eight_where_there_are_so_many():
    assert rows_of(10, 20, 4096, num_pairs=1000) == 200
    assert rows_of(600, 20, 4096, num_pairs=1000) == 6
    assert rows_of(5000, 20, 4096, num_pairs=1000) == 1


def test_there_are_hardly_more_rows_than_pairs():
    assert rows_of(10, 20, 4096, num_pairs=19) == 24


def test_shapes_are_cut_where_it_saves_most():
    histogram = np.zeros((41, 41), int)
    histogram[10, 12] = histogram[40, 38] = 100
    table = choose_shapes(histogram, 3, batch_tokens=400)
    assert [shape[1:] for shape in table.shapes] == [(10, 12), (40, 38)]
    assert table.next_of == (1, 1)
    assert table.shape_of[10, 12] == 0 and table.shape_of[40, 38] == 1


def test_one_shape_is_long_enough_for_all():
    histogram = np.zeros((41, 41), int)
    histogram[10, 40] = histogram[40, 10] = 100
    table = choose_shapes(histogram, 3, batch_tokens=400)
    assert [shape[1:] for shape in table.shapes] == [(10, 40), (40, 10), (40, 40)]
    assert table.next_of == (2, 2, 2)


def test_a_small_corpus_has_fewer_shapes_if_that_leaves_less_padding():
    random = np.random.default_rng(0)
    source = random.integers(4, 40, 200)
    shares = []
    for num_shapes in (1, 16):
        shapes = Planner(source, source, 4096, num_shapes, 0).plan(0).shapes
        shares.append(2 * source.sum() / sum(shape.rows * 2 * shape.source_length for shape in shapes))
    assert shares[1] >= shares[0]


@pytest.mark.parametrize(("num_shapes", "limit"), [(16, 0.15), (None, 0.08)])
def test_little_of_a_corpus_like_image_captions_is_padding(num_shapes, limit):
    random = np.random.default_rng(0)
    source = np.clip(random.lognormal(2.65, 0.33, 29_000), 4, 60).astype(int)
    target = np.clip(source * random.lognormal(0.03, 0.2, 29_000), 3, 70).astype(int)
    planner = Planner(source, target, 4096, num_shapes, 0)
    positions = sum(shape.rows * (shape.source_length + shape.target_length) for shape in planner.plan(0).shapes)
    assert 1 - (source.sum() + target.sum()) / positions < limit


@pytest.mark.proof("Multi30k, vocabulary 8,000, 4,096 tokens a batch: below 15% padding with 16 shapes, below 8% with `None`")
@pytest.mark.skipif("MULTI30K" not in os.environ, reason="set MULTI30K to a folder with Multi30k's raw files")
def test_little_of_multi30k_is_padding(tmp_path, monkeypatch, seen):
    monkeypatch.setenv("KERAS_TRANSFORMER_CACHE", str(tmp_path))
    corpus = kt.data.multi30k(Path(os.environ["MULTI30K"]))
    tokenizer = kt.Tokenizer.train(iter(corpus.train.source + corpus.train.target), 8000)
    for num_shapes, limit in [(16, 0.15), (None, 0.08)]:
        dataset = kt.data.parallel_dataset(corpus.train.source, corpus.train.target, tokenizer, 4096, num_shapes=num_shapes)
        plan = dataset.plan(0)
        assert sorted(plan.order) == list(range(len(corpus.train)))
        seen(f"num_shapes={num_shapes}: {dataset.padding_share():.1%}, {len(corpus.train)} pairs once each")
        assert dataset.padding_share() < limit
