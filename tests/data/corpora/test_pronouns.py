import collections
import hashlib
import os
import re
import subprocess
import sys

import pytest

from keras_transformer.data.corpora import (
    Corpus,
    PronounCorpus,
    exact_match,
    minimal_pair_accuracy,
    pronoun_accuracy,
    pronouns,
)
from tests.data.corpora import german

HELD_OUT = ("validation", "test")
DIGEST = "import hashlib; from keras_transformer.data.corpora import pronouns; c = pronouns(seed=3, num_train=5000); " + (
    "print(hashlib.sha256(repr([c.examples, c.minimal_pairs]).encode()).hexdigest())"
)


@pytest.fixture(scope="module")
def corpus():
    return pronouns()


def all_examples(corpus):
    return [example for split in corpus.examples.values() for example in split]


def combination(example):
    return frozenset((example.subject, example.object)), example.adjective


def words(text):
    return re.findall(r"[\w']+", text.lower())


def pronoun_of_noun(source, noun):
    """The pronoun of someone who has decided that "it" means a noun, without asking whether that makes sense."""
    return german.PRONOUN_OF["p" if noun not in words(source) else german.GENDERS[noun]]


def test_the_sentences_of_every_account_of_attention_are_held_out(corpus):
    assert isinstance(corpus, PronounCorpus) and isinstance(corpus, Corpus)
    assert list(corpus.test[:2]) == [
        (
            "The animal didn't cross the street because it was too tired.",
            "Das Tier überquerte die Straße nicht, weil es zu müde war.",
        ),
        (
            "The animal didn't cross the street because it was too wide.",
            "Das Tier überquerte die Straße nicht, weil sie zu breit war.",
        ),
    ]
    tired, wide = corpus.minimal_pairs[0]
    assert (tired.referent, tired.pronoun, wide.referent, wide.pronoun) == ("animal", "es", "street", "sie")


@pytest.mark.parametrize(
    ("target", "pronoun", "adjective", "copula"),
    [
        ("Das Radio passte nicht ins Fach, weil es zu sperrig war.", "es", "sperrig", "war"),
        ("Die Katze schlief nicht im Korb, weil er zu klein war.", "er", "klein", "war"),
        ("Weil sie zu laut waren, lief die Katze vor den Straßenbahnen weg.", "sie", "laut", "waren"),
        ("Das Geländer hielt den Bären nicht auf, da er zu stark war.", "er", "stark", "war"),
    ],
)
def test_the_reader_of_german_takes_what_is_right(target, pronoun, adjective, copula):
    reading = german.read(target)
    assert (reading.pronoun, reading.adjective, reading.copula) == (pronoun, adjective, copula)


@pytest.mark.parametrize(
    "target",
    [
        "Der Tier überquerte die Straße nicht, weil es zu müde war.",
        "Das Tier überquerte der Straße nicht, weil es zu müde war.",
        "Das Tier überquerten die Straße nicht, weil es zu müde war.",
        "Das Tier überquerte nicht die Straße, weil es zu müde war.",
        "Das Tier nicht überquerte die Straße, weil es zu müde war.",
        "Das Tier überquerte die Straße nicht, weil es war zu müde.",
        "Weil es zu müde war, das Tier überquerte die Straße nicht.",
        "Das Radio passte nicht in das Fach, weil es zu sperrig war.",
        "Das Geländer hielt den Bär nicht auf, da er zu stark war.",
        "Die Katze lief weg vor dem Auto, weil es zu laut war.",
        "Die Katze lief vor den Traktore weg, weil sie zu laut waren.",
    ],
)
def test_the_reader_of_german_refuses_what_is_wrong(target):
    with pytest.raises((AssertionError, ValueError)):
        german.read(target)


@pytest.mark.proof(
    "pronoun corpus: gender of every pronoun, agreement of every article, noun and verb, and word order are right"
)
def test_every_sentence_is_correct_german(corpus, size, seen):
    examples = all_examples(corpus)[-size(20_000, full=len(all_examples(corpus))) :]
    for example in examples:
        reading = german.read(example.target)
        assert (reading.subject, reading.object) == (example.subject, example.object), example
        assert reading.pronoun == example.pronoun, example
        number = reading.subject_number if example.referent == example.subject else reading.object_number
        assert reading.copula == ("waren" if number == "p" else "war"), example
        assert reading.pronoun == german.PRONOUN_OF["p" if number == "p" else german.GENDERS[example.referent]], example
        assert example.is_plural == (number == "p")
    seen(f"{len(examples)} sentences read by an independent checker, none wrong")


def test_english_says_the_same(corpus):
    german_of = collections.defaultdict(set)
    for example in all_examples(corpus):
        assert re.fullmatch(r"[A-Z][a-z' ]+(, [a-z' ]+)?\.", example.source), example
        pronoun = "they were" if example.is_plural else "it was"
        assert f"{pronoun} too {example.adjective}" in example.source.replace("They", "they").replace("It", "it"), example
        assert ("not" in words(example.source) or "didn't" in words(example.source)) == ("nicht" in words(example.target))
        reading = german.read(example.target)
        for noun, number in ((reading.subject, reading.subject_number), (reading.object, reading.object_number)):
            assert (noun in words(example.source)) == (number == "s"), example
        german_of[example.adjective].add(reading.adjective)
    assert all(len(translations) == 1 for translations in german_of.values())


@pytest.mark.proof("pronoun corpus: at least 50,000 distinct pairs")
def test_pairs_are_distinct_and_many(corpus, seen):
    sources = [example.source for example in all_examples(corpus)]
    assert len(set(sources)) == len(sources) == 53_000
    assert [len(corpus[name]) for name in ("train", "validation", "test")] == [50_000, 1_000, 2_000]
    assert all(pair == (e.source, e.target) for pair, e in zip(corpus.train, corpus.examples["train"], strict=True))
    assert max(len(words(text)) for pair in corpus.train for text in pair) <= 16
    vocabulary = {word for text in corpus.train.source for word in words(text)}
    seen(f"{len(sources)} distinct pairs, {len(vocabulary)} English words")


@pytest.mark.proof("pronoun corpus: held-out combinations of noun, noun and adjective are never seen in training")
@pytest.mark.parametrize("seed", [0, 1])
def test_held_out_combinations_are_unseen_but_their_words_are_not(corpus, seed, seen):
    corpus = corpus if seed == 0 else pronouns(seed)
    combinations = {name: {combination(example) for example in corpus.examples[name]} for name in corpus.examples}
    assert not combinations["train"] & combinations["test"]
    assert not combinations["train"] & combinations["validation"]
    assert not combinations["validation"] & combinations["test"]

    train = corpus.examples["train"]
    said_of = {(example.referent, example.adjective, example.form) for example in train}
    training_words = {word for pair in corpus.train for text in pair for word in words(text)}
    for name in HELD_OUT:
        for example in corpus.examples[name]:
            assert (example.referent, example.adjective, example.form) in said_of, example
            assert training_words.issuperset(words(example.source) + words(example.target)), example
    seen(f"{len(combinations['test'])} test combinations, none of them among {len(combinations['train'])} in training")


@pytest.mark.proof("pronoun corpus: always taking the last noun, or the first, gets at most 60% of the held-out pronouns right")
@pytest.mark.parametrize("split", HELD_OUT)
def test_no_rule_about_the_order_of_nouns_works(corpus, split, seen):
    examples = corpus.examples[split]
    right = collections.Counter()
    for example in examples:
        text = words(example.source)
        nouns = [noun for noun in (example.subject, example.object) if noun in text]
        assert sorted(nouns, key=text.index) == nouns  # The subject comes first in every sentence.
        right["first"] += pronoun_of_noun(example.source, example.subject) == example.pronoun
        right["last"] += pronoun_of_noun(example.source, example.object) == example.pronoun
    for rule, count in right.items():
        assert count <= 0.6 * len(examples), rule
        seen(f"{split}, {rule} noun: {count / len(examples):.1%}")


def test_no_other_shallow_rule_works(corpus, seen):
    """The adjective alone does not give the pronoun away, nor does the form; neither noun is meant much more often."""
    examples = corpus.examples["test"]
    for hint in (lambda e: e.adjective, lambda e: e.form, lambda e: e.subject, lambda e: e.object):
        counts = collections.defaultdict(collections.Counter)
        for example in corpus.examples["train"]:
            counts[hint(example)][example.pronoun] += 1
        guesses = [counts[hint(example)].most_common(1)[0][0] for example in examples]
        assert sum(guess == e.pronoun for guess, e in zip(guesses, examples, strict=True)) <= 0.65 * len(examples)
    for name, split in corpus.examples.items():
        share = sum(example.referent == example.subject for example in split) / len(split)
        assert 0.45 <= share <= 0.55, name


def test_both_nouns_are_meant_in_every_form(corpus):
    roles = collections.Counter((e.form, e.referent == e.subject) for e in corpus.examples["train"])
    forms = {form for form, _ in roles}
    assert len(forms) >= 15
    for form in forms:
        assert 0.3 <= roles[form, True] / (roles[form, True] + roles[form, False]) <= 0.7, form


def test_all_pronouns_and_both_numbers_occur_in_every_split(corpus):
    for name, split in corpus.examples.items():
        kinds = collections.Counter((example.pronoun, example.is_plural) for example in split)
        assert set(kinds) == {("er", False), ("sie", False), ("es", False), ("sie", True)}, name
        assert min(kinds.values()) > 0.02 * len(split), (name, kinds)


@pytest.mark.proof("pronoun corpus: changing only the adjective changes the pronoun in every minimal pair")
def test_minimal_pairs_differ_in_the_adjective_and_the_pronoun(corpus, seen):
    test = {example.source for example in corpus.examples["test"]}
    for first, second in corpus.minimal_pairs:
        assert first.source in test and second.source in test
        changed = [pair for pair in zip(words(first.source), words(second.source), strict=True) if len(set(pair)) == 2]
        assert changed == [(first.adjective, second.adjective)]
        assert first.pronoun != second.pronoun
        assert (first.referent, second.referent) == (first.subject, second.object)
        assert german.GENDERS[first.subject] != german.GENDERS[first.object]
        changed = [pair for pair in zip(words(first.target), words(second.target), strict=True) if len(set(pair)) == 2]
        assert len(changed) == 2 and (first.pronoun, second.pronoun) in changed
    assert len(corpus.minimal_pairs) >= 500
    seen(f"{len(corpus.minimal_pairs)} minimal pairs")


def test_is_a_function_of_the_seed_alone():
    def digest(hash_seed):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run([sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True)
        return run.stdout.strip()

    corpus = pronouns(seed=3, num_train=5000)
    here = hashlib.sha256(repr([corpus.examples, corpus.minimal_pairs]).encode()).hexdigest()
    assert digest("1") == here
    assert digest("2") == here
    assert pronouns(seed=4, num_train=5000).train.source != corpus.train.source


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_test": 3}, "`num_test` must be a positive even number.*num_test=3"),
        ({"num_validation": 0}, "`num_validation` must be a positive even number.*num_validation=0"),
        ({"num_train": 100}, "at least .* num_train=100"),
        ({"num_test": 100_000}, "contrasts left to hold out.*50000"),
    ],
)
def test_impossible_sizes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        pronouns(**arguments)


class TestScores:
    def test_the_targets_themselves_are_right(self, corpus):
        examples = corpus.examples["test"]
        targets = [example.target for example in examples]
        assert pronoun_accuracy(examples, targets) == 1.0
        assert minimal_pair_accuracy(corpus.minimal_pairs, [(a.target, b.target) for a, b in corpus.minimal_pairs]) == 1.0
        assert exact_match(targets, [f"{target} " for target in targets]) == 1.0

    def test_one_who_always_takes_the_subject_has_no_minimal_pair_right(self, corpus):
        translations = [(first.target, first.target) for first, _ in corpus.minimal_pairs]
        assert minimal_pair_accuracy(corpus.minimal_pairs, translations) == 0.0
        assert pronoun_accuracy([second for _, second in corpus.minimal_pairs], [t for t, _ in translations]) == 0.0

    @pytest.mark.parametrize(
        "translation, is_right",
        [
            ("Das Tier überquerte die Straße nicht, weil es zu müde war.", True),
            ("weil es müde war , überquerte das Tier sie nicht .", True),
            ("Der Hund ging, da ES", True),
            ("Er aß, weil sehr es", True),
            ("Das Tier überquerte es nicht, weil sie zu müde war.", False),
            ("Das Tier überquerte die Straße nicht, weil das Tier müde war, es", False),
            ("Das Tier überquerte die Straße nicht, es war zu müde.", False),
            ("weil", False),
            ("", False),
        ],
    )
    def test_reads_the_pronoun_of_the_reason_in_any_text(self, corpus, translation, is_right):
        assert pronoun_accuracy(corpus.examples["test"][:1], [translation]) == float(is_right)

    def test_counts_shares(self, corpus):
        examples = corpus.examples["test"][:4]
        translations = [examples[0].target, "", "", ""]
        assert pronoun_accuracy(examples, translations) == 0.25
        assert exact_match(["a", "b"], ["a", "c"]) == 0.5

    def test_every_example_needs_a_translation(self, corpus):
        with pytest.raises(ValueError, match="2000 sentences and 1 translations"):
            pronoun_accuracy(corpus.examples["test"], ["Das Tier"])
        with pytest.raises(ValueError, match="0 sentences"):
            exact_match([], [])
