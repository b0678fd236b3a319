import gc
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
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


@pytest.fixture(autouse=True)
def quick_collections():
    """Keras collects garbage after each layer that it quantizes."""
    gc.freeze()
    yield
    gc.unfreeze()


def both_ways(model, folder):
    """The model out of a `.keras` file and out of a preset."""
    model.save(folder / "model.keras")
    model.save_to_preset(folder / "model")
    return keras.models.load_model(folder / "model.keras"), kt.Transformer.from_preset(folder / "model")


def policies(model):
    return [(v.path, keras.backend.standardize_dtype(v.dtype), v.trainable) for v in model.weights]


QUANTIZATIONS = {
    "int8": ("int8", {}),
    "int4": ("int4", {"tie": "none"}),
    "float8": ("float8", {"tie": "none", "output_bias": True}),
    "only_weights": (keras.quantizers.Int8QuantizationConfig(activation_quantizer=None), {"tie": "decoder"}),
}


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`", "ignore:Invalid quantization mode")
@pytest.mark.parametrize("kind", QUANTIZATIONS)
def test_quantized_models_survive(kind, tmp_path):
    mode, fields = QUANTIZATIONS[kind]
    model = kt.Transformer(small_config(num_encoder_layers=1, num_decoder_layers=1, **fields))
    full = numpy_of(model(INPUTS))
    model.quantize(**{"mode" if isinstance(mode, str) else "config": mode})
    expected = numpy_of(model(INPUTS))
    assert np.abs(expected - full).max() > 0
    for again in both_ways(model, tmp_path):
        assert policies(again) == policies(model)
        np.testing.assert_array_equal(numpy_of(again(INPUTS)), expected)
    assert policies(kt.Transformer.from_config(again.get_config())) == policies(model)


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_a_model_that_is_quantized_in_part_survives(tmp_path):
    model = rotary_transformer(num_encoder_layers=1, num_decoder_layers=1)
    model.quantize("int8", filters=["query", "token_embedding"])
    for again in both_ways(model, tmp_path):
        assert policies(again) == policies(model)
        np.testing.assert_array_equal(numpy_of(again(INPUTS)), numpy_of(model(INPUTS)))


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_quantized_layers_of_a_users_functional_model_survive(mode, tmp_path, random):
    x = keras.Input((None, 16))
    y = kt.layers.EncoderBlock(24, 2)(x)
    z = kt.layers.FeedForward(24)(kt.layers.DecoderBlock(24, 2)(x, y))
    model = keras.Model(x, kt.layers.MultiHeadAttention(2, 8)(z))
    model.quantize(mode, filters=["query", "hidden"])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    inputs = random.normal(size=(2, 3, 16)).astype("float32")
    assert policies(again) == policies(model)
    np.testing.assert_array_equal(numpy_of(again(inputs)), numpy_of(model(inputs)))


@pytest.mark.parametrize("mode", [None, "int8"])
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_low_rank_updates_survive_a_step_and_go_on(mode, tmp_path):
    model = kt.Transformer(small_config(num_encoder_layers=1, num_decoder_layers=1, dropout=0.0))
    if mode is not None:
        model.quantize(mode)
    model.enable_lora(rank=2, alpha=3.0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(0.1), loss=loss, jit_compile=False)
    model.fit(INPUTS, INPUTS["target_ids"], verbose=0)
    expected = numpy_of(model(INPUTS))
    from_file, from_preset = both_ways(model, tmp_path)
    from_preset.compile(optimizer=keras.optimizers.Adam(0.1), loss=loss, jit_compile=False)
    for again in (from_file, from_preset):
        assert policies(again) == policies(model)
        for old, new in zip(model.weights, again.weights, strict=True):
            np.testing.assert_array_equal(numpy_of(new), numpy_of(old))
        np.testing.assert_array_equal(numpy_of(again(INPUTS)), expected)
    # The optimizer is in the file as well, so that the next steps are the same.
    for one in (model, from_file):
        one.fit(INPUTS, INPUTS["target_ids"], verbose=0)
    np.testing.assert_allclose(numpy_of(from_file(INPUTS)), numpy_of(model(INPUTS)), atol=1e-6)
    assert np.abs(numpy_of(model(INPUTS)) - expected).max() > 0


def test_low_rank_updates_begin_anew_from_weights_without_them(tmp_path):
    plain = kt.Transformer(small_config(num_encoder_layers=1, num_decoder_layers=1))
    plain.save_weights(tmp_path / "plain.weights.h5")
    model = kt.Transformer(small_config(num_encoder_layers=1, num_decoder_layers=1))
    model.enable_lora(rank=2)
    model.load_weights(tmp_path / "plain.weights.h5")
    np.testing.assert_allclose(numpy_of(model(INPUTS)), numpy_of(plain(INPUTS)), atol=1e-6)
    assert all(numpy_of(v).any() for v in model.trainable_variables if v.name == "lora_kernel_a")


def test_frozen_parts_and_weights_survive(tmp_path):
    model = rotary_transformer(num_encoder_layers=2, num_decoder_layers=1)
    model.get_layer("token_embedding").trainable = False
    block = model.get_layer("encoder_block_0")
    block.trainable = False
    block.feed_forward.trainable = True
    model.get_layer("encoder_block_1").gate.trainable = False
    for again in both_ways(model, tmp_path):
        assert policies(again) == policies(model)
        assert not again.get_layer("token_embedding").trainable
        assert not again.get_layer("encoder_block_0").self_attention.trainable
        assert again.get_layer("encoder_block_0").feed_forward.trainable
    model.trainable = False
    for again in both_ways(model, tmp_path):
        assert not again.trainable and again.trainable_variables == []


def test_changes_of_a_part_that_is_not_there_are_an_error():
    model = kt.Transformer(small_config(num_encoder_layers=2, num_decoder_layers=1))
    model.get_layer("encoder_block_1").trainable = False
    config = model.get_config()
    config["config"]["num_encoder_layers"] = 1
    with pytest.raises(ValueError, match="Received: 'encoder_block_1'"):
        kt.Transformer.from_config(config)


def test_a_clone_is_tied_to_an_embedding_of_its_own():
    model = kt.Transformer(small_config(num_encoder_layers=1, num_decoder_layers=1, output_bias=True))
    clone = keras.models.clone_model(model)
    assert len(clone.weights) == len(model.weights)
    clone.set_weights(model.get_weights())
    before = numpy_of(clone(INPUTS))
    np.testing.assert_array_equal(before, numpy_of(model(INPUTS)))
    matrix = clone.get_layer("token_embedding").embeddings
    assert clone.get_layer("logits").embedding is clone.get_layer("token_embedding")
    changed = numpy_of(matrix).copy()
    changed[36] = 5.0  # A token that is not in the inputs: only its logits change.
    matrix.assign(changed)
    after = numpy_of(clone(INPUTS))
    assert np.array_equal(after[..., :36], before[..., :36]) and np.abs(after - before)[..., 36].min() > 0
    np.testing.assert_array_equal(numpy_of(model(INPUTS)), before)


def test_a_users_functional_model_stays_tied(tmp_path):
    ids = keras.Input((None,), dtype="int32")
    embedding = kt.layers.TokenEmbedding(10, 8)
    model = keras.Model(ids, kt.layers.TiedLogits(embedding)(embedding(ids)))
    model.save(tmp_path / "model.keras")
    for again in (keras.models.load_model(tmp_path / "model.keras"), keras.models.clone_model(model)):
        assert again.layers[2].embedding is again.layers[1] and len(again.weights) == 1
        assert len(again._flatten_layers(include_self=False)) == 3


def old_embedding():
    """What the first versions wrote of an embedding, when it was a layer of its own kind."""
    return {
        "module": "keras_transformer.layers.token_embedding",
        "class_name": "TokenEmbedding",
        "config": {
            "name": "token_embedding",
            "trainable": True,
            "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": None},
            "vocabulary_size": 6,
            "model_dim": 4,
            "scale": True,
            "initializer": None,
        },
        "registered_name": "keras_transformer>TokenEmbedding",
        "build_config": {"input_shape": [None, None]},
        "shared_object_id": 7,
    }


def old_logits():
    return {
        "module": "keras_transformer.layers.tied_logits",
        "class_name": "TiedLogits",
        "config": {
            "name": "logits",
            "trainable": True,
            "dtype": "float32",
            "embedding": old_embedding(),
            "use_bias": False,
            "bias_initializer": {"module": "keras.initializers", "class_name": "Zeros", "config": {}, "registered_name": None},
        },
        "registered_name": "keras_transformer>TiedLogits",
        "build_config": {"input_shape": [None, None, 4]},
    }


def test_files_of_the_first_versions_can_be_read(tmp_path, random):
    ids = {"batch_shape": [None, None], "dtype": "int32", "name": "ids"}
    layers = [{"module": "keras.layers", "class_name": "InputLayer", "config": ids}, old_embedding(), old_logits()]
    for number, layer in enumerate(layers):
        history = [layers[number - 1]["config"]["name"], 0, 0] if number else None
        tensor = {"shape": [None, None], "dtype": "float32", "keras_history": history}
        arguments = {"args": [{"class_name": "__keras_tensor__", "config": tensor}], "kwargs": {}}
        layer |= {"name": layer["config"]["name"], "inbound_nodes": [arguments] if number else []}
    model = {"name": "old", "layers": layers, "input_layers": ["ids", 0, 0], "output_layers": ["logits", 0, 0]}
    config = {"module": "keras.src.models.functional", "class_name": "Functional", "config": model, "registered_name": None}
    matrix = random.normal(size=(6, 4)).astype("float32")
    with h5py.File(tmp_path / "model.weights.h5", "w") as file:
        file["layers/token_embedding/vars/0"] = matrix
    with zipfile.ZipFile(tmp_path / "old.keras", "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        archive.writestr("config.json", json.dumps(config))
        archive.write(tmp_path / "model.weights.h5", "model.weights.h5")
    again = keras.models.load_model(tmp_path / "old.keras")
    assert len(again.weights) == 1 and again.get_layer("logits").embedding is again.get_layer("token_embedding")
    np.testing.assert_allclose(numpy_of(again(np.array([[3, 5]])))[0], 2 * matrix[[3, 5]] @ matrix.T, atol=1e-5)


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
