import dataclasses
import json

import pytest

from keras_transformer import Transformer, TransformerConfig
from tests.decoding.test_options import ANYTHING


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


def test_every_field_with_every_kind_of_value():
    """Each is refused by name, or becomes a plain value that can be stored."""
    for name in [field.name for field in dataclasses.fields(TransformerConfig)]:
        for value in ANYTHING:
            try:
                config = TransformerConfig(**{"vocabulary_size": 100, "model_dim": 6, "num_heads": 2, name: value})
            except ValueError as error:
                assert name in str(error) and "Received: " in str(error), error
                continue
            assert config in {config}
            assert TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict(), allow_nan=False))) == config


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layer_norm_epsilon": float("nan")}, "`layer_norm_epsilon` must be a number from 1e-30 to 1.0"),
        ({"dropout": float("nan")}, "`dropout` must be a number from 0.0 to 0.999"),
        ({"use_bias": "no"}, "`use_bias` must be True or False. Received: use_bias='no'"),
        ({"model_dim": 10**12}, "`model_dim` must be an integer from 1 to 2147483647"),
        ({"num_encoder_layers": 10**9}, "`num_encoder_layers` must be an integer from 1 to 1000"),
        ({"num_heads": [8, 2.5]}, "`num_heads[1]` must be an integer from 1 to"),
        ({"end_id": 2.5}, "`end_id` must be an id of both vocabularies, from 0 to 99. Received: end_id=2.5"),
        ({"pad_id": True}, "`pad_id` must be an id of both vocabularies, from 0 to 99. Received: pad_id=True"),
        ({"activation": None}, "`activation` must be a name"),
    ],
)
def test_values_of_another_kind(fields, message):
    with pytest.raises(ValueError) as error:
        TransformerConfig(vocabulary_size=100, **fields)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "does not describe a model that can be made: KeyError('config')"),
        ("[]", "must hold an object of JSON"),
        ('{"config": 5}', "must be a dictionary. Received: 5"),
        ('{"config": {"vocabulary_size": NaN}}', "is not JSON (NaN is not a finite number)"),
        ('{"config": ' + "[" * 100_000, "is not JSON (maximum recursion depth exceeded"),
        ('{"config": {"vocabulary_size": 9, "model_dim": "8"}}', "`model_dim` must be an integer from 1 to"),
        ('{"config": {"vocabulary_size": 9}, "encoder_block": 5}', "a block class that is not registered here"),
        ('{"config": {"vocabulary_size": 9}, "encoder_block": []}', "does not describe a model that can be made: TypeError"),
    ],
)
def test_a_config_file_that_describes_no_model(tmp_path, content, message):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError) as error:
        Transformer.from_preset(tmp_path)
    assert "config.json" in str(error.value) and str(tmp_path) in str(error.value) and message in str(error.value)


def test_an_unknown_field_suggests_the_nearest():
    with pytest.raises(ValueError, match="Did you mean `num_heads`"):
        TransformerConfig.from_dict({"vocabulary_size": 100, "n_heads": 8})


def test_a_decoder_may_start_with_the_pad_id():
    assert TransformerConfig(vocabulary_size=100, start_id=0).start_id == 0
