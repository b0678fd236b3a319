"""Sentences of one batch with different options: each gets what it gets alone."""

import itertools

import numpy as np
import pytest

from keras_transformer.decoding import SearchOptions, compile_search
from tests.decoding import reference
from tests.decoding.models import END, hypotheses_of, inputs_of, make_model, random_sources, randomize
from tests.decoding.test_beam import assert_same

MOST = 4


@pytest.mark.proof("In a batch of sentences with different beams, penalties and limits, each gets what its own search finds")
def test_each_sentence_has_its_own_search(size, seen):
    model, count, events = make_model(), size(6, full=60), {}
    search = compile_search(model, SearchOptions(beam_size=MOST, num_hypotheses=MOST))
    for seed in range(count):
        randomize(model, seed)
        plain = reference.PlainTransformer(model)
        settings = list(itertools.product((1, 2, 3, MOST), (0.0, 0.6, 2.0)))
        lengths = np.random.default_rng(seed).integers(2, 8, len(settings))
        rows, source_ids = random_sources(seed, lengths, model.config.source_vocabulary_size)
        beam_sizes, penalties = (np.array(column) for column in zip(*settings, strict=True))
        wanted = np.minimum(beam_sizes, 1 + np.arange(len(settings)) % 3)
        inputs = {
            **inputs_of(source_ids, lengths + 3),
            "beam_sizes": beam_sizes.astype("int32"),
            "length_penalties": penalties.astype("float32"),
            "num_wanted": wanted.astype("int32"),
        }
        found = search(inputs)
        for number, (beam_size, penalty) in enumerate(settings):
            count_wanted = int(wanted[number])
            options = SearchOptions(beam_size=beam_size, length_penalty=penalty, num_hypotheses=count_wanted)
            follow = plain.next_log_probabilities(rows[number])
            one_search = reference.greedy_search if beam_size == 1 else reference.beam_search
            expected = one_search(follow, options, int(lengths[number]) + 3, END, events)[:count_wanted]
            assert_same(hypotheses_of(found, number)[:count_wanted], expected)
    seen(f"{count} models, {count * len(settings)} sentences, beams of 1 to {MOST}, penalties 0, 0.6 and 2, 1 to 3 hypotheses")
