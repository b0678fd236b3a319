import keras_hub
import pytest

from keras_transformer.text import Tokenizer, TokenizerPair, TokenizerProtocol, as_tokenizer
from tests.text.conftest import trained
from tests.text.samples import sentences
from tests.text.test_files import foreign_model

WORDS = ["[PAD]", "[UNK]", "[START]", "[END]", "the", "cat", "dog", "s", "##s", "##at", "c", "."]


@pytest.fixture
def word_piece():
    return keras_hub.tokenizers.WordPieceTokenizer(vocabulary=WORDS, lowercase=True)


@pytest.fixture
def byte_pair():
    vocabulary = ["<pad>", "<s>", "</s>", "<unk>", "t", "h", "e", "Ġ", "c", "a", "th", "the", "at", "Ġc", "Ġcat"]
    merges = ["t h", "th e", "a t", "Ġ c", "Ġc at"]
    return keras_hub.tokenizers.BytePairTokenizer(vocabulary={token: id for id, token in enumerate(vocabulary)}, merges=merges)


def test_ours_are_returned_as_they_are():
    tokenizer = trained("bpe", "nfc")
    pair = TokenizerPair(tokenizer, tokenizer)
    assert as_tokenizer(tokenizer) is tokenizer
    assert as_tokenizer(pair) is pair


def test_word_piece(word_piece):
    tokenizer = as_tokenizer(word_piece)
    assert isinstance(tokenizer, TokenizerProtocol)
    assert (tokenizer.pad_id, tokenizer.unknown_id, tokenizer.start_id, tokenizer.end_id) == (0, 1, 2, 3)
    assert tokenizer.vocabulary_size == len(WORDS)
    assert tokenizer.encode("The cats.") == [4, 5, 8, 11]
    assert tokenizer.encode(["the dog", "", " ", "zebra"]) == [[4, 6], [], [], [1]]
    assert tokenizer.decode([2, 4, 5, 8, 3, 6, 0]) == "the cats"
    assert tokenizer.decode([[2, 4, 3], [3, 0, 0]]) == ["the", ""]
    assert as_tokenizer(tokenizer) is tokenizer
    assert tokenizer.source is tokenizer.target is tokenizer


def test_byte_pair(byte_pair):
    tokenizer = as_tokenizer(byte_pair)
    assert (tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.unknown_id) == (0, 1, 2, 3)
    assert tokenizer.encode("the cat") == [11, 14]
    assert tokenizer.decode([1, 11, 14, 2, 0]) == "the cat"


def test_no_graph_form_is_said_so(word_piece):
    tokenizer = as_tokenizer(word_piece)
    assert not tokenizer.has_graph_form
    assert not TokenizerPair(tokenizer, trained("bpe", "nfc")).has_graph_form
    for method in (tokenizer.graph_encode, tokenizer.graph_decode):
        with pytest.raises(
            ValueError, match=r"cannot be exported: .*WordPieceTokenizer.*Train a `keras_transformer.Tokenizer`"
        ):
            method(["the cat"])


def test_fingerprint_tells_vocabularies_apart(word_piece):
    other = keras_hub.tokenizers.WordPieceTokenizer(vocabulary=[*WORDS, "bird"], lowercase=True)
    cased = keras_hub.tokenizers.WordPieceTokenizer(vocabulary=WORDS, lowercase=False)
    fingerprints = {as_tokenizer(tokenizer).fingerprint for tokenizer in (word_piece, other, cased)}
    assert len(fingerprints) == 3
    again = keras_hub.tokenizers.WordPieceTokenizer(vocabulary=WORDS, lowercase=True)
    assert as_tokenizer(again).fingerprint == as_tokenizer(word_piece).fingerprint


def test_special_tokens_can_be_told():
    vocabulary = ["<nil>", "[UNK]", "<go>", "<stop>", "the"]
    tokenizer = keras_hub.tokenizers.WordPieceTokenizer(vocabulary=vocabulary)
    with pytest.raises(ValueError, match=r"which of its tokens stand for pad, start, end\..*pad="):
        as_tokenizer(tokenizer)
    told = as_tokenizer(tokenizer, pad="<nil>", start="<go>", end="<stop>")
    assert (told.pad_id, told.start_id, told.end_id, told.unknown_id) == (0, 2, 3, 1)


def test_special_tokens_of_model_tokenizers_are_found():
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"]
    tokenizer = as_tokenizer(keras_hub.models.BertTokenizer(vocabulary=vocabulary))
    assert (tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.unknown_id) == (0, 2, 3, 1)


def test_sentencepiece_becomes_ours_with_the_same_ids(tmp_path):
    path = tmp_path / "hub.model"
    foreign_model(path, model_type="unigram", pad_id=3)
    original = keras_hub.tokenizers.SentencePieceTokenizer(proto=str(path))
    tokenizer = as_tokenizer(original)
    assert isinstance(tokenizer, Tokenizer) and tokenizer.has_graph_form
    texts = sentences(20)
    assert tokenizer.encode(texts) == [list(map(int, original.tokenize(text))) for text in texts]
    assert [list(row) for row in tokenizer.graph_encode(texts).to_list()] == tokenizer.encode(texts)


def test_sentencepiece_without_special_pieces_asks_for_them(tmp_path):
    foreign_model(tmp_path / "hub.model")
    original = keras_hub.tokenizers.SentencePieceTokenizer(proto=str(tmp_path / "hub.model"))
    with pytest.raises(ValueError, match="no piece for pad"):
        as_tokenizer(original)
    assert as_tokenizer(original, pad="<unk>").pad_id == 0


def test_sentencepiece_that_moves_its_ids_is_wrapped(tmp_path):
    foreign_model(tmp_path / "hub.model", model_type="unigram")
    original = keras_hub.models.XLMRobertaTokenizer(proto=str(tmp_path / "hub.model"))
    tokenizer = as_tokenizer(original)
    assert not tokenizer.has_graph_form
    assert tokenizer.encode("the cat") == list(map(int, original.tokenize("the cat")))
    assert tokenizer.decode(tokenizer.encode("the cat")) == "the cat"


def test_tokenizers_that_pad_or_spell_are_refused():
    with pytest.raises(ValueError, match="sequence_length=None"):
        as_tokenizer(keras_hub.tokenizers.WordPieceTokenizer(vocabulary=WORDS, sequence_length=8))
    with pytest.raises(ValueError, match='dtype="int32"'):
        as_tokenizer(keras_hub.tokenizers.WordPieceTokenizer(vocabulary=WORDS, dtype="string"))


def test_ids_outside_the_vocabulary_are_refused(word_piece):
    with pytest.raises(ValueError, match="from 0 to 11"):
        as_tokenizer(word_piece).decode([12])


def test_other_objects_are_refused_with_what_they_lack():
    class Half:
        def encode(self, text):
            return []

    with pytest.raises(TypeError, match=r"Half, which lacks .*pad_id.*decode.*graph_encode"):
        as_tokenizer(Half())
    with pytest.raises(TypeError, match="lacks"):
        as_tokenizer("tokenizer.model")
