import json

import pytest

from keras_transformer import TransformerConfig


def test_defaults_are_the_papers_base_model():
    config = TransformerConfig(vocabulary_size=37000)
    assert (config.model_dim, config.feed_forward_dim, config.num_heads) == (512, 2048, 8)
    assert (config.num_encoder_layers, config.num_decoder_layers, config.dropout) == (6, 6, 0.1)
    assert (config.norm, config.positions, config.tie, config.activation) == ("post", "sinusoidal", "all", "relu")


def test_one_vocabulary_size_sets_both():
    config = TransformerConfig(vocabulary_size=100)
    assert config.source_vocabulary_size == config.target_vocabulary_size == config.vocabulary_size == 100


def test_two_vocabularies_have_no_common_size():
    config = TransformerConfig(source_vocabulary_size=100, target_vocabulary_size=200, tie="decoder")
    with pytest.raises(ValueError, match="100 and 200"):
        config.vocabulary_size  # noqa: B018


def test_encoder_and_decoder_may_differ():
    config = TransformerConfig(vocabulary_size=100, num_heads=(8, 4), feed_forward_dim=(2048, 1024))
    assert (config.encoder_num_heads, config.decoder_num_heads) == (8, 4)
    assert (config.encoder_feed_forward_dim, config.decoder_feed_forward_dim) == (2048, 1024)


def test_round_trip_through_json():
    config = TransformerConfig(vocabulary_size=100, num_heads=(8, 4), norm="pre", dropout=0.25)
    assert TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_replace_changes_a_copy():
    config = TransformerConfig(vocabulary_size=100)
    changed = config.replace(vocabulary_size=200, norm="pre")
    assert (changed.vocabulary_size, changed.norm) == (200, "pre")
    assert (config.vocabulary_size, config.norm) == (100, "post")


@pytest.mark.parametrize(
    "fields, message",
    [
        ({}, "size of the vocabulary is missing"),
        ({"source_vocabulary_size": 100}, "`target_vocabulary_size=`"),
        ({"vocabulary_size": 100, "source_vocabulary_size": 50}, "Give one of the two"),
        ({"source_vocabulary_size": 100, "target_vocabulary_size": 200}, 'use `tie="decoder"`'),
        ({"vocabulary_size": 100, "model_dim": 0}, "model_dim=0"),
        ({"vocabulary_size": 100, "model_dim": 512.0}, "model_dim=512.0"),
        ({"vocabulary_size": 100, "model_dim": 100, "num_heads": 8}, "divisible by the number of heads of the encoder"),
        ({"vocabulary_size": 100, "num_heads": (8, 7)}, "heads of the decoder"),
        ({"vocabulary_size": 100, "num_heads": (8, 8, 8)}, "a pair"),
        ({"vocabulary_size": 100, "num_encoder_layers": 0}, "num_encoder_layers=0"),
        ({"vocabulary_size": 100, "norm": "sandwich"}, 'one of "post", "pre"'),
        ({"vocabulary_size": 100, "positions": "rotary"}, '"learned"'),
        ({"vocabulary_size": 100, "tie": True}, '"decoder"'),
        ({"vocabulary_size": 100, "activation": "shout"}, "activation='shout'"),
        ({"vocabulary_size": 100, "activation": lambda x: x}, "must be a name"),
        ({"vocabulary_size": 100, "dropout": 1.0}, "dropout=1.0"),
        ({"vocabulary_size": 100, "attention_dropout": "0.1"}, "attention_dropout='0.1'"),
        ({"vocabulary_size": 100, "layer_norm_epsilon": 0}, "layer_norm_epsilon=0"),
        ({"vocabulary_size": 100, "end_id": 100}, "from 0 to 99"),
        ({"vocabulary_size": 100, "end_id": 0}, "no sentence could end"),
        ({"vocabulary_size": 100, "max_length": -1}, "max_length=-1"),
    ],
)
def test_impossible_combinations_say_what_to_change(fields, message):
    with pytest.raises(ValueError) as error:
        TransformerConfig(**fields)
    assert message in str(error.value)


def test_an_unknown_field_suggests_the_nearest():
    with pytest.raises(ValueError, match="Did you mean `num_heads`"):
        TransformerConfig.from_dict({"vocabulary_size": 100, "n_heads": 8})


def test_a_decoder_may_start_with_the_pad_id():
    assert TransformerConfig(vocabulary_size=100, start_id=0).start_id == 0
