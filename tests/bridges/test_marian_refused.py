"""Checkpoints that are damaged, hostile or of another kind are refused with a reason, and run nothing."""

import json
import os
import pickle
import shutil
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import keras_transformer as kt
from tests.bridges.marian_checkpoints import SHAPES, write_checkpoint

pytest.importorskip("transformers")
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A checkpoint with safetensors, and an older one."""
    return [write_checkpoint(tmp_path_factory.mktemp("original"), shape) for shape in (SHAPES[0], SHAPES[5])]


@pytest.fixture
def checkpoint(originals, tmp_path):
    return shutil.copytree(originals[0], tmp_path / "checkpoint")


@pytest.fixture
def older(originals, tmp_path):
    return shutil.copytree(originals[1], tmp_path / "older")


def assert_refused(folder, match, error=ValueError):
    with pytest.raises(error, match=match) as caught:
        kt.bridges.from_marian(folder)
    return str(caught.value)


def change_json(path, **fields):
    """Changes fields of a file of JSON; `None` takes one out."""
    content = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
    content = {name: value for name, value in {**content, **fields}.items() if value is not None}
    path.write_text(json.dumps(content), encoding="utf8")


def change_tensors(path, **changes):
    """Changes tensors of a file; `None` takes one out."""
    tensors = {**load_file(path), **{name.replace("__", "."): value for name, value in changes.items()}}
    save_file({name: value for name, value in tensors.items() if value is not None}, path)


class Bomb:
    """An object whose unpickling writes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def write_pickled(path, content, kind):
    """Writes a pickle as torch does, as it once did, or plainly."""
    if kind == "plain":
        path.write_bytes(pickle.dumps(content))
    elif kind == "old":
        torch.save(content, path, _use_new_zipfile_serialization=False)
    else:
        torch.save(content, path)


@pytest.mark.proof("A checkpoint with code in its pickle is refused, and the code does not run")
@pytest.mark.parametrize("kind", ["new", "old", "plain"])
def test_code_in_a_pickle(older, tmp_path, kind, seen):
    state = torch.load(older / "pytorch_model.bin", weights_only=True)
    trap = tmp_path / "executed"
    for content in (Bomb(trap), {**state, "model.shared.weight": Bomb(trap)}, {**state, "extra": Bomb(trap)}):
        write_pickled(older / "pytorch_model.bin", content, kind)
        message = assert_refused(older, "holds more than tensors, or is damaged; nothing of it was executed")
        assert not trap.exists()
    seen(message.partition("; ")[2][:100])


def test_other_things_in_a_pickle(older):
    path = older / "pytorch_model.bin"
    for content, match in [
        ([1, 2], "must hold tensors by name"),
        ({"model.shared.weight": 3}, "must hold tensors by name"),
        ({"model.shared.weight": torch.ones(2, dtype=torch.int64)}, "must hold floating-point numbers"),
    ]:
        torch.save(content, path)
        assert_refused(older, match)


@pytest.mark.proof("A checkpoint that was cut off anywhere is refused")
@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "generation_config.json", "vocab.json", "source.spm", "target.spm"]
)
def test_cut_files(checkpoint, name, size, seen):
    content = (checkpoint / name).read_bytes().rstrip()
    cuts = np.unique(np.linspace(0, len(content) - 1, size(5, full=200)).astype(int))
    for length in cuts:
        (checkpoint / name).write_bytes(content[:length])
        assert name.partition(".")[0] in assert_refused(checkpoint, "cut off|damaged|not a whole|must have|is not JSON")
    seen(f"{name}: cut at {len(cuts)} places")


def test_cut_pickle(older, size):
    content = (older / "pytorch_model.bin").read_bytes()
    for length in np.unique(np.linspace(0, len(content) - 1, size(5, full=100)).astype(int)):
        (older / "pytorch_model.bin").write_bytes(content[:length])
        assert_refused(older, "holds more than tensors, or is damaged")


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", "target.spm", "model.safetensors"])
def test_missing_files(checkpoint, name):
    (checkpoint / name).unlink()
    assert_refused(checkpoint, "There (is|are) no ", FileNotFoundError)


@pytest.mark.proof("Tensors that are missing, unknown, of another shape, or no numbers are refused by name")
def test_wrong_tensors(checkpoint):
    path = checkpoint / "model.safetensors"
    whole = path.read_bytes()
    tensors = load_file(path)
    embedding = next(name for name in tensors if "shared" in name or "embed_tokens" in name)
    layer = "model.encoder.layers.1.fc1.weight"
    for changes, match in [
        ({layer: None}, rf"is without {layer}"),
        ({embedding: None}, "is without model.shared.weight"),
        ({layer: tensors[layer].T.copy()}, rf"{layer} is \(32, 64\) instead of \(64, 32\)"),
        ({embedding: tensors[embedding][:-1]}, "does not fit config.json"),
        ({"final_logits_bias": np.zeros((1, 3), "float32")}, "final_logits_bias is"),
        ({"model.encoder.layers.2.fc1.weight": tensors[layer]}, "has unknown tensors: model.encoder.layers.2.fc1.weight"),
        ({layer: np.full_like(tensors[layer], np.nan)}, "not finite numbers"),
        ({layer: tensors[layer].astype("int32")}, "must hold floating-point numbers"),
        ({"lm_head.weight": tensors[embedding] + 1}, "differ, but config.json says that they are one matrix"),
        ({"model.encoder.embed_positions.weight": np.ones((64, 32), "float32")}, "are not sinusoids"),
    ]:
        change_tensors(path, **changes)
        assert_refused(checkpoint, match)
        path.write_bytes(whole)
    kt.bridges.from_marian(checkpoint)


def test_other_things_as_added_tokens(checkpoint):
    for later in (5, [1], {"0": 5}, {"0": ["</s>"]}):
        change_json(checkpoint / "tokenizer_config.json", added_tokens_decoder=later)
        assert_refused(checkpoint, "the added token")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_read(checkpoint, dtype):
    from safetensors.torch import load_file as load
    from safetensors.torch import save_file as save

    path = checkpoint / "model.safetensors"
    halved = {name: tensor.to(getattr(torch, dtype)) for name, tensor in load(path).items()}
    save(halved, path)
    model = kt.bridges.from_marian(checkpoint).model
    kernel = next(one for one in model.weights if one.path == "encoder_block_1/feed_forward/hidden/kernel")
    expected = halved["model.encoder.layers.1.fc1.weight"].float().numpy().T
    assert np.array_equal(kernel.numpy() if hasattr(kernel, "numpy") else np.asarray(kernel), expected)


@pytest.mark.proof(
    "A file that is a link out of the checkpoint's folder is refused, and so is a setting that names one elsewhere"
)
def test_paths_that_climb_out(checkpoint, tmp_path):
    for name in ("config.json", "vocab.json", "source.spm", "model.safetensors", "tokenizer_config.json"):
        outside = tmp_path / f"outside-{name}"
        (checkpoint / name).rename(outside)
        for target in (outside, f"../{outside.name}"):
            (checkpoint / name).symlink_to(target)
            assert_refused(checkpoint, "leads out of the folder")
            (checkpoint / name).unlink()
        outside.rename(checkpoint / name)
    (checkpoint / "generation_config.json").unlink()
    (checkpoint / "generation_config.json").symlink_to("nothing")
    assert_refused(checkpoint, "is not a file")
    (checkpoint / "generation_config.json").unlink()
    for field, path in {"source_spm": "../source.spm", "target_vocab_file": "/etc/passwd", "vocab": "../../vocab.json"}.items():
        change_json(checkpoint / "tokenizer_config.json", **{field: path})
        assert_refused(checkpoint, f"{field}='{path}'")
        change_json(checkpoint / "tokenizer_config.json", **{field: None})
    kt.bridges.from_marian(checkpoint)


def test_the_cache_of_the_hub_may_have_its_links(checkpoint, tmp_path):
    repository = tmp_path / "models--Helsinki-NLP--opus-mt-en-de"
    snapshot, blobs = repository / "snapshots" / "abc", repository / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, path in enumerate(sorted(checkpoint.iterdir())):
        shutil.copy(path, blobs / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    translator, expected = kt.bridges.from_marian(snapshot), kt.bridges.from_marian(checkpoint)
    assert (translator.tokenizer, translator.options) == (expected.tokenizer, expected.options)
    for own, other in zip(translator.model.get_weights(), expected.model.get_weights(), strict=True):
        assert np.array_equal(own, other)


@pytest.mark.proof("Settings that would change translations and are not supported are refused by name")
def test_unsupported_settings(checkpoint, seen):
    files = {
        "config.json": {
            "model_type": "bart",
            "architectures": ["MarianForCausalLM"],
            "normalize_before": True,
            "normalize_embedding": True,
            "add_final_layer_norm": True,
            "static_position_embeddings": False,
            "activation_function": "gelu_new",
            "pruned_heads": {"0": [1]},
            "quantization_config": {"bits": 8},
            "is_encoder_decoder": False,
        },
        "generation_config.json": {
            "do_sample": True,
            "num_beam_groups": 2,
            "repetition_penalty": 1.2,
            "encoder_repetition_penalty": 1.2,
            "no_repeat_ngram_size": 3,
            "encoder_no_repeat_ngram_size": 3,
            "forced_bos_token_id": 4,
            "exponential_decay_length_penalty": [5, 1.1],
            "begin_suppress_tokens": [3],
            "sequence_bias": [[[3], 1.0]],
            "guidance_scale": 2.0,
            "stop_strings": ["."],
            "force_words_ids": [[3]],
            "bad_words_ids": [[3, 4]],
            "suppress_tokens": [0],
            "eos_token_id": [0, 1],
            "decoder_start_token_id": 4,
            "forced_eos_token_id": 2,
            "a_setting_of_the_future": 1,
            "num_beams": "4",
            "max_length": [20],
            "early_stopping": "soon",
            "length_penalty": "1",
        },
        "tokenizer_config.json": {
            "sp_model_kwargs": {"enable_sampling": True},
            "split_special_tokens": True,
            "additional_special_tokens": ["<name>"],
            "added_tokens_decoder": {"0": {"content": "</s>", "lstrip": True}},
            "extra_special_tokens": [["<name>"], {"content": 3}],
            "eos_token": 3,
        },
    }
    for name, settings in files.items():
        path = checkpoint / name
        whole = path.read_bytes()
        for field, value in settings.items():
            change_json(path, **{field: value})
            message = assert_refused(checkpoint, None)
            assert name in message, message
            assert any(word in message for word in (field, "the added token", "Banned tokens", "names of special tokens")), (
                message
            )
            path.write_bytes(whole)
    seen(f"{sum(map(len, files.values()))} settings")


def test_settings_that_change_nothing(checkpoint):
    added = {"0": {"content": "</s>", "lstrip": False, "rstrip": False, "special": True}}
    change_json(checkpoint / "config.json", id2label={"0": "A"}, use_cache=False, pruned_heads={}, normalize_before=False)
    change_json(checkpoint / "generation_config.json", do_sample=False, top_k=50, temperature=1.0, repetition_penalty=1.0)
    change_json(checkpoint / "tokenizer_config.json", added_tokens_decoder=added, clean_up_tokenization_spaces=True)
    translator = kt.bridges.from_marian(checkpoint)
    assert translator.tokenizer.target.decode(translator.tokenizer.target.encode("the cat")) == "the cat"


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"d_model": "32"}, "`d_model` must be of the kind"),
        ({"d_model": 10**8}, "does not fit config.json"),
        ({"d_model": 10**12}, "`model_dim` must be an integer from 1 to"),
        ({"d_model": -3}, "does not describe a model"),
        ({"encoder_attention_heads": 5}, "does not describe a model"),
        ({"scale_embedding": 1}, "`scale_embedding` must be of the kind"),
        ({"encoder_layers": 3}, "is without model.encoder.layers.2"),
        ({"encoder_layers": 1000}, "tensors; config.json asks for 1000 layers"),
        ({"encoder_layers": 10**12}, "`num_encoder_layers` must be an integer from 1 to 1000"),
        ({"encoder_layers": 1}, "has unknown tensors"),
        ({"vocab_size": 10**9}, "vocab.json must have one token for each"),
        ({"pad_token_id": 3}, "do not belong together|must be 3"),
        ({"eos_token_id": 10**6}, "does not describe a model"),
        ({"eos_token_id": True}, "`eos_token_id` must be of the kind"),
    ],
)
def test_sizes_that_cannot_be(checkpoint, fields, match):
    change_json(checkpoint / "config.json", **fields)
    assert_refused(checkpoint, match)


def test_vocabularies_that_cannot_be(checkpoint):
    path = checkpoint / "vocab.json"
    whole = json.loads(path.read_text(encoding="utf8"))
    tokens = list(whole)
    for content, match in [
        ({**whole, tokens[5]: 6}, "one token for each"),
        ({**whole, tokens[5]: "5"}, "one token for each"),
        ({**whole, tokens[5]: True}, "one token for each"),
        ({**whole, tokens[5]: -1}, "one token for each"),
        (
            {token: id for token, id in whole.items() if token != "<unk>"} | {"▁instead": 1},
            "The token for unknown is not among",
        ),
        ({**whole, "</s>": whole["<pad>"], "<pad>": 0}, "do not belong together"),
        ([1], "must hold an object of JSON"),
    ]:
        path.write_text(json.dumps(content), encoding="utf8")
        assert_refused(checkpoint, match)
    path.write_bytes(b"[" * 100_000)
    assert_refused(checkpoint, "is not JSON")


def test_weights_of_other_kinds(checkpoint):
    (checkpoint / "model.safetensors").rename(checkpoint / "model-00001-of-00002.safetensors")
    (checkpoint / "model.safetensors.index.json").write_text('{"weight_map": {"lm_head.weight": "../../x"}}')
    assert_refused(checkpoint, "There are no weights", FileNotFoundError)
    with zipfile.ZipFile(checkpoint / "pytorch_model.bin", "w") as archive:
        archive.writestr("archive/data.pkl", b"cos\nsystem\n(S'exit 1'\ntR.")
    assert_refused(checkpoint, "nothing of it was executed")
