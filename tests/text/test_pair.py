import zipfile

import pytest

from keras_transformer.text import Tokenizer, TokenizerPair, load_tokenizer
from tests.text.conftest import trained


@pytest.fixture
def pair():
    return TokenizerPair(trained("bpe", "nfc"), trained("unigram", "identity"))


def test_each_side_has_its_own_tokenizer(pair):
    assert pair.source == trained("bpe", "nfc")
    assert pair.target == trained("unigram", "identity")
    assert pair.has_graph_form
    assert pair.fingerprint != TokenizerPair(pair.target, pair.source).fingerprint


def test_saving_and_loading_one_file(pair, tmp_path):
    pair.save(tmp_path / "pair.zip")
    assert TokenizerPair.load(tmp_path / "pair.zip") == load_tokenizer(tmp_path / "pair.zip") == pair
    assert [file.name for file in tmp_path.iterdir()] == ["pair.zip"]
    first = (tmp_path / "pair.zip").read_bytes()
    pair.save(tmp_path / "pair.zip")
    assert (tmp_path / "pair.zip").read_bytes() == first


def test_damaged_and_foreign_archives_are_refused(pair, tmp_path):
    path = tmp_path / "pair.zip"
    pair.save(path)
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[2000] ^= 1
    for wrong in (content[:-100], bytes(damaged), b"PK not an archive"):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=r"pair\.zip: not a whole file"):
            load_tokenizer(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.txt", "text")
    with pytest.raises(ValueError, match="not a whole file"):
        TokenizerPair.load(path)


def test_a_single_tokenizer_is_no_pair(pair, tmp_path):
    pair.source.save(tmp_path / "single.model")
    with pytest.raises(ValueError, match="single tokenizer"):
        TokenizerPair.load(tmp_path / "single.model")
    assert isinstance(load_tokenizer(tmp_path / "single.model"), Tokenizer)


def test_both_sides_must_be_tokenizers_with_one_pad_id(pair):
    with pytest.raises(TypeError, match="`target` must be a tokenizer"):
        TokenizerPair(pair.source, "tokenizer.model")

    class Other(Tokenizer):
        pad_id = 7

    with pytest.raises(ValueError, match=r"source\.pad_id=0, target\.pad_id=7"):
        TokenizerPair(pair.source, Other(pair.target.serialized))
