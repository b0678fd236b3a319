"""Which statements of the pronoun corpus are for training, which are held out."""

import dataclasses
import random
from collections import Counter
from collections.abc import Iterator

from keras_transformer.data.corpora.pronoun_forms import FORMS, SentenceForm
from keras_transformer.data.corpora.pronoun_grammar import NounPhrase, Statement, Style, english_sentence
from keras_transformer.data.corpora.pronoun_lexicon import Noun

ROLES = ("subject", "object")
STYLES = tuple(
    Style(conjunction, contracted, reason_first)
    for conjunction in ("because", "since")
    for contracted in (True, False)
    for reason_first in (False, False, True)
)
# Whether subject and object are in the plural. Where both are, or where their genders agree, the pronoun does not depend on
# what it means: such sentences belong to the language, but teach nothing here.
NUMBERS = (False, False), (True, False), (False, True), (True, True)
TRAINING_NUMBER_WEIGHTS = (76, 9, 9, 6)
SHARE_OF_SAME_GENDER = 0.2

Scene = tuple[SentenceForm, Noun, Noun]
Contrast = tuple[Statement, Statement]
Combination = tuple[str, str, str]
Lesson = tuple[str, str, str]


class Splitter:
    """Draws statements for training and for the held-out splits; no two splits share a combination of nouns and adjective.

    Held-out statements are drawn first, as contrasts: two statements that differ in nothing but the adjective, one about the
    subject and one about the object.

    Args:
        seed: What the draw depends on, and nothing else.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.scenes = [(form, subject, noun) for form in FORMS for subject in form.subjects for noun in form.objects]
        self.contrasting_scenes = [scene for scene in self.scenes if scene[1].gender != scene[2].gender]
        self.held_out: set[Combination] = set()
        self.lessons = lessons(self.contrasting_scenes)
        self.teachers = Counter(lesson for taught in self.lessons.values() for lesson in taught)

    def hold_out(self, count: int, first: Contrast | None = None) -> list[Contrast]:
        """Draws contrasts whose combinations are in no other split.

        Args:
            count: How many; each combination serves for two, one with `because` and one with `since`.
            first: A contrast that must be the first of them.

        Returns:
            The contrasts, the statement about the subject first in each. Four fifths have both nouns in the singular; they come
            first. In the others, one is in the plural, or both are.
        """
        contrasts = []
        if first:
            self.take(first)
            contrasts += [first, self.reworded(first)]
        for scene in self.random.sample(self.contrasting_scenes, len(self.contrasting_scenes)):
            if len(contrasts) >= count:
                break
            numbers = NUMBERS[0] if len(contrasts) < 0.8 * count else self.random.choice(NUMBERS[1:])
            contrast = self.contrast(scene, numbers)
            if self.may_take(contrast):
                self.take(contrast)
                contrasts += [contrast, self.reworded(contrast)]
        if len(contrasts) < count:
            raise ValueError(
                f"The grammar has no more than {len(contrasts)} contrasts left to hold out. Received: {count}. Ask for fewer."
            )
        return contrasts[:count]

    def contrast(self, scene: Scene, numbers: tuple[bool, bool]) -> Contrast:
        """Draws an adjective for either role of a scene, and a style for both."""
        style = self.random.choice(STYLES)
        about_subject, about_object = (
            statement_of(scene, role, self.random.choice(scene[0].adjectives(role)), numbers, style) for role in ROLES
        )
        return about_subject, about_object

    def may_take(self, contrast: Contrast) -> bool:
        """Tells whether neither combination is taken and others are left to teach training the same."""
        combinations = [statement.combination for statement in contrast]
        taught = [lesson for combination in combinations for lesson in self.lessons[combination]]
        return self.held_out.isdisjoint(combinations) and all(self.teachers[lesson] > 2 for lesson in taught)

    def take(self, contrast: Contrast):
        """Keeps the combinations of a contrast out of every other split."""
        for statement in contrast:
            self.held_out.add(statement.combination)
            self.teachers.subtract(self.lessons[statement.combination])

    def reworded(self, contrast: Contrast) -> Contrast:
        """Says the same with the other conjunction, in a style that is drawn."""
        conjunction = contrast[0].style.conjunction
        style = self.random.choice([style for style in STYLES if style.conjunction != conjunction])
        about_subject, about_object = (dataclasses.replace(statement, style=style) for statement in contrast)
        return about_subject, about_object

    def training(self, count: int) -> list[Statement]:
        """Draws distinct statements of combinations that are not held out; call it last.

        Args:
            count: How many.

        Returns:
            The statements, in random order. Each adjective is said in them of each noun that it is ever said of.
        """
        statements = {english_sentence(statement): statement for statement in self.coverage()}
        if count < len(statements):
            raise ValueError(
                f"Training needs at least {len(statements)} pairs to show every word in every use. Received: num_train={count}"
            )
        for _ in range(20 * count):
            if len(statements) == count:
                break
            statement = self.draw()
            if statement.combination not in self.held_out:
                statements.setdefault(english_sentence(statement), statement)
        if len(statements) < count:
            raise ValueError(
                f"The grammar has hardly more than {len(statements)} pairs. Received: num_train={count}. Ask for fewer."
            )
        return self.random.sample(list(statements.values()), count)

    def coverage(self) -> Iterator[Statement]:
        """Draws, for each adjective and each noun that it is said of, a statement in the singular and one in the plural."""
        candidates = {}
        for statement in plain_statements(self.contrasting_scenes):
            if statement.combination not in self.held_out:
                candidates.setdefault(lesson_of(statement), []).append(statement)
        for statements in candidates.values():
            for is_plural in (False, True):
                statement, style = self.random.choice(statements), self.random.choice(STYLES)
                subject, noun = (NounPhrase(phrase.noun, is_plural) for phrase in (statement.subject, statement.object))
                yield dataclasses.replace(statement, subject=subject, object=noun, style=style)

    def draw(self) -> Statement:
        """Draws any statement, mostly one whose pronoun depends on what it means."""
        scenes = self.scenes if self.random.random() < SHARE_OF_SAME_GENDER else self.contrasting_scenes
        scene, role = self.random.choice(scenes), self.random.choice(ROLES)
        numbers = self.random.choices(NUMBERS, TRAINING_NUMBER_WEIGHTS)[0]
        return statement_of(scene, role, self.random.choice(scene[0].adjectives(role)), numbers, self.random.choice(STYLES))


def statement_of(scene: Scene, role: str, adjective: str, numbers=NUMBERS[0], style=STYLES[0]) -> Statement:
    """Makes the statement that an adjective gives a scene."""
    form, subject, noun = scene
    return Statement(form, NounPhrase(subject, numbers[0]), NounPhrase(noun, numbers[1]), role, adjective, style)


def plain_statements(scenes: list[Scene]) -> Iterator[Statement]:
    """Makes all statements of scenes, in the singular and in one style."""
    for scene in scenes:
        for role in ROLES:
            for adjective in scene[0].adjectives(role):
                yield statement_of(scene, role, adjective)


def lesson_of(statement: Statement) -> Lesson:
    """Returns what a statement teaches about its words: in which form the adjective can be said of the noun."""
    return statement.form.name, statement.referent.noun.english, statement.adjective


def lessons(scenes: list[Scene]) -> dict[Combination, list[Lesson]]:
    """Lists what each combination teaches; one of nouns that meet in two forms teaches two lessons."""
    result = {}
    for statement in plain_statements(scenes):
        result.setdefault(statement.combination, []).append(lesson_of(statement))
    return result
