import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.data.corpora import Corpus, Pairs

LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))


def small_corpus(**splits):
    return Corpus("small", "en", "de", {name: Pairs([name], [name.upper()]) for name in splits or {"train": 0, "test": 0}})


def test_pairs_are_a_sequence_of_twos():
    pairs = Pairs(["one", "two", "three"], ["eins", "zwei", "drei"])
    assert len(pairs) == 3
    assert list(pairs) == [("one", "eins"), ("two", "zwei"), ("three", "drei")]
    assert pairs[-1] == ("three", "drei")
    assert pairs[:2] == Pairs(["one", "two"], ["eins", "zwei"])


def test_pairs_need_equal_lengths():
    with pytest.raises(ValueError, match="2 source and 1 target"):
        Pairs(["one", "two"], ["eins"])


def test_splits_have_names_and_the_usual_ones_are_attributes():
    corpus = small_corpus(train=0, validation=0, test=0, extra=0)
    assert (corpus.train, corpus.validation, corpus.test) == (corpus["train"], corpus["validation"], corpus["test"])
    assert corpus["extra"].source == ["extra"]


def test_the_first_of_several_tests_is_the_test():
    assert small_corpus(train=0, test_2016=0, test_2017=0).test.source == ["test_2016"]
    assert small_corpus(train=0, test_2016=0, test=0).test.source == ["test"]


@pytest.mark.parametrize("read", [lambda c: c["dev"], lambda c: c.validation])
def test_unknown_splits_are_refused_with_the_known_ones(read):
    with pytest.raises(ValueError, match=r"it has \"train\", \"test\". Received: '(dev|validation)'"):
        read(small_corpus())


def test_a_corpus_without_a_test_split_says_so():
    with pytest.raises(ValueError, match="Received: 'test'"):
        _ = small_corpus(train=0).test


@given(st.lists(st.tuples(LINE, LINE)))
def test_written_files_hold_a_sentence_a_line(tmp_path_factory, lines):
    directory = tmp_path_factory.mktemp("corpus") / "new" / "folder"
    corpus = Corpus("any", "en", "fr", {"train": Pairs([a for a, _ in lines], [b for _, b in lines])})
    paths = corpus.write(directory)
    assert paths == [directory / "train.en", directory / "train.fr"]
    texts = [path.read_bytes().decode("utf8").split("\n")[:-1] for path in paths]
    assert list(zip(*texts, strict=True)) == lines


def test_a_sentence_with_a_line_break_cannot_be_a_line(tmp_path):
    with pytest.raises(ValueError, match=r"line breaks.*'b\\nc', number 2"):
        Corpus("broken", "en", "de", {"train": Pairs(["a", "b\nc"], ["a", "b c"])}).write(tmp_path)
