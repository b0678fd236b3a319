"""The measurement of heads that find what "it" means."""

import numpy as np
import pytest

from training import attention_report, demo_attention
from training.pronoun_heads import LOOKS, answer, answers, best_head, make_questions
from training.run_folder import RunFolder


def words(translator, ids, places):
    return translator.tokenizer.decode([ids[place] for place in places])


def test_questions(translator, corpus):
    examples = corpus.examples["test"]
    questions = make_questions(translator.tokenizer, examples)
    singular = [example for example in examples if not example.is_plural]
    assert 0 < len(questions) <= len(singular)
    tired, wide = questions[:2]
    assert words(translator, tired.source_ids, tired.it) == "it"
    assert words(translator, tired.source_ids, tired.adjective) == "tired"
    assert words(translator, tired.source_ids, tired.words[tired.right]) == "animal"
    assert words(translator, tired.source_ids, tired.words[tired.wrong]) == "street"
    assert words(translator, wide.source_ids, wide.words[wide.right]) == "street"
    assert words(translator, [*tired.target_ids[1:], translator.tokenizer.end_id], tired.pronoun) == "es"
    assert words(translator, [*wide.target_ids[1:], translator.tokenizer.end_id], wide.pronoun) == "sie"


def test_answers_by_hand(translator, corpus):
    question = make_questions(translator.tokenizer, corpus.examples["test"])[0]
    length = len(question.source_ids)
    weights = np.zeros((1, 3, length, length))
    row = question.it[0]
    right, wrong = question.words[question.right], question.words[question.wrong]
    weights[0, 0, row, right[0]] = 1.0  # The first head finds it,
    weights[0, 1, row, [right[0], wrong[0], row]] = 0.3, 0.1, 0.6  # the second prefers it to the other noun,
    weights[0, 2, row, wrong[0]] = 1.0  # the third does not.
    found = answer(weights, question, question.it)
    assert found.shape == (1, 4, 2)
    assert found[0].tolist() == [[True, True], [False, True], [False, False], [True, True]]
    assert best_head(np.stack([found[:, :-1]] * 3)) == (0, 0)


def test_padding_changes_nothing(translator, corpus):
    questions = make_questions(translator.tokenizer, corpus.examples["test"])
    together = answers(translator.model, questions)
    for kind in LOOKS:
        alone = np.concatenate([answers(translator.model, [question])[kind] for question in questions[:3]])
        assert np.array_equal(together[kind][:3], alone)
        assert together[kind].shape == (len(questions), 2, 3, 2)


def test_halves_share_no_pair_of_nouns(corpus):
    examples = corpus.examples["test"]
    halves = attention_report.split_in_two(examples)
    assert sorted(map(id, [*halves[0], *halves[1]])) == sorted(map(id, examples))
    first, second = ({frozenset((one.subject, one.object)) for one in half} for half in halves)
    assert first and second and not first & second


def test_the_report(translator, corpus):
    rows, sizes = attention_report.measure(translator, corpus.examples["test"])
    assert [row[:2] for row in rows[:4]] == [("it", name) for name in ("trained", "trained", "untrained", "untrained")]
    assert len(rows) == 12 and min(sizes) >= 4
    assert all(0 <= share <= 1 for row in rows for share in row[3:])
    assert "mean of the heads" in rows[1][2] and "head " in rows[0][2]
    with pytest.raises(ValueError, match="too few sentences"):
        attention_report.measure(translator, corpus.examples["test"][:2])


def test_the_command(run_folder, capsys, monkeypatch):
    assert attention_report.main(["runs/demo", "--sentences", "40"]) == 0
    printed = capsys.readouterr().out
    assert "untrained" in printed and "mean of the heads" in printed


def test_the_demo_writes_pages_and_a_picture(run_folder, translator, corpus, monkeypatch):
    monkeypatch.setattr(demo_attention, "pronouns", lambda num_train: corpus)
    paths = list(demo_attention.write_attention(RunFolder(run_folder), translator))
    assert paths == [str(run_folder / name) for name in ("attention.png", "attention-tired.html", "attention-wide.html")]
    assert "it was too wide" in (run_folder / "attention-wide.html").read_text(encoding="utf8")
    assert (run_folder / "attention.png").read_bytes().startswith(b"\x89PNG")


def test_the_pronoun_of_a_translation(translator):
    source = "The animal slept because it was too tired."
    assert demo_attention.pronoun_of(translator.attend(source, "Das Tier schlief, weil es zu müde war.")) == "es"
    assert demo_attention.pronoun_of(translator.attend(source, "Da es müde war, schlief sie.")) == "es"
    assert demo_attention.pronoun_of(translator.attend(source, "Nichts davon.")) == "</s>"
