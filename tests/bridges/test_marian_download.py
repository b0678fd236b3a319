"""Published checkpoints are found by name: in the cache, or with a download that this test replaces."""

import builtins
import shutil
from unittest.mock import MagicMock

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, RevisionNotFoundError

import keras_transformer as kt
from keras_transformer.bridges.marian.download import find_folder
from tests.bridges.marian_checkpoints import SHAPES, write_checkpoint

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("original"), SHAPES[0])


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub that copies files from a folder and notes what it was asked for."""
    asked = []

    def snapshot_download(name, *, revision, allow_patterns):
        asked.append((name, revision, allow_patterns))
        target = tmp_path / "snapshot"
        target.mkdir(exist_ok=True)
        for path in hub.published.iterdir():
            if path.name in allow_patterns:
                shutil.copy(path, target)
        return str(target)

    def hub():
        return asked

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return hub


def test_a_name_is_one_of_opus_mt(hub, checkpoint):
    hub.published = checkpoint
    translator = kt.bridges.from_marian("opus-mt-en-de", revision="main")
    expected = kt.bridges.from_marian(checkpoint)
    assert (translator.tokenizer, translator.options) == (expected.tokenizer, expected.options)
    ((name, revision, files),) = hub()
    assert (name, revision) == ("Helsinki-NLP/opus-mt-en-de", "main")
    assert "config.json" in files and "model.safetensors" in files and "pytorch_model.bin" not in files
    assert not any("*" in file for file in files)


def test_weights_of_torch_where_there_are_no_others(hub, tmp_path):
    hub.published = write_checkpoint(tmp_path / "older", SHAPES[5])
    folder = find_folder("somebody/their-model")
    assert (folder / "pytorch_model.bin").is_file()
    assert [(name, files[-1]) for name, _, files in hub()] == [
        ("somebody/their-model", "model.safetensors"),
        ("somebody/their-model", "pytorch_model.bin"),
    ]


def test_offline_with_nothing_in_the_cache(monkeypatch, tmp_path):
    def snapshot_download(*_, **__):
        raise LocalEntryNotFoundError("outgoing traffic has been disabled")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    with pytest.raises(ConnectionError, match="hf download Helsinki-NLP/opus-mt-en-de --local-dir FOLDER"):
        kt.bridges.from_marian("opus-mt-en-de")


def test_offline_as_the_hub_has_it(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConnectionError, match="is not in the cache, and could not be downloaded"):
        kt.bridges.from_marian("opus-mt-xx-yy")


def test_offline_from_the_cache(monkeypatch, tmp_path, checkpoint):
    """The folders are those of huggingface_hub's cache."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--Helsinki-NLP--opus-mt-xx-yy"
    shutil.copytree(checkpoint, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert find_folder("opus-mt-xx-yy") == repository / "snapshots" / commit


def test_names_that_are_none(tmp_path, monkeypatch, checkpoint):
    monkeypatch.chdir(tmp_path)
    for name in ("./opus-mt-en-de", "../x", "a/b/c", "/no/such/folder", "opus mt", tmp_path / "nothing"):
        with pytest.raises(FileNotFoundError, match="There is no folder"):
            kt.bridges.from_marian(name)
    with pytest.raises(ValueError, match="`revision` is for published checkpoints"):
        kt.bridges.from_marian(checkpoint, revision="main")


def test_a_revision_that_is_none(monkeypatch):
    def snapshot_download(*_, **__):
        raise RevisionNotFoundError("no", response=MagicMock())

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    with pytest.raises(ValueError, match="There is no published checkpoint somebody/x with the revision 'v9'"):
        kt.bridges.from_marian("somebody/x", revision="v9")


@pytest.mark.parametrize(
    ("package", "shape", "match"),
    [("safetensors", 0, "keras3-transformer\\[marian\\]"), ("torch", 5, "keras3-transformer\\[torch\\]")],
)
def test_packages_that_are_missing(package, shape, match, monkeypatch, tmp_path):
    folder = write_checkpoint(tmp_path, SHAPES[shape])
    usual = builtins.__import__

    def without(name, *arguments, **options):
        if name == package:
            raise ImportError(name)
        return usual(name, *arguments, **options)

    from keras_transformer.bridges.marian.files import CheckpointFolder
    from keras_transformer.bridges.marian.tensors import open_tensors

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=match):
        open_tensors(CheckpointFolder(folder))
