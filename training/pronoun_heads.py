"""Which heads find what "it" means, in sentences of the pronoun corpus."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_transformer.attention import attention_scores, token_names
from keras_transformer.attention.words import join_pieces, word_groups
from keras_transformer.data.corpora.pronoun_grammar import GERMAN_CONJUNCTIONS
from keras_transformer.data.corpora.pronouns import PronounExample

# Who is asked where it looks, and in which kind of attention: two words of the source, and the pronoun while it is written.
LOOKS = {"it": "encoder_self", "adjective": "encoder_self", "pronoun": "cross"}
BATCH = 100
SMALL_WORDS = frozenset(GERMAN_CONJUNCTIONS.values())


@dataclass(frozen=True)
class Question:
    """A sentence, who looks in it, and where the answer is.

    Attributes:
        source_ids: The sentence and its end.
        target_ids: The start and the translation.
        words: For each word of the source, the places of its pieces.
        it: Places of the pieces of "it".
        adjective: Places of the pieces of the adjective that tells what "it" is.
        pronoun: Rows of the decoder that write the German pronoun.
        right: Number of the noun that is meant, among the words.
        wrong: Number of the other noun.
    """

    source_ids: list[int]
    target_ids: list[int]
    words: list[list[int]]
    it: list[int]
    adjective: list[int]
    pronoun: list[int]
    right: int
    wrong: int


def make_questions(tokenizer, examples: Sequence[PronounExample]) -> list[Question]:
    """Makes questions of all sentences with "it" between two singular nouns.

    Args:
        tokenizer: The model's: a `Tokenizer` or a `TokenizerPair`.
        examples: Sentences of the pronoun corpus.

    Returns:
        The questions; sentences in the plural are left out.
    """
    questions = [make_question(tokenizer, example) for example in examples if not example.is_plural]
    return [question for question in questions if question is not None]


def make_question(tokenizer, example: PronounExample) -> Question | None:
    """Makes a question of a sentence, or `None` if it has not each of its words once."""
    source_ids = [*tokenizer.source.encode(example.source), tokenizer.source.end_id]
    written = [*tokenizer.target.encode(example.target), tokenizer.target.end_id]
    groups, words = words_of(tokenizer.source, source_ids)
    rows, output = words_of(tokenizer.target, written)
    other = example.object if example.referent == example.subject else example.subject
    reasons = [place for place, word in enumerate(output) if word in SMALL_WORDS]
    if any(words.count(word) != 1 for word in ("it", example.adjective, example.referent, other)) or not reasons:
        return None
    return Question(
        source_ids=source_ids,
        target_ids=[tokenizer.target.start_id, *written[:-1]],
        words=groups,
        it=groups[words.index("it")],
        adjective=groups[words.index(example.adjective)],
        pronoun=rows[reasons[0] + 1],
        right=words.index(example.referent),
        wrong=words.index(other),
    )


def words_of(tokenizer, ids: list[int]) -> tuple[list[list[int]], list[str]]:
    """Returns the pieces of each word, and the words in small letters."""
    tokens = token_names(tokenizer, ids)
    groups = word_groups(tokens)
    return groups, [join_pieces([tokens[place] for place in group]).lower() for group in groups]


def answers(model, questions: Sequence[Question]) -> dict[str, np.ndarray]:
    """Tells where the heads of a model look, question by question.

    Args:
        model: A `Transformer`.
        questions: What `make_questions` returned.

    Returns:
        For each of `LOOKS`, booleans `(questions, layers, N + 1, 2)`, the average over the heads as one more head. The first
        says whether the right noun has the largest weight of all words, the second whether it has more than the other noun.
    """
    found = {name: [] for name in LOOKS}
    for start in range(0, len(questions), BATCH):
        batch = questions[start : start + BATCH]
        ids = [question.source_ids for question in batch], [question.target_ids for question in batch]
        scores = attention_scores(model, *(padded(rows, model.config.pad_id) for rows in ids))
        for number, question in enumerate(batch):
            for name, kind in LOOKS.items():
                found[name].append(answer(scores[kind][number], question, getattr(question, name)))
    return {name: np.stack(one) for name, one in found.items()}


def answer(weights: np.ndarray, question: Question, rows: list[int]) -> np.ndarray:
    """Tells where the heads look from some rows of one sentence: booleans `(layers, N + 1, 2)`."""
    looks = weights[:, :, rows].mean(axis=2)  # (layers, N, keys)
    looks = np.concatenate([looks, looks.mean(axis=1, keepdims=True)], axis=1)  # (layers, N + 1, keys)
    by_word = np.stack([looks[..., places].sum(axis=-1) for places in question.words], axis=-1)  # (layers, N + 1, words)
    right, wrong = by_word[..., question.right], by_word[..., question.wrong]
    return np.stack([by_word.argmax(axis=-1) == question.right, right > wrong], axis=-1)


def padded(rows: Sequence[Sequence[int]], pad_id: int) -> np.ndarray:
    """Returns rows of ids as one array."""
    array = np.full((len(rows), max(map(len, rows))), pad_id, "int32")
    for number, row in enumerate(rows):
        array[number, : len(row)] = row
    return array


def best_head(hits: np.ndarray) -> tuple[int, int]:
    """Returns the layer and the head, from 0, that most often put the largest weight on the right noun.

    Args:
        hits: Booleans `(questions, layers, heads, 2)`.
    """
    rates = hits[..., 0].mean(axis=0)  # (layers, heads)
    return tuple(int(one) for one in np.unravel_index(rates.argmax(), rates.shape))
