"""Datasets: what batches contain, their order, resuming, sharding, and `fit` on every backend."""

import hashlib
import json
import os
import subprocess
import sys
import zlib

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.data import parallel_dataset
from tests.data.conftest import generated_lines

COMPILED = keras.backend.backend() == "jax"  # Where step by step is slowest.


def make(tokenizer, count=300, seed=0, **options) -> kt.data.ParallelDataset:
    sources, targets = generated_lines(count)
    return parallel_dataset(sources, targets, tokenizer, **{"batch_tokens": 256, "seed": seed, "num_shapes": 4, **options})


def pairs_of(batch, tokenizer) -> list[tuple[str, str]]:
    """Reads the pairs of a batch back as text; rows of padding are left out."""
    inputs, labels = batch
    real = (inputs["source_ids"] != tokenizer.pad_id).any(1)
    return list(zip(tokenizer.decode(inputs["source_ids"][real]), tokenizer.decode(labels[real]), strict=True))


def digest(batches) -> str:
    """Sums up batches, shapes included."""
    summed = hashlib.sha256()
    for inputs, labels in batches:
        for array in (inputs["source_ids"], inputs["target_ids"], labels):
            summed.update(str(array.shape).encode() + array.tobytes())
    return summed.hexdigest()


def test_a_fingerprint_tells_datasets_apart(tokenizer, files):
    """It is that of the pairs in their order, wherever they lie, and not that of a shard."""
    known = make(tokenizer).fingerprint
    assert json.loads(json.dumps(known)) == known == make(tokenizer, shard=(1, 2), max_length=200).fingerprint
    assert parallel_dataset(*files, tokenizer, 256, num_shapes=4).fingerprint == known
    for side, lines in zip(("source", "target"), generated_lines(300), strict=True):
        ids = tokenizer.encode(lines)
        offsets = np.cumsum([0, *map(len, ids)], dtype="int64")
        assert known[side] == "".join(f"{zlib.crc32(one):08x}" for one in (np.concatenate(ids).astype("uint16"), offsets))
    sources, targets = generated_lines(300)
    options = {"batch_tokens": 256, "num_shapes": 4}
    swapped = [targets[1], targets[0], *targets[2:]]
    assert changed(known, parallel_dataset(sources, swapped, tokenizer, **options)) == {"target"}
    assert changed(known, parallel_dataset([*sources[:-1], f"{sources[-1]} ba"], targets, tokenizer, **options)) == {"source"}
    for name, value in (("seed", 1), ("num_shapes", 5), ("batches_per_update", 2), ("copies", 2), ("batch_tokens", 257)):
        assert changed(known, make(tokenizer, **{name: value})) == {name}
    assert changed(known, make(tokenizer, subword_sampling=kt.SubwordSampling())) == {"subword_sampling"}
    other = kt.Tokenizer.train(iter(sources), vocabulary_size=320)
    assert "tokenizer" in changed(known, make(other))


def changed(known: dict, dataset) -> set[str]:
    """Returns what of a fingerprint is not as it was."""
    found = dataset.fingerprint
    assert found.keys() == known.keys()
    return {name for name in known if found[name] != known[name]}


def test_a_batch_is_what_the_model_takes(tokenizer):
    dataset = parallel_dataset(["ba be", "ka"], ["da de di", "do du"], tokenizer, batch_tokens=64, shuffle=False, num_shapes=1)
    inputs, labels = dataset[0]
    first, second = (tokenizer.encode(text) for text in ("ba be", "ka"))
    width = len(first) + 1
    assert inputs["source_ids"][:2].tolist() == [[*first, 2], [*second, 2] + [0] * (width - len(second) - 1)]
    first, second = (tokenizer.encode(text) for text in ("da de di", "do du"))
    padding = [0] * (len(first) - len(second))
    assert labels[:2].tolist() == [[*first, 2], [*second, 2, *padding]]
    assert inputs["target_ids"][:2].tolist() == [[1, *first], [1, *second, *padding]]
    assert not inputs["source_ids"][2:].any() and not inputs["target_ids"][2:].any() and not labels[2:].any()
    assert {array.dtype for array in (inputs["source_ids"], inputs["target_ids"], labels)} == {np.dtype("int32")}


@pytest.mark.parametrize("num_shapes", [1, 4, 16, None])
def test_an_epoch_has_every_pair_once(tokenizer, num_shapes):
    dataset = make(tokenizer, num_shapes=num_shapes)
    seen = [pair for batch in dataset.batches(3) for pair in pairs_of(batch, tokenizer)]
    assert sorted(seen) == sorted(zip(*generated_lines(300), strict=True))
    assert len(list(dataset.batches(3))) == len(dataset)


@pytest.mark.parametrize("num_shapes", [1, 4, 16, None])
def test_batches_keep_to_the_budget_and_to_their_shapes(tokenizer, num_shapes):
    dataset = make(tokenizer, num_shapes=num_shapes)
    shapes = set()
    for inputs, _ in dataset.batches(0):
        rows, length = inputs["source_ids"].shape
        shapes.add((rows, length, inputs["target_ids"].shape[1]))
        assert rows * max(length, inputs["target_ids"].shape[1]) <= 256
    assert shapes == set(dataset.shapes())
    assert num_shapes is None or len(shapes) <= num_shapes


def test_at_most_one_batch_has_rows_of_nothing_but_padding(tokenizer):
    blank_rows = [int((~inputs["source_ids"].any(1)).sum()) for inputs, _ in make(tokenizer, num_shapes=8).batches(0)]
    assert sum(rows > 0 for rows in blank_rows) <= 1


@pytest.mark.parametrize("options", [{}, {"shard": (1, 2)}, {"num_shapes": None}])
def test_copies_stand_behind_each_other_within_the_budget(tokenizer, options):
    single, double = (make(tokenizer, batch_tokens=128 * copies, copies=copies, **options) for copies in (1, 2))
    for (inputs, labels), (twice, labels_twice) in zip(single.batches(1), double.batches(1), strict=True):
        for name, ids in inputs.items():
            np.testing.assert_array_equal(twice[name], np.repeat(ids, 2, axis=0))
        np.testing.assert_array_equal(labels_twice, np.repeat(labels, 2, axis=0))
        assert labels_twice.size <= 256
    weights = [batch[2] for batch in make(tokenizer, copies=2, batches_per_update=3, **options).batches(0)]
    assert all(np.ptp(one) == 0 for one in weights) and len(weights) % 3 == 0


def test_a_sentence_longer_than_the_budget_is_a_batch_of_its_own(tokenizer):
    dataset = make(tokenizer, batch_tokens=8)
    assert max(len(inputs["source_ids"]) for inputs, _ in dataset.batches(0)) == 1
    assert len(dataset) == 300


def test_epochs_differ_and_a_fixed_order_stays(tokenizer):
    dataset = make(tokenizer)
    assert digest(dataset.batches(0)) != digest(dataset.batches(1))
    assert digest(make(tokenizer, seed=1).batches(0)) != digest(dataset.batches(0))
    fixed = make(tokenizer, shuffle=False)
    assert digest(fixed.batches(0)) == digest(fixed.batches(1))


IN_ANOTHER_PROCESS = """
import sys
import keras_transformer as kt
from tests.data.test_parallel import digest
tokenizer = kt.Tokenizer.load(sys.argv[1])
dataset = kt.data.parallel_dataset(sys.argv[2], sys.argv[3], tokenizer, batch_tokens=256, seed=5, num_shapes=4)
print(digest(dataset.batches(2)), digest(dataset.batches(2, first_step=3)))
"""


@pytest.mark.proof("The same seed and epoch give the same batches, in another process and on another backend, from any step on")
def test_the_same_batches_in_another_process_on_another_backend(tokenizer, files, tmp_path, seen):
    tokenizer.save(tmp_path / "tokenizer.model")
    dataset = parallel_dataset(*files, tokenizer, batch_tokens=256, seed=5, num_shapes=4)
    whole = list(dataset.batches(2))
    expected = [digest(whole), digest(whole[3:])]
    backend = {"jax": "torch", "torch": "tensorflow", "tensorflow": "jax"}[keras.backend.backend()]
    arguments = [sys.executable, "-c", IN_ANOTHER_PROCESS, tmp_path / "tokenizer.model", *files]
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONHASHSEED": "77"}
    found = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert found == expected
    seen(f"{len(whole)} batches, also in a process on {backend}")


@pytest.mark.parametrize("count", [2, 3])
def test_shards_together_give_the_whole(tokenizer, count):
    shards = [make(tokenizer, shard=(index, count)) for index in range(count)]
    whole = make(tokenizer)
    assert {len(shard) for shard in shards} == {len(whole)}
    for batches in zip(whole.batches(1), *(shard.batches(1) for shard in shards), strict=True):
        expected, *parts = (pairs_of(batch, tokenizer) for batch in batches)
        assert sorted(pair for part in parts for pair in part) == sorted(expected)
        assert len({batch[0]["source_ids"].shape for batch in batches[1:]}) == 1


# Fit.


def record_batches(dataset, monkeypatch, steps):
    """Lets every batch that the dataset makes be noted."""
    made = dataset.batch
    monkeypatch.setattr(dataset, "batch", lambda epoch, step: steps.append((epoch, step)) or made(epoch, step))


@pytest.fixture
def model(tokenizer):
    config = kt.TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        model_dim=8,
        feed_forward_dim=16,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
    model = kt.Transformer(config)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=COMPILED)
    return model


def test_a_plain_fit_sees_the_batches_in_their_order(tokenizer, model, monkeypatch):
    dataset = make(tokenizer, num_shapes=2, count=60)
    steps = []
    record_batches(dataset, monkeypatch, steps)
    model.fit(dataset, epochs=2, verbose=0)
    trained = steps[-2 * len(dataset) :]  # Keras looks at the first batch before it begins.
    assert trained == [(epoch, step) for epoch in (0, 1) for step in range(len(dataset))]


def test_the_first_epoch_of_a_later_fit_is_the_one_it_says(tokenizer, model, monkeypatch):
    dataset = make(tokenizer, num_shapes=2, count=60)
    steps = []
    record_batches(dataset, monkeypatch, steps)
    model.fit(dataset, epochs=4, initial_epoch=3, verbose=0)
    assert steps[-len(dataset) :] == [(3, step) for step in range(len(dataset))]


def test_an_interrupted_epoch_goes_on(tokenizer, model, monkeypatch):
    dataset = make(tokenizer, num_shapes=2, count=60)
    steps = []
    rest = dataset.from_step(2)
    record_batches(rest, monkeypatch, steps)
    model.fit(rest, epochs=2, initial_epoch=1, verbose=0)
    assert steps[-len(dataset) + 2 :] == [(1, step) for step in range(2, len(dataset))]
    assert digest(dataset.from_step(2).batches(1)) == digest(list(dataset.batches(1))[2:])


def test_another_keras_model_sees_them_in_their_order_too(tokenizer, monkeypatch):
    ids = {name: keras.Input((None,), name=name, dtype="int32") for name in ("source_ids", "target_ids")}
    logits = keras.layers.Embedding(tokenizer.vocabulary_size, tokenizer.vocabulary_size)(ids["target_ids"])
    model = keras.Model(ids, logits)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=COMPILED)
    dataset = make(tokenizer, num_shapes=2, count=60)
    steps = []
    record_batches(dataset, monkeypatch, steps)
    model.fit(dataset, epochs=2, verbose=0)
    assert steps[-2 * len(dataset) :] == [(epoch, step) for epoch in (0, 1) for step in range(len(dataset))]


def test_fit_with_validation_and_evaluate(tokenizer, model):
    validation = make(tokenizer, num_shapes=2, count=40, shuffle=False)
    history = model.fit(make(tokenizer, num_shapes=2, count=60), validation_data=validation, epochs=2, verbose=0)
    assert model.evaluate(validation, verbose=0) == pytest.approx(history.history["val_loss"][-1], rel=1e-5)


def test_fit_takes_arrays_as_ever(model):
    ids = np.ones((4, 3), "int32")
    history = model.fit({"source_ids": ids, "target_ids": ids}, ids, 2, 1, 0)
    assert len(history.history["loss"]) == 1


# Subword sampling.


def test_sampled_epochs_have_the_same_pairs_cut_in_other_ways(tokenizer):
    sampling = kt.SubwordSampling(0.3)
    dataset = make(tokenizer, subword_sampling=sampling)
    epochs = [list(dataset.batches(epoch)) for epoch in (0, 1)]
    for batches in epochs:
        seen = [pair for batch in batches for pair in pairs_of(batch, tokenizer)]
        assert sorted(seen) == sorted(zip(*generated_lines(300), strict=True))
    usual = sum(int((labels != 0).sum()) for _, labels in make(tokenizer).batches(0))
    first, second = (sum(int((labels != 0).sum()) for _, labels in batches) for batches in epochs)
    assert first != second
    assert min(first, second) > 1.1 * usual
    assert digest(epochs[1]) == digest(make(tokenizer, subword_sampling=sampling).batches(1))
    assert len(epochs[0]) == len(epochs[1])


def test_nearly_all_sentences_are_sampled(tokenizer):
    """A sentence that found no room would keep its usual ids."""
    dataset = make(tokenizer, subword_sampling=kt.SubwordSampling(0.3))
    longer = [
        len(ids) > len(tokenizer.encode(text))
        for inputs, _ in dataset.batches(0)
        for ids, text in zip(
            (row[row != 0] for row in inputs["source_ids"]), tokenizer.decode(inputs["source_ids"]), strict=True
        )
        if text
    ]
    assert np.mean(longer) > 0.8


# Options that cannot be meant.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_tokens": 0}, "`batch_tokens` must be a positive integer.*batch_tokens=0"),
        ({"copies": 0}, "`copies` must be at least 1.*copies=0"),
        ({"copies": 300}, "at most `batch_tokens`.*copies=300"),
        ({"num_shapes": 0}, "`num_shapes` must be a positive integer, or `None`"),
        ({"seed": -1}, "`seed` must not be negative"),
        ({"shard": (2, 2)}, r"`shard` must be \(index, count\)"),
        ({"max_length": 0}, "`max_length` must be a positive integer"),
        ({"max_ratio": 0.5}, "`max_ratio` must be at least 1"),
    ],
)
def test_impossible_options(tokenizer, options, message):
    with pytest.raises(ValueError, match=message):
        make(tokenizer, count=10, **options)


def test_steps_and_epochs_out_of_range(tokenizer):
    dataset = make(tokenizer, count=20)
    with pytest.raises(IndexError, match="batches in an epoch"):
        dataset[len(dataset)]
    with pytest.raises(ValueError, match="`first_step` must be one of the"):
        dataset.from_step(len(dataset))


def test_a_keras_hub_tokenizer_stands_in():
    import keras_hub

    words = ["[PAD]", "[START]", "[END]", "[UNK]", "ba", "be", "da"]
    tokenizer = keras_hub.tokenizers.WordPieceTokenizer(words, sequence_length=None)
    dataset = parallel_dataset(["ba be", "be"], ["da", "da ba"], tokenizer, batch_tokens=32, shuffle=False, num_shapes=1)
    inputs, labels = dataset[0]
    assert inputs["source_ids"][:2].tolist() == [[4, 5, 2], [5, 2, 0]]
    assert labels[:2].tolist() == [[6, 2, 0], [6, 4, 2]]


def test_a_pair_of_vocabularies(tokenizer):
    other = kt.Tokenizer.train(iter(["ka ke ki ko ku"] * 5), vocabulary_size=270)
    dataset = parallel_dataset(["ba be"], ["ka ke"], kt.TokenizerPair(tokenizer, other), shuffle=False)
    inputs, labels = dataset[0]
    assert inputs["source_ids"][0].tolist() == [*tokenizer.encode("ba be"), 2]
    assert labels[0].tolist() == [*other.encode("ka ke"), 2]
