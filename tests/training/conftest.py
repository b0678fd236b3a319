"""A run in miniature: digits and their reversal, a model that trains in seconds."""

import pytest

import keras_transformer as kt

RECIPE = """
[data]
train_source = "train.digits"
train_target = "train.reversed"
validation_source = "validation.digits"
validation_target = "validation.reversed"
test_source = "test.digits"
test_target = "test.reversed"
batch_tokens = 64
num_shapes = 1

[tokenizer]
vocabulary_size = 280

[model]
preset = "tiny"
num_encoder_layers = 1
num_decoder_layers = 1
model_dim = 16
feed_forward_dim = 32
num_heads = 2
positions = "learned"  # So that a model that has learned nothing yet is not long about it.
max_length = 12

[optimization]
epochs = 2
tokens_per_update = 128
warmup_updates = 10
average_checkpoints = 2
checkpoint_every_updates = 1

[evaluation]
every_epochs = 2
beam_size = 2
num_samples = 1
"""


@pytest.fixture(scope="session")
def write_files():
    """Writes the pairs and a recipe for them into a folder, and returns the recipe."""

    def write(folder, text=RECIPE):
        corpus = kt.data.reverse(num_pairs=80, min_length=3, max_length=4)
        corpus.write(folder)
        (folder / "digits.toml").write_text(text, encoding="utf8")
        return folder / "digits.toml"

    return write


@pytest.fixture
def recipe(tmp_path, monkeypatch, write_files):
    """A recipe in an empty folder, in which the test works, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_TRANSFORMER_CACHE", str(tmp_path / "cache"))
    return write_files(tmp_path)
