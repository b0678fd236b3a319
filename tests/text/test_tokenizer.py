import pickle
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from keras_transformer.text import Tokenizer, TokenizerProtocol
from tests.text.conftest import VOCABULARY_SIZE, trained
from tests.text.samples import hostile_bytes, hostile_ids, hostile_strings, sentences

UNICODE = strategies.text(strategies.characters(exclude_categories=["Cs"]))


def check_round_trips(check, examples):
    """Runs a property over arbitrary valid Unicode."""
    settings = hypothesis.settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    settings(hypothesis.given(UNICODE)(check))()


def byte_id(tokenizer, byte):
    return next(id for id in range(260) if tokenizer.tokens([id]) == [f"<0x{byte:02X}>"])


@pytest.mark.proof("decode(encode(x)) == normalize(x) for arbitrary valid Unicode, BPE and unigram, every normalization")
def test_decoding_gives_the_normalized_text(any_tokenizer, size, seen):
    def check(text):
        assert any_tokenizer.decode(any_tokenizer.encode(text)) == any_tokenizer.normalize(text)

    examples = size(100, full=3000)
    check_round_trips(check, examples)
    texts = hostile_strings(size(200, full=20_000))
    assert any_tokenizer.decode(any_tokenizer.encode(texts)) == any_tokenizer.normalize(texts)
    seen(f"{examples:,} generated and {len(texts):,} hostile strings round-trip")


@pytest.mark.proof("With the identity rule decode(encode(x)) == x, but for U+2581, which becomes a space")
def test_identity_keeps_every_character(model, size, seen):
    tokenizer = trained(model, "identity")

    def check(text):
        assert tokenizer.decode(tokenizer.encode(text)) == text.replace("\u2581", " ")

    examples = size(200, full=3000)
    check_round_trips(check, examples)
    for text in hostile_strings(size(200, full=20_000)):
        check(text)
    seen(f"{examples:,} generated strings, leading, trailing and double spaces among them, came back unchanged")


def test_text_of_a_hundred_thousand_characters(tokenizer):
    for text in ("Straße " * 14_285, "x" * 100_000, "漢" * 100_000):
        assert tokenizer.decode(tokenizer.encode(text)) == text.strip()


def test_what_is_not_unicode_becomes_replacement_characters(tokenizer):
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"
    assert tokenizer.decode(tokenizer.encode(b"a\xffb\xe2\x96")) == "a\ufffdb\ufffd"
    for text in hostile_bytes(200):
        assert tokenizer.encode(text) == tokenizer.encode(text.decode("utf-8", "replace"))


def test_nothing_is_unknown_and_no_special_id_comes_from_text(tokenizer):
    ids = {id for row in tokenizer.encode([*hostile_strings(300), "<s> </s> <pad> <unk>"]) for id in row}
    assert not ids & {tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.unknown_id}
    assert max(ids) < tokenizer.vocabulary_size


def test_one_text_or_several():
    tokenizer = trained("bpe", "nfc")
    one = tokenizer.encode("the the")
    assert tokenizer.encode(["the the", "", "a dog"]) == [one, [], tokenizer.encode("a dog")]
    assert tokenizer.encode(("the the",)) == tokenizer.encode(np.array(["the the"])) == [one]
    assert tokenizer.encode([]) == []
    assert tokenizer.decode([one, []]) == ["the the", ""]
    assert tokenizer.decode([]) == ""
    assert tokenizer.tokens("the the") == tokenizer.tokens(one) == ["▁the", "▁the"]
    assert (
        tokenizer.tokens(["the the", "a"])
        == tokenizer.tokens([one, tokenizer.encode("a")])
        == [["▁the", "▁the"], tokenizer.tokens("a")]
    )
    assert tokenizer.normalize([" a ", "b"]) == ["a", "b"]


def test_what_is_no_text_is_refused(tokenizer):
    with pytest.raises(TypeError, match=r"must be a string.*Received: 3 of type int"):
        tokenizer.encode(["a", 3])


def test_decoding_stops_at_the_end_and_skips_pad_and_start(tokenizer):
    ids = tokenizer.encode("the cat")
    pad, start, end = tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id
    batch = np.array([[start, *ids, end, pad, pad], [start, *ids, pad, pad, end], [end, *ids, pad, pad, start]], "int64")
    assert tokenizer.decode(batch) == ["the cat", "the cat", ""]
    assert tokenizer.decode(batch[0]) == "the cat"
    assert tokenizer.decode([batch[0], ids]) == ["the cat", "the cat"]


def test_any_ids_decode_to_valid_text(tokenizer):
    for text in tokenizer.decode(hostile_ids(500, tokenizer.vocabulary_size)):
        assert text.encode("utf-8").decode("utf-8") == text


def test_bytes_that_make_no_character_decode_to_replacement_characters(tokenizer):
    broken = [byte_id(tokenizer, byte) for byte in (0xC3, 0xE2, 0x96)]
    assert tokenizer.decode(broken) == "\ufffd\ufffd"
    assert tokenizer.decode([byte_id(tokenizer, byte) for byte in "▁".encode()]) == "▁"


@pytest.mark.parametrize("ids", [[-1], [3, VOCABULARY_SIZE], [[5], [10**9]]])
def test_ids_outside_the_vocabulary_are_refused(tokenizer, ids):
    with pytest.raises(ValueError, match=f"from 0 to {VOCABULARY_SIZE - 1}"):
        tokenizer.decode(ids)


def test_ids_must_be_integers(tokenizer):
    with pytest.raises(ValueError, match="must be integers"):
        tokenizer.decode([0.5])


def test_a_batch_as_flat_arrays(tokenizer):
    texts = [*sentences(50), "", *hostile_strings(20)]
    ids, lengths = tokenizer.encode_batch(texts)
    assert ids.dtype == lengths.dtype == np.int32
    rows = np.split(ids, np.cumsum(lengths)[:-1])
    assert [row.tolist() for row in rows] == tokenizer.encode(texts)
    one_thread = tokenizer.encode_batch(texts, num_threads=1)
    assert np.array_equal(ids, one_thread[0]) and np.array_equal(lengths, one_thread[1])
    assert [array.tolist() for array in tokenizer.encode_batch([])] == [[], []]


def test_special_ids_and_the_protocol(tokenizer):
    assert isinstance(tokenizer, TokenizerProtocol)
    assert (tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.unknown_id) == (0, 1, 2, 3)
    assert tokenizer.source is tokenizer.target is tokenizer
    assert tokenizer.vocabulary_size == VOCABULARY_SIZE
    assert f"fingerprint='{tokenizer.fingerprint[:8]}'" in repr(tokenizer)


def test_equality_pickling_and_fingerprint(tokenizer):
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy == tokenizer and hash(copy) == hash(tokenizer) and copy.fingerprint == tokenizer.fingerprint
    other = trained("bpe", "nfkc")
    assert other != tokenizer and other.fingerprint != tokenizer.fingerprint


def test_threads_share_a_tokenizer(tokenizer):
    texts = sentences(200)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: tokenizer.encode(texts), range(8)))
    assert all(result == tokenizer.encode(texts) for result in results)


def test_default_normalization_changes_nothing_one_can_see():
    tokenizer = trained("bpe", "nfc")
    assert tokenizer.normalize("m² ½ … ﬁ „x“ — 👩\u200d🚀 ICH") == "m² ½ … ﬁ „x“ — 👩\u200d🚀 ICH"
    assert tokenizer.normalize(" a\t b\u00a0\u3000c \n") == "a b c"
    assert tokenizer.normalize("Kaf\u00adfee\u200b\ufeff\x07") == "Kaffee"
    for text in ("Müller", "ệ", "각", "Å"):
        for form in ("NFD", "NFC"):
            assert tokenizer.normalize(unicodedata.normalize(form, text)) == unicodedata.normalize("NFC", text)
    assert tokenizer.normalize("e\u0302\u0323") == "ệ"  # (The marks in the other order.)


def test_compatibility_normalizations_fold():
    assert trained("bpe", "nfkc").normalize("m²  ﬁ \uff21") == "m2 fi A"
    assert trained("bpe", "nfkc_casefold").normalize("m²  ﬁ \uff21 Straße") == "m2 fi a straße"


def test_tokenizer_needs_a_model():
    with pytest.raises(ValueError, match="not a whole SentencePiece model"):
        Tokenizer(b"")
