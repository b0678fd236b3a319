import random
import subprocess
import sys
from collections import Counter

import pytest

from keras_transformer.text import SubwordSampling, Tokenizer
from keras_transformer.text.merge_dropout import Drops
from tests.text.conftest import trained
from tests.text.samples import hostile_strings, sentences
from tests.text.test_files import foreign_model

IN_ANOTHER_PROCESS = """
import sys
from keras_transformer.text import SubwordSampling, Tokenizer
from tests.text.samples import sentences
print(Tokenizer.load(sys.argv[1]).encode(sentences(20), SubwordSampling(0.3), seed=5))
"""


def test_sampled_ids_decode_to_the_same_text(any_tokenizer):
    texts = [*sentences(50), *hostile_strings(200)]
    for alpha in (0.1, 0.5, 1.0):
        sampled = any_tokenizer.encode(texts, SubwordSampling(alpha))
        assert any_tokenizer.decode(sampled) == any_tokenizer.normalize(texts)


def test_sampling_is_a_function_of_texts_alpha_and_seed(tokenizer):
    texts = sentences(50)
    first = tokenizer.encode(texts, SubwordSampling(0.3), seed=5)
    tokenizer.encode(texts[:7], SubwordSampling(0.3), seed=9)
    random.seed(3)
    assert tokenizer.encode(texts, SubwordSampling(0.3), seed=5) == first
    assert tokenizer.encode(texts, SubwordSampling(0.3), seed=6) != first
    assert tokenizer.encode(texts, SubwordSampling(0.4), seed=5) != first
    assert tokenizer.encode(texts[0], SubwordSampling(0.3), seed=5) == first[0]


def test_sampling_is_the_same_in_another_process(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.model")
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, str(tmp_path / "tokenizer.model")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str(tokenizer.encode(sentences(20), SubwordSampling(0.3), seed=5))


def test_bpe_without_dropout_is_the_usual_encoding_and_with_full_dropout_single_characters():
    tokenizer = trained("bpe", "identity")
    texts = [*sentences(100), *hostile_strings(300)]
    assert tokenizer.encode(texts, SubwordSampling(0.0)) == tokenizer.encode(texts)
    assert tokenizer.tokens(tokenizer.encode("the cat", SubwordSampling(1.0))) == list("▁the▁cat")


def test_unigram_with_a_high_power_is_the_usual_encoding():
    tokenizer = trained("unigram", "nfc")
    assert tokenizer.encode(sentences(100), SubwordSampling(300.0)) == tokenizer.encode(sentences(100))


def test_lengths_agree_with_those_that_sentencepiece_samples(tokenizer, size):
    """The samplers of SentencePiece draw something else in each process, but on average the same."""
    texts = sentences(size(1000, full=10_000), seed=4)
    for alpha in (0.1, 0.4):
        ours = tokenizer.encode(texts, SubwordSampling(alpha))
        theirs = tokenizer._processor.encode(texts, enable_sampling=True, alpha=alpha, nbest_size=-1)
        assert sum(map(len, ours)) == pytest.approx(sum(map(len, theirs)), rel=0.02)


def test_unigram_draws_each_cut_by_its_share(tmp_path):
    tokenizer = Tokenizer.train(iter(["ab a b ab"] * 20), 263, model="unigram", character_coverage=1.0)
    scores = {piece.piece: piece.score for piece in tokenizer._model.proto.pieces}
    alpha = 0.5
    cuts = [cut for cut in (["▁ab"], ["▁a", "b"], ["▁", "a", "b"], ["▁", "ab"]) if all(piece in scores for piece in cut)]
    weights = [2.718281828 ** (alpha * sum(scores[piece] for piece in cut)) for cut in cuts]
    drawn = Counter(tuple(tokenizer.tokens(ids)) for ids in tokenizer.encode(["ab"] * 4000, SubwordSampling(alpha), seed=1))
    assert set(drawn) == set(map(tuple, cuts))
    for cut, weight in zip(cuts, weights, strict=True):
        assert drawn[tuple(cut)] / 4000 == pytest.approx(weight / sum(weights), abs=0.03)


def test_drops_come_at_their_rate():
    drops = Drops(0.3, random.Random(0))
    assert sum(drops.next() for _ in range(20_000)) / 20_000 == pytest.approx(0.3, abs=0.01)


def test_long_words_are_sampled_too(tokenizer):
    text = "ab€" * 10_000
    assert tokenizer.decode(tokenizer.encode(text, SubwordSampling(0.2))) == text


def test_models_whose_pieces_span_words_and_models_without_bytes(tmp_path):
    foreign_model(tmp_path / "spanning.model", pad_id=3, split_by_whitespace=False, vocab_size=300)
    tokenizer = Tokenizer.load(tmp_path / "spanning.model")
    assert any("▁" in tokenizer.tokens([id])[0][1:] for id in range(300))
    texts = [*sentences(50), "the 漢字 cat"]
    assert tokenizer.encode(texts, SubwordSampling(0.0)) == tokenizer.encode(texts)


def test_wrong_alpha_is_refused():
    with pytest.raises(ValueError, match=r"alpha=-0\.1"):
        SubwordSampling(-0.1)
    with pytest.raises(ValueError, match="at most 1"):
        trained("bpe", "nfc").encode("a", SubwordSampling(1.5))


def test_user_defined_symbols_are_refused(tmp_path):
    foreign_model(tmp_path / "symbols.model", pad_id=3, user_defined_symbols=["<tag>"])
    with pytest.raises(ValueError, match="user-defined"):
        Tokenizer.load(tmp_path / "symbols.model").encode("a", SubwordSampling(0.1))
