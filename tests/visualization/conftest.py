"""A run in miniature: a translator of the pronoun corpus that has learned nothing."""

import pytest

import keras_transformer as kt


@pytest.fixture(scope="session")
def corpus():
    return kt.data.pronouns(num_train=4000, num_validation=20, num_test=40)


@pytest.fixture(scope="session")
def translator(corpus):
    tokenizer = kt.Tokenizer.train(iter([*corpus.train.source, *corpus.train.target]), vocabulary_size=700)
    config = kt.TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        model_dim=16,
        feed_forward_dim=32,
        num_heads=2,
        num_encoder_layers=2,
        num_decoder_layers=2,
    )
    return kt.Translator(kt.Transformer(config), tokenizer, kt.SearchOptions(beam_size=1, extra_length=4))


@pytest.fixture
def run_folder(translator, tmp_path, monkeypatch):
    """The folder `runs/demo` in an empty folder, in which the test works."""
    monkeypatch.chdir(tmp_path)
    translator.save("runs/demo/translator")
    return tmp_path / "runs" / "demo"
