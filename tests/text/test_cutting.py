"""Texts that are far too long: where they are cut, in Python and in a graph."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.text import MarianTokenizer, Tokenizer
from keras_transformer.text.cutting import cut_text, most_bytes
from keras_transformer.text.graph import cut_strings
from keras_transformer.text.strings import clean_text


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("", 0, ("", False)),
        ("abc", 3, ("abc", False)),
        ("abcd", 3, ("abc", True)),
        ("aä🙂b", 7, ("aä🙂", True)),
        ("aä🙂b", 6, ("aä", True)),
        ("aä🙂", 7, ("aä🙂", False)),
        ("🙂" * 1000, 9, ("🙂🙂", True)),
        ("any", None, ("any", False)),
    ],
)
def test_whole_characters_are_left(text, most, expected):
    assert cut_text(text, most) == expected
    beginnings, are_cut = cut_strings(tf.constant([text.encode()]), most)
    assert (beginnings.numpy()[0].decode(), bool(are_cut.numpy()[0])) == expected


@pytest.mark.proof("Far too long texts are cut at the same character in Python and in the served graph, whatever their bytes")
def test_the_same_in_a_graph(size, seen):
    random = np.random.default_rng(3)
    pieces = ["a", "é", "漢", "🙂", "\ufeff", "\0", " "]
    parts = [piece.encode() for piece in pieces] + [b"\xf0\x9f", b"\x80", b"\xe6\xbc", b"\xff", b"\xed\xa0\x80", b"\xc3"]
    texts = [b"".join(random.choice(np.array(parts, object), random.integers(0, 30))) for _ in range(size(300, full=20_000))]
    for most in range(0, 40, 3):
        beginnings, are_cut = cut_strings(tf.constant(texts), most)
        expected = [cut_text(clean_text(text), most) for text in texts]
        assert [text.decode() for text in beginnings.numpy()] == [text for text, _ in expected]
        assert are_cut.numpy().tolist() == [is_cut for _, is_cut in expected]
    seen(f"{len(texts):,} texts, cut at 14 places")


def test_a_text_that_has_few_tokens_is_whole():
    tokenizer = Tokenizer.train(iter(["translation translations"] * 20), vocabulary_size=285, normalization="nfkc")
    longest = max(tokenizer.tokens(list(range(tokenizer.vocabulary_size))), key=len).lstrip("▁")
    assert longest == "translations"
    mathematical = "".join(chr(ord("\N{MATHEMATICAL BOLD SMALL A}") + ord(letter) - ord("a")) for letter in longest)
    for spelled in (longest, mathematical):
        text = " ".join([spelled] * 5)
        count = len(tokenizer.encode(text))
        assert count == len(tokenizer.encode(" ".join([longest] * 5)))
        assert cut_text(text, most_bytes(tokenizer, count)) == (text, False)


def test_the_longest_piece_counts():
    model = Tokenizer.train(["the cat sat on the mat"] * 20, vocabulary_size=275).serialized
    tokenizer = MarianTokenizer(model, ["</s>", "<unk>", "▁the", "▁überraschung", "<pad>"])
    assert most_bytes(tokenizer, 10) == 4 * 10 * len("▁überraschung".encode())


def test_a_tokenizer_without_names_reads_everything():
    assert most_bytes(object(), 10) is None
