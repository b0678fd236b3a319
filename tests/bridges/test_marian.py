"""Imported Marian models: the logits and the translations of Hugging Face, and everything a translator can do."""

import json
from dataclasses import replace

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.bridges.marian.architecture import read_architecture
from keras_transformer.bridges.marian.generation import search_options
from tests.bridges.marian_checkpoints import SHAPES, write_checkpoint
from tests.bridges.marian_reference import Reference
from tests.text.samples import sentences

pytest.importorskip("transformers")

PUBLISHED = SHAPES[0]


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: shape.name)
def shape(request):
    return request.param


@pytest.fixture(scope="module")
def checkpoint(shape, tmp_path_factory):
    """The folder of a checkpoint of each shape."""
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), shape)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A checkpoint with the settings of the published ones."""
    return write_checkpoint(tmp_path_factory.mktemp("published"), PUBLISHED)


@pytest.fixture(scope="module")
def translator(published):
    return kt.bridges.from_marian(published)


@pytest.mark.proof(
    "Random Marian models of six shapes have Hugging Face's float64 logits within 1e-4; where Hugging Face itself "
    "rounds by more than 5e-5 in float32, within twice that"
)
def test_logits(checkpoint, size, seen):
    reference, ours = Reference(checkpoint), kt.bridges.from_marian(checkpoint)
    random = np.random.default_rng(1)
    sources = reference.source_ids(sentences(size(8, full=100), seed=3))
    targets = random.integers(0, ours.model.config.target_vocabulary_size, (len(sources), 20)).astype("int32")
    targets[:, 0] = ours.model.config.start_id
    expected = reference.exact_logits(sources, targets)
    found = keras.ops.convert_to_numpy(ours.model({"source_ids": sources, "target_ids": targets}, training=False))
    difference, rounding = (np.abs(logits - expected).max() for logits in (found, reference.logits(sources, targets)))
    seen(
        f"{expected.size:,} logits of standard deviation {expected.std():.1f}: largest difference {difference:.2e} "
        f"(Hugging Face in float32: {rounding:.2e})"
    )
    assert difference < max(1e-4, 2 * rounding)


@pytest.mark.proof(
    "Beam translations with a checkpoint's own settings are Hugging Face's, id for id; another is accepted only if its score "
    "by Hugging Face's formula is as good within 1e-4"
)
def test_translations(shape, checkpoint, size, seen):
    if keras.backend.backend() != "torch" and shape is not PUBLISHED and not size(False, full=True):
        pytest.skip("takes long to compile; at full size it is done")
    reference, ours = Reference(checkpoint), kt.bridges.from_marian(checkpoint)
    texts = sentences(size(16, full=100), seed=4)
    expected = reference.generate(texts)
    names = ours.tokenizer.target.tokens(np.arange(ours.tokenizer.target.vocabulary_size))
    ids = {token: id for id, token in enumerate(names)}
    found = [[ids[token] for token in one.tokens] for one in ours.translate(texts, return_scores=True)]
    others = [number for number in range(len(texts)) if found[number] != expected[number]]
    for number in others:
        scores = [reference.score(texts[number], row) for row in (found[number], expected[number])]
        assert scores[0] >= scores[1] - 1e-4, (texts[number], found[number], expected[number], scores)
    assert ours.options.beam_size == 4 and len(others) <= len(texts) // 10
    assert len({len(row) for row in expected}) > 2  # They end by themselves, at different places.
    seen(
        f"{len(texts)} sentences of 4 beams, {len(texts) - len(others)} with the same ids; {min(map(len, found))} to "
        f"{max(map(len, found))} tokens"
    )


def test_scores_and_texts_are_those_of_hugging_face(published, translator):
    reference = Reference(published)
    texts = [sentences(1, seed=6)[0], ">>deu<< the cat", "☃"]
    for text, row, one in zip(texts, reference.generate(texts), translator.translate(texts, return_scores=True), strict=True):
        assert one.text == reference.tokenizer.decode(row, skip_special_tokens=True)
        assert one.score == pytest.approx(reference.score(text, row), abs=1e-4)
    assert translator.translate(["", "  "]) == ["", ""]


def test_greedy_translations(tmp_path):
    shape = replace(SHAPES[1], config={**SHAPES[1].config, "encoder_layers": 1, "decoder_layers": 1})
    folder = write_checkpoint(tmp_path, shape)
    settings = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({**settings, "num_beams": 1}))
    reference, ours = Reference(folder), kt.bridges.from_marian(folder)
    texts = sentences(6, seed=7)
    names = ours.tokenizer.target.tokens(np.arange(ours.tokenizer.target.vocabulary_size))
    found = [one.tokens for one in ours.translate(texts, return_scores=True)]
    assert found == [[names[id] for id in row] for row in reference.generate(texts)]


def test_a_language_code_chooses_the_translation(translator):
    source = translator.tokenizer.source
    assert source.tokens(">>deu<< the cat")[0] == ">>deu<<"
    (german, french) = translator.translate([">>deu<< the cat", ">>fra<< the cat"], return_scores=True)
    assert german.score != french.score


def test_it_is_an_ordinary_translator(translator, tmp_path):
    config = translator.model.config
    assert (config.start_id, config.end_id, config.pad_id) == (config.pad_id, 0, config.source_vocabulary_size - 1)
    assert config.positions == "sinusoidal_halves" and config.layer_norm_epsilon == 1e-5 and config.tie == "all"
    texts = sentences(4, seed=5)
    expected = translator.translate(texts, max_length=9)
    translator.save(tmp_path / "saved")
    loaded = kt.Translator.load(tmp_path / "saved")
    assert loaded.options == translator.options and loaded.tokenizer == translator.tokenizer
    for own, other in zip(loaded.model.get_weights(), translator.model.get_weights(), strict=True):
        assert np.array_equal(own, other)
    assert translator.translate(texts[0], max_length=9) == expected[0]  # Alone, without padding.
    assert translator.score(texts[0], expected[0]) < 0

    attention = translator.attend(texts[0], target=expected[0])
    tokens = translator.tokenizer.source.tokens(texts[0])
    assert attention.source_tokens == [*tokens, "</s>"] and attention.target_tokens[0] == "<pad>"
    np.testing.assert_allclose(attention.cross.sum(axis=-1), 1, atol=1e-5)


@pytest.mark.proof("An imported model is trained on with fit, and its loss falls")
def test_fine_tuning(published, tmp_path, seen):
    translator = kt.bridges.from_marian(published)
    loss = tune(translator)
    seen(f"loss {loss[0]:.2f} -> {loss[-1]:.2f} in {len(loss)} epochs")
    assert loss[-1] < loss[0] - 0.5
    translator.save(tmp_path / "tuned")
    tuned = kt.Translator.load(tmp_path / "tuned")
    assert tuned.score("the cat", "the cat") == pytest.approx(translator.score("the cat", "the cat"), abs=1e-4)


def tune(translator, epochs=3):
    """Trains a translator on, and returns the loss of each epoch."""
    pad_id = translator.model.config.pad_id
    source = sentences(48, seed=11)
    pairs = kt.data.parallel_dataset(
        iter(source), iter(source), translator.tokenizer, batch_tokens=512, num_shapes=1, progress=False
    )
    translator.model.compile(
        optimizer=keras.optimizers.Adam(3e-3),
        loss=kt.losses.SmoothedCrossEntropy(0.1, pad_id=pad_id),
        metrics=[kt.metrics.TokenAccuracy(pad_id=pad_id)],
        jit_compile=keras.backend.backend() == "jax",  # Which takes longer than the training.
    )
    return translator.model.fit(pairs, epochs=epochs, verbose=0).history["loss"]


def test_settings_of_the_search():
    config = read_architecture({"model_type": "marian", "vocab_size": 99, "pad_token_id": 98, "decoder_start_token_id": 98}, "")
    options = search_options({}, config)
    assert (options.beam_size, options.penalty, options.length_penalty, options.stopping) == (1, "power", 1.0, "heuristic")
    assert (options.min_length, options.max_length, options.rescale) == (0, 20, False)
    forced = {"forced_eos_token_id": 0}
    for settings, fields in [
        ({"max_length": 512, **forced}, {"max_length": 510}),
        ({"max_length": 512}, {"max_length": 511}),
        ({"max_new_tokens": 30, "max_length": 512, **forced}, {"max_length": 29}),
        ({"min_length": 5}, {"min_length": 4}),
        ({"min_new_tokens": 5}, {"min_length": 5}),
        ({"early_stopping": True}, {"stopping": "first"}),
        ({"early_stopping": "never"}, {"stopping": "bound"}),
        ({"num_beams": 6, "num_return_sequences": 3}, {"beam_size": 6, "num_hypotheses": 3}),
        ({"bad_words_ids": [[98], [0], [7]], "suppress_tokens": [3]}, {"banned_ids": (3, 7, 98)}),
        ({"renormalize_logits": True, "length_penalty": 0.5}, {"rescale": True, "length_penalty": 0.5}),
    ]:
        found = search_options(settings, config)
        assert {name: getattr(found, name) for name in fields} == fields


def test_ctranslate2(published, translator, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2")
    engine = ctranslate2.Translator(str(kt.bridges.to_ctranslate2(translator, tmp_path / "model")), compute_type="float32")
    texts = sentences(6, seed=12)
    tokens = [translator.tokenizer.source.tokens(text) for text in texts]
    theirs = engine.translate_batch(tokens, beam_size=1, max_decoding_length=20, suppress_sequences=[["<pad>"]])
    ours = translator.translate(texts, beam_size=1, max_length=20, return_scores=True)
    assert [result.hypotheses[0] for result in theirs] == [one.tokens[:-1] for one in ours]


@pytest.mark.parametrize("number", [0, 2], ids=["shared", "separate"])
def test_files_that_transformers_saved(number, tmp_path):
    """What `save_pretrained` writes beside the usual files is understood."""
    first = write_checkpoint(tmp_path / "first", SHAPES[number])
    reference = Reference(first)
    reference.model.save_pretrained(tmp_path / "second")
    reference.tokenizer.save_pretrained(tmp_path / "second")
    ours, expected = kt.bridges.from_marian(tmp_path / "second"), kt.bridges.from_marian(first)
    assert (ours.tokenizer, ours.options) == (expected.tokenizer, expected.options)
    assert ours.model.config == expected.model.config
