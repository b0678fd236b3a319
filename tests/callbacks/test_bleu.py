"""BLEU during training, held against sacrebleu itself."""

import functools

import keras
import numpy as np
import pytest
import sacrebleu

import keras_transformer as kt
from keras_transformer.callbacks import BleuEvaluation, EarlyStopping
from keras_transformer.callbacks import bleu as bleu_module
from keras_transformer.callbacks.bleu import read_references, reference_streams
from tests.callbacks.small import make_dataset, make_tokenizer, make_transformer, once

SOURCES = ["1 2 3 4", "5 6 7", "8 9 0 1 2", "", "4 4 4"]
OPTIONS = {"beam_size": 2, "length_penalty": 0.8}
SHORT = kt.SearchOptions(extra_length=4)


@pytest.fixture(autouse=True)
def short_translations(monkeypatch):
    """A model that knows nothing goes on to the limit: let it be a near one."""
    monkeypatch.setattr(bleu_module, "Translator", functools.partial(kt.Translator, options=SHORT))


def still_model() -> kt.Transformer:
    """Makes a model that training does not change. It says digits, for no other tokens have embeddings."""
    model = make_transformer(optimizer=keras.optimizers.SGD(0.0))
    known = [2, *{id for digit in "0123456789" for id in make_tokenizer().encode(f"1 {digit}")}]
    for variable in model.weights:
        value = np.array(keras.ops.convert_to_numpy(variable)) * 4
        if variable.path.endswith("embeddings"):
            value[[id not in known for id in range(len(value))]] = 0
        variable.assign(value)
    return model


@pytest.fixture(scope="module")
def model():
    return still_model()


@pytest.fixture(scope="module")
def translations(model):
    return kt.Translator(model, make_tokenizer(), SHORT).translate(SOURCES, **OPTIONS)


@pytest.fixture(scope="module")
def references(translations):
    """Nearly what the model says: the first word of each is another."""
    rows = [text.split(" ") for text in translations]
    return [" ".join(["Other", *words[1:]]) for words in rows]


def evaluate(model, callback, epochs=1, *others):
    return model.fit(make_dataset(batch_tokens=512), epochs=epochs, verbose=0, callbacks=[callback, *others]).history


def test_the_scores_are_those_of_sacrebleu(model, translations, references, capsys):
    callback = BleuEvaluation(SOURCES, references, make_tokenizer(), every_epochs=2, num_samples=2, **OPTIONS)
    stopping = EarlyStopping("val_bleu", patience=9)
    history = evaluate(model, callback, 4, stopping)
    assert callback.translations == translations
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    expected = bleu.corpus_score(translations, [references]).score
    assert 0 < expected < 100
    assert history["val_bleu"] == [expected] * 2  # After the second and the fourth epoch.
    assert history["val_chrf"] == [chrf.corpus_score(translations, [references]).score] * 2
    assert callback.signature == str(bleu.get_signature())
    assert [entry["epoch"] for entry in callback.history] == [1, 3]
    assert callback.history[0]["chrf_signature"] == str(chrf.get_signature())
    assert stopping.best == expected and stopping.wait == 1
    shown = capsys.readouterr().out
    assert f"Epoch 2: BLEU {expected:.2f}" in shown and callback.signature in shown
    for place in (0, 2):
        assert f"source       {SOURCES[place]}" in shown
        assert f"reference    {references[place]}" in shown
        assert f"translation  {translations[place]}" in shown


@once
def test_options_and_several_references(model, translations, references):
    several = [[one, "another one"] if number % 2 else [one] for number, one in enumerate(references)]
    options = {"max_sentences": 3, "lowercase": True, "tokenize": "none", "verbose": 0, **OPTIONS}
    callback = BleuEvaluation(SOURCES, several, make_tokenizer(), **options)
    history = evaluate(model, callback)
    bleu = sacrebleu.BLEU(lowercase=True, tokenize="none")
    streams = [references[:3], [None, "another one", None]]
    assert history["val_bleu"] == [bleu.corpus_score(translations[:3], streams).score]
    assert history["val_chrf"] == [sacrebleu.CHRF(lowercase=True).corpus_score(translations[:3], streams).score]
    assert "case:lc" in callback.signature and "tok:none" in callback.signature


@once
def test_files(tmp_path, translations, references):
    for name, lines in (("source", SOURCES), ("first", references), ("second", translations)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    callback = BleuEvaluation(tmp_path / "source", str(tmp_path / "first"), make_tokenizer())
    assert callback.source == SOURCES
    assert callback.references == [[one] for one in references]
    both = read_references([tmp_path / "first", tmp_path / "second"])
    assert reference_streams(both) == [references, translations]
    (tmp_path / "short").write_text("one line\n")
    with pytest.raises(ValueError, match=r"as many lines as each other. Received: .*first: 5, .*short: 1"):
        read_references([tmp_path / "first", tmp_path / "short"])


def test_the_moving_average_translates(translations):
    model = still_model()
    model.compile(keras.optimizers.SGD(0.1, use_ema=True), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    averages = [variable for variable in model.optimizer.variables if variable.path.endswith("average")]
    for variable, average in zip(model.trainable_variables, averages, strict=True):
        average.assign(np.array(keras.ops.convert_to_numpy(variable)))
        variable.assign(np.ones(variable.shape))
    callback = BleuEvaluation(SOURCES, SOURCES, make_tokenizer(), verbose=0, **OPTIONS)
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_end(0, {})
    assert callback.translations == translations
    assert all((array == 1).all() for array in model.get_weights())  # Training goes on with the model's own weights.


def test_what_does_not_belong_together():
    with pytest.raises(ValueError, match="Received: 2 sources and references for 1"):
        BleuEvaluation(["a", "b"], ["c"], make_tokenizer())
    with pytest.raises(ValueError, match="Received: 0 sources"):
        BleuEvaluation([], [], make_tokenizer())
    with pytest.raises(ValueError, match="Source 2 has no reference"):
        BleuEvaluation(["a", "b"], [["c"], []], make_tokenizer())
    with pytest.raises(ValueError, match="`every_epochs` must be a positive integer"):
        BleuEvaluation(["a"], ["b"], make_tokenizer(), every_epochs=0)


def test_its_history_goes_on_with_the_run():
    callback, other = (BleuEvaluation(["a"], ["b"], make_tokenizer()) for _ in range(2))
    callback.history.append({"epoch": 0, "val_bleu": 12.5})
    callback.signature = "nrefs:1"
    other.set_state(callback.get_state())
    assert (other.history, other.signature) == (callback.history, "nrefs:1")
