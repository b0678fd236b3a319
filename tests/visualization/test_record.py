"""The record of attention, its files, and words from pieces."""

import numpy as np
import pytest

from keras_transformer.attention import KINDS, Attention
from keras_transformer.attention.words import join_pieces, labels, text_of, word_groups
from tests.visualization.records import make_record


def test_rows_and_columns():
    record = make_record()
    assert record.query_tokens("cross") == record.output_tokens
    assert record.key_tokens("cross") == record.source_tokens
    assert record.key_tokens("decoder_self")[0] == "<s>"
    assert record["cross"] is record.cross
    assert record.source == "The animal didn't cross." and record.target == "Das Tier überquerte nicht."
    with pytest.raises(ValueError, match=r"must be one of \('encoder_self', 'decoder_self', 'cross'\). Received: 'other'"):
        record["other"]


def test_average():
    record = make_record()
    for kind in KINDS:
        np.testing.assert_allclose(record.average()[kind][:, 0], record[kind].mean(axis=1), rtol=1e-6)
        assert record.average()[kind].dtype == np.float32


def test_shapes_are_checked():
    record = make_record()
    with pytest.raises(
        ValueError, match=r"`encoder_self` must have the shape \(layers, heads, 8, 8\), for there are 8 source_tok"
    ):
        Attention(record.source_tokens[1:], record.target_tokens, record.output_tokens, *(record[kind] for kind in KINDS))
    with pytest.raises(ValueError, match=r"Received: an array of shape \(3, 9, 9\)"):
        Attention(
            record.source_tokens,
            record.target_tokens,
            record.output_tokens,
            record.encoder_self[0],
            record.decoder_self,
            record.cross,
        )


def test_files(tmp_path):
    record = make_record(source=["▁a\x00", "▁\ud800", "</s>"])
    record.save(tmp_path / "deep" / "record.npz")
    again = Attention.load(tmp_path / "deep" / "record.npz")
    for kind in KINDS:
        np.testing.assert_array_equal(again[kind], record[kind])
    assert (again.source_tokens, again.target_tokens) == (record.source_tokens, record.target_tokens)
    assert again.output_tokens == record.output_tokens
    with np.load(tmp_path / "deep" / "record.npz", allow_pickle=False) as file:
        assert file["cross"].shape == record.cross.shape  # Anybody can read it.


@pytest.mark.parametrize("damage", [lambda content: content[:200], lambda content: b"no archive", lambda content: b""])
def test_damaged_files(tmp_path, damage):
    path = tmp_path / "record.npz"
    make_record().save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"record.npz is not a whole record of attention"):
        Attention.load(path)


def test_files_of_others(tmp_path):
    np.savez(tmp_path / "other.npz", cross=np.zeros(3))
    with pytest.raises(ValueError, match=r"other.npz is not a whole record of attention"):
        Attention.load(tmp_path / "other.npz")
    np.savez(tmp_path / "deep.npz", header=np.frombuffer(b"[" * 100_000, "uint8"))
    with pytest.raises(ValueError, match=r"deep.npz is not a whole record of attention.*maximum recursion depth"):
        Attention.load(tmp_path / "deep.npz")
    np.savez(tmp_path / "pickle.npz", header=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"pickle.npz is not a whole record"):
        Attention.load(tmp_path / "pickle.npz")
    with pytest.raises(FileNotFoundError, match="There is no record of attention at"):
        Attention.load(tmp_path / "nothing.npz")


def test_words():
    record = make_record()
    words = record.words()
    assert words.source_tokens == ["The", "animal", "didn't", "cross", ".", "</s>"]
    assert words.target_tokens == ["<s>", "Das", "Tier", "überquerte", "nicht", "."]
    assert words.output_tokens == ["Das", "Tier", "überquerte", "nicht", ".", "</s>"]
    for kind in KINDS:
        np.testing.assert_allclose(words[kind].sum(-1), 1.0, atol=1e-5)
    # "überquerte" is three rows of the decoder, "animal" two columns.
    by_hand = record.cross[1, 2, 2:5, 1:3].sum(axis=-1).mean()
    assert words.cross[1, 2, 2, 1] == pytest.approx(by_hand, abs=1e-6)
    again = words.words()
    assert again.source_tokens == words.source_tokens
    np.testing.assert_array_equal(again.cross, words.cross)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["▁a", "b", "▁c"], ["ab", "c"]),
        (["<s>", "b", "▁c", "</s>"], ["<s>", "b", "c", "</s>"]),
        (["▁", "<0xF0>", "<0x9F>", "<0x99>", "<0x82>", "▁x"], ["🙂", "x"]),
        (["▁<0xF0>", "<0xF0>"], ["<0xF0>\ufffd"]),
        (["[START]", "ani", "##mal", "s", "[END]"], ["[START]", "animal", "s", "[END]"]),
        (["▁didn", "'", "t", "!", "?", "</s>"], ["didn't", "!", "?", "</s>"]),
        (["▁(", "a", ")"], ["(a", ")"]),
        (["17", "4"], ["17", "4"]),
        ([], []),
    ],
)
def test_pieces_become_words(tokens, words):
    assert [join_pieces([tokens[place] for place in group]) for group in word_groups(tokens)] == words


def test_labels():
    assert labels(["▁The", "▁ani", "mal", ".", "</s>"]) == ["The", "ani", "·mal", ".", "</s>"]
    assert labels(["▁", "▁a\n", "\u202e"]) == ["␣", "a\ufffd", "\ufffd"]
    assert text_of(["The", "cat"]) == "The cat"
