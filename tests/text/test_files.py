import io

import pytest
import sentencepiece

from keras_transformer.text import Tokenizer, TokenizerPair, load_tokenizer
from keras_transformer.text.files import write_bytes
from tests.text.conftest import trained
from tests.text.samples import sentences


def foreign_model(path, **options):
    """Trains a model with SentencePiece itself."""
    written = io.BytesIO()
    settings = {"model_type": "bpe", "vocab_size": 150, "minloglevel": 2, "hard_vocab_limit": False} | options
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences(200)), model_writer=written, **settings)
    path.write_bytes(written.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())


def test_saving_and_loading(tokenizer, tmp_path):
    path = tmp_path / "new folder" / "tokenizer.model"
    tokenizer.save(path)
    assert Tokenizer.load(path) == load_tokenizer(str(path)) == tokenizer
    assert path.read_bytes() == tokenizer.serialized
    assert [file.name for file in path.parent.iterdir()] == ["tokenizer.model"]


def test_a_failed_write_leaves_the_older_file_and_nothing_else(tmp_path):
    write_bytes(tmp_path / "file", b"old")
    with pytest.raises(TypeError):
        write_bytes(tmp_path / "file", "not bytes")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("load", [Tokenizer.load, TokenizerPair.load, load_tokenizer])
def test_missing_file_is_named(tmp_path, load):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="a file is wanted"):
        load(tmp_path)


def test_every_cut_off_file_is_refused(tmp_path):
    whole = trained("bpe", "identity").serialized
    for length in range(0, len(whole), 97):
        (tmp_path / "cut.model").write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"cut\.model: not a whole SentencePiece model"):
            Tokenizer.load(tmp_path / "cut.model")


@pytest.mark.parametrize("content", [b"some text\n", b"\x89PNG\r\n", b"{}", b"\x1f\x8b\x08", b"\0" * 50])
def test_foreign_file_is_refused(tmp_path, content):
    (tmp_path / "foreign").write_bytes(content)
    with pytest.raises(ValueError, match="not a whole SentencePiece model"):
        load_tokenizer(tmp_path / "foreign")


def test_models_trained_elsewhere_load_with_their_own_ids(tmp_path):
    path = tmp_path / "foreign.model"
    processor = foreign_model(path, model_type="unigram", pad_id=3, bos_id=2, eos_id=1, unk_id=0)
    tokenizer = Tokenizer.load(path)
    assert (tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.unknown_id) == (3, 2, 1, 0)
    assert tokenizer.encode(sentences(20)) == processor.encode(sentences(20))
    assert tokenizer.decode([2, *tokenizer.encode("the cat"), 1, 3]) == "the cat"


def test_missing_special_pieces_are_asked_for(tmp_path):
    path = tmp_path / "foreign.model"
    foreign_model(path, bos_id=-1)
    with pytest.raises(ValueError, match=r"no piece for pad, start.*Tokenizer\.load\(path, pad="):
        Tokenizer.load(path)
    tokenizer = Tokenizer.load(path, pad="<unk>", start="</s>")
    assert tokenizer.pad_id == tokenizer.unknown_id and tokenizer.start_id == tokenizer.end_id
    tokenizer.save(tmp_path / "mapped.model")
    assert Tokenizer.load(tmp_path / "mapped.model") == tokenizer
    with pytest.raises(ValueError, match="no piece '<nothing>' that could stand for pad"):
        Tokenizer.load(path, pad="<nothing>")


@pytest.mark.parametrize(
    "options",
    [
        {"byte_fallback": True, "vocab_size": 400, "add_dummy_prefix": False},
        {"byte_fallback": True, "vocab_size": 400, "remove_extra_whitespaces": False},
        {"model_type": "char"},
    ],
)
def test_other_settings_of_sentencepiece_decode_as_there(tmp_path, options):
    processor = foreign_model(tmp_path / "foreign.model", pad_id=3, **options)
    tokenizer = Tokenizer.load(tmp_path / "foreign.model")
    texts = [*sentences(50), " two  spaces "]
    assert tokenizer.decode(tokenizer.encode(texts)) == processor.decode(processor.encode(texts))
    assert tokenizer.decode(tokenizer.encode(sentences(50))) == tokenizer.normalize(sentences(50)) == sentences(50)


def test_spaces_at_the_ends_of_pieces(tmp_path):
    foreign_model(tmp_path / "foreign.model", pad_id=3, byte_fallback=True, vocab_size=400, treat_whitespace_as_suffix=True)
    tokenizer = Tokenizer.load(tmp_path / "foreign.model")
    assert tokenizer.tokens("the cat")[0] == "the▁"
    assert tokenizer.decode(tokenizer.encode(sentences(50))) == tokenizer.normalize(sentences(50)) == sentences(50)
    decoded = tokenizer.graph_decode(tokenizer.graph_encode(sentences(50))).numpy()
    assert [text.decode() for text in decoded] == sentences(50)
