"""Scores: sacrebleu's numbers and signatures, and those of the pronoun corpus."""

import pytest
import sacrebleu

import keras_transformer as kt
from training.corpora import SplitPairs, Splits
from training.recipe_tables import EvaluationTable
from training.scores import corpus_scores, pronoun_scores, split_scores

TRANSLATIONS = ["The cat sat on the mat.", "A dog barks at the moon tonight."]
REFERENCES = [["The cat sat on a mat.", "the cat sat on the mat."], ["The dog barks at the moon."]]


@pytest.mark.parametrize("lowercase", [False, True])
def test_bleu_and_chrf_are_those_of_sacrebleu(lowercase):
    bleu, chrf = corpus_scores(TRANSLATIONS, REFERENCES, lowercase)
    streams = [["The cat sat on a mat.", "The dog barks at the moon."], ["the cat sat on the mat.", None]]
    expected = sacrebleu.BLEU(lowercase=lowercase)
    assert bleu.value == expected.corpus_score(TRANSLATIONS, streams).score
    assert bleu.signature == str(expected.get_signature())
    assert ("case:lc" in bleu.signature) == lowercase and "nrefs:var" in bleu.signature
    assert chrf.value == sacrebleu.CHRF(lowercase=lowercase).corpus_score(TRANSLATIONS, streams).score
    assert str(bleu) == f"{bleu.value:.2f}"


def test_an_unknown_tokenization_is_an_error():
    with pytest.raises(ValueError, match=r"`tokenize` must be one of sacrebleu's .* Received: '13b'. Did you mean `13a`"):
        corpus_scores(TRANSLATIONS, REFERENCES, tokenize="13b")


@pytest.fixture(scope="module")
def corpus():
    return kt.data.pronouns(num_train=4000, num_validation=4, num_test=20)


def test_pronouns_of_perfect_translations(corpus):
    scores = pronoun_scores(corpus, "test", corpus.test.target)
    assert [(score.name, str(score)) for score in scores] == [
        ("exact match", "100.00%"),
        ("right pronoun", "100.00%"),
        ("both pronouns right", "100.00%"),
    ]
    assert scores[0].signature == "of 20 sentences with new combinations"
    assert scores[2].signature == f"of {len(corpus.minimal_pairs)} pairs that differ in the adjective alone"


def test_one_wrong_pronoun(corpus):
    first = corpus.test.target[0].replace("weil es", "weil sie")
    exact, pronoun, both = pronoun_scores(corpus, "test", [first, *corpus.test.target[1:]])
    assert exact.value == pronoun.value == 0.95
    assert both.value == pytest.approx(1 - 1 / len(corpus.minimal_pairs))


def test_scores_of_a_split(corpus):
    splits = Splits(
        SplitPairs("", corpus.train), SplitPairs("", corpus.validation), {"test": SplitPairs("", corpus.test)}, corpus
    )
    names = [score.name for score in split_scores(splits, "validation", corpus.validation.target, EvaluationTable())]
    assert names == ["BLEU", "chrF", "exact match", "right pronoun"]
    plain = Splits(splits.train, splits.validation, splits.tests)
    scores = split_scores(plain, "test", corpus.test.target, EvaluationTable())
    assert [(score.name, round(score.value, 6)) for score in scores] == [("BLEU", 100.0), ("chrF", 100.0)]
