import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_transformer as kt
from tests.dying import full_disk
from tests.gradients import numpy_of
from tests.user_blocks import RotaryEncoderBlock, rotary_transformer, small_config

ROOT = Path(__file__).parents[2]
INPUTS = {
    "source_ids": np.array([[5, 6, 7, 2, 0], [9, 2, 0, 0, 0]], "int32"),
    "target_ids": np.array([[1, 8, 9, 4], [1, 5, 0, 0]], "int32"),
}


def models():
    return {
        "paper": kt.Transformer(small_config()),
        "variant": kt.Transformer(small_config(norm="pre", positions="learned", tie="none", output_bias=True, max_length=9)),
        "rotary": rotary_transformer(),
    }


def load_elsewhere(folder, backend):
    environment = {**os.environ, "KERAS_BACKEND": backend}
    command = [sys.executable, "-m", "tests.load_saved", str(folder)]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.strip().split("\n")[-1])


@pytest.mark.proof(".keras files and presets written on one backend give the same logits on the others, within 1e-5")
def test_saved_on_one_backend_loaded_on_all(tmp_path, size, seen):
    expected = dict(INPUTS)
    for name, model in models().items():
        model.save(tmp_path / f"{name}.keras")
        model.save_to_preset(tmp_path / f"{name}.preset")
        expected[name] = numpy_of(model(INPUTS))
    np.savez(tmp_path / "expected.npz", **expected)
    backends = ("tensorflow", "jax", "torch")
    place = backends.index(keras.backend.backend())
    next_one, last_one = backends[place - 2], backends[place - 1]
    for backend in size([next_one], full=[next_one, last_one]):
        found = load_elsewhere(tmp_path, backend)
        assert found.pop("backend") == backend
        assert len(found) == 6
        assert max(found.values()) < 1e-5, found
        seen(f"read on {backend}, three models (a user's rotary one among them): {max(found.values()):.1e}")


def test_compiled_state_survives(tmp_path):
    model = kt.Transformer(small_config())
    model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    model.fit(INPUTS, INPUTS["target_ids"], verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert int(numpy_of(again.optimizer.iterations)) == 1
    np.testing.assert_array_equal(numpy_of(again(INPUTS)), numpy_of(model(INPUTS)))


def test_the_dtype_policy_survives(tmp_path):
    kt.Transformer(small_config(), dtype="mixed_bfloat16").save_to_preset(tmp_path / "model")
    again = kt.Transformer.from_preset(tmp_path / "model")
    assert again.get_layer("decoder_block_0").compute_dtype == "bfloat16"
    assert kt.Transformer.from_preset(tmp_path / "model", dtype="float32").compute_dtype == "float32"


def test_a_preset_takes_overrides(tmp_path):
    model = kt.Transformer(small_config())
    model.save_to_preset(tmp_path / "model")
    again = kt.Transformer.from_preset(str(tmp_path / "model"), dropout=0.3)
    assert again.config == model.config.replace(dropout=0.3)
    np.testing.assert_array_equal(numpy_of(again(INPUTS)), numpy_of(model(INPUTS)))


def test_saving_twice_replaces_the_first(tmp_path):
    kt.Transformer(small_config()).save_to_preset(tmp_path / "model")
    second = kt.Transformer(small_config(num_encoder_layers=1))
    second.save_to_preset(tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["config.json", "model.weights.h5"]
    np.testing.assert_array_equal(numpy_of(kt.Transformer.from_preset(tmp_path / "model")(INPUTS)), numpy_of(second(INPUTS)))


@pytest.mark.parametrize("room", [0, 500, 50_000])  # Not even the config; the config; half of the weights.
def test_a_full_disk_leaves_the_old_preset(tmp_path, room):
    model = kt.Transformer(small_config())
    model.save_to_preset(tmp_path / "model")
    other = kt.Transformer(small_config(model_dim=32))
    with full_disk(room), pytest.raises(OSError, match=r"untouched. Make room, or choose another place: .*model.weights.h5"):
        other.save_to_preset(tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["config.json", "model.weights.h5"]
    np.testing.assert_array_equal(numpy_of(kt.Transformer.from_preset(tmp_path / "model")(INPUTS)), numpy_of(model(INPUTS)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(tmp_path, value):
    model = kt.Transformer(small_config())
    model.get_layer("encoder_block_0").self_attention_norm.gamma.assign(np.full(model.config.model_dim, value))
    model.save_to_preset(tmp_path / "model")
    with pytest.raises(ValueError, match=r"encoder_block_0/self_attention_norm/gamma has values that are NaN or infinite"):
        kt.Transformer.from_preset(tmp_path / "model")


def test_bad_presets_say_what_is_wrong(tmp_path):
    with pytest.raises(ValueError, match='one of "base", "big", "small", "tiny"'):
        kt.Transformer.from_preset("huge", vocabulary_size=100)
    with pytest.raises(ValueError, match="Pass `vocabulary_size=`"):
        kt.Transformer.from_preset("tiny")
    model = kt.Transformer(small_config())
    model.save_to_preset(tmp_path / "model")
    with pytest.raises(ValueError, match="do not fit the model"):
        kt.Transformer.from_preset(tmp_path / "model", vocabulary_size=50)
    (tmp_path / "model" / "model.weights.h5").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="do not fit the model"):
        kt.Transformer.from_preset(tmp_path / "model")
    (tmp_path / "model" / "model.weights.h5").unlink()
    with pytest.raises(ValueError, match=r"model\.weights\.h5 is missing"):
        kt.Transformer.from_preset(tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is not JSON"):
        kt.Transformer.from_preset(tmp_path / "model")


def test_an_unregistered_block_is_refused_when_saved(tmp_path):
    class Mine(kt.layers.EncoderBlock):
        pass

    model = kt.Transformer(small_config(), encoder_block=Mine)
    with pytest.raises(ValueError, match="register_keras_serializable"):
        model.save_to_preset(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_an_unknown_block_is_refused_when_loaded(tmp_path):
    rotary_transformer().save_to_preset(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(path.read_text().replace("user>RotaryEncoderBlock", "gone>Block"))
    with pytest.raises(ValueError, match="Import the module that defines it"):
        kt.Transformer.from_preset(tmp_path / "model")
    again = kt.Transformer.from_preset(tmp_path / "model", encoder_block=RotaryEncoderBlock)
    assert again.encoder_block is RotaryEncoderBlock
