"""A generated English-German corpus in which a pronoun must be understood to be translated."""

from dataclasses import dataclass, field

from keras_transformer.data.corpora.corpus import Corpus, Pairs
from keras_transformer.data.corpora.pronoun_forms import FORMS
from keras_transformer.data.corpora.pronoun_grammar import NounPhrase, Statement, english_sentence, german_sentence
from keras_transformer.data.corpora.pronoun_splits import Contrast, Splitter


@dataclass(frozen=True)
class PronounExample:
    """A pair of the pronoun corpus, with what it is about.

    Args:
        source: The English sentence.
        target: The German sentence.
        subject: English noun (singular) of the main clause's subject.
        object: English noun (singular) of its object.
        adjective: English adjective of the reason.
        referent: `subject` or `object`, whichever of the two nouns the pronoun means.
        pronoun: The German pronoun: `er`, `sie` or `es`.
        form: Name of the sentence form.
        is_plural: Whether the pronoun is a plural.
    """

    source: str
    target: str
    subject: str
    object: str
    adjective: str
    referent: str
    pronoun: str
    form: str
    is_plural: bool


@dataclass(frozen=True)
class PronounCorpus(Corpus):
    """A corpus that knows what each of its sentences is about.

    Args:
        name, source_language, target_language, splits: As in `Corpus`.
        examples: From the names of the splits to their examples, in the order of the pairs.
        minimal_pairs: Pairs of examples of the test split that differ in the adjective alone, and therefore in the pronoun.
    """

    examples: dict[str, list[PronounExample]] = field(repr=False)
    minimal_pairs: list[tuple[PronounExample, PronounExample]] = field(repr=False)


def pronouns(seed: int = 0, num_train: int = 50_000, num_validation: int = 1_000, num_test: int = 2_000) -> PronounCorpus:
    """Generates English sentences with "it" or "they" and their German translations.

    German pronouns take the gender of what they mean, and only the adjective of the sentence tells what that is:

        The animal didn't cross the street because it was too tired.
        Das Tier überquerte die Straße nicht, weil es zu müde war.

        The animal didn't cross the street because it was too wide.
        Das Tier überquerte die Straße nicht, weil sie zu breit war.

    Subject and object are meant equally often, so that no rule that looks at the order of the nouns translates the pronoun. All
    sentences are distinct. No combination of noun, noun and adjective is in two splits, but every adjective of the held-out
    splits is said of the same noun in training, beside other nouns. The two sentences above are the first of the test split.

    Args:
        seed: What the choice of sentences depends on, and nothing else: the same seed gives the same corpus everywhere.
        num_train: Number of training pairs.
        num_validation: Number of validation pairs, an even number.
        num_test: Number of test pairs, an even number; four fifths of them are minimal pairs.

    Returns:
        A `PronounCorpus` with the splits `train`, `validation` and `test`.

    Example:

    >>> corpus = pronouns(seed=1)
    >>> example = corpus.examples["test"][1]
    >>> example.target
    'Das Tier überquerte die Straße nicht, weil sie zu breit war.'
    >>> example.referent, example.pronoun
    ('street', 'sie')
    """
    for name, count in {"num_validation": num_validation, "num_test": num_test}.items():
        if count < 2 or count % 2:
            raise ValueError(
                f"`{name}` must be a positive even number: held-out sentences come in twos. Received: {name}={count}"
            )
    splitter = Splitter(seed)
    test = splitter.hold_out(num_test // 2, first=famous_contrast())
    validation = splitter.hold_out(num_validation // 2)
    train = splitter.training(num_train)
    examples = {
        "train": [example_of(statement) for statement in train],
        "validation": [example_of(statement) for contrast in validation for statement in contrast],
        "test": [example_of(statement) for contrast in test for statement in contrast],
    }
    return PronounCorpus(
        name="pronouns",
        source_language="en",
        target_language="de",
        splits={name: Pairs([e.source for e in split], [e.target for e in split]) for name, split in examples.items()},
        examples=examples,
        minimal_pairs=[
            (first, second)
            for first, second in zip(examples["test"][::2], examples["test"][1::2], strict=True)
            if first.pronoun != second.pronoun and not first.is_plural and not second.is_plural
        ],
    )


def famous_contrast() -> Contrast:
    """Makes the two sentences about the animal that didn't cross the street."""
    form = next(form for form in FORMS if form.name == "animal_crosses_road")
    animal = next(noun for noun in form.subjects if noun.english == "animal")
    street = next(noun for noun in form.objects if noun.english == "street")
    return (
        Statement(form, NounPhrase(animal), NounPhrase(street), "subject", "tired"),
        Statement(form, NounPhrase(animal), NounPhrase(street), "object", "wide"),
    )


def example_of(statement: Statement) -> PronounExample:
    """Puts a statement into words."""
    return PronounExample(
        source=english_sentence(statement),
        target=german_sentence(statement),
        subject=statement.subject.noun.english,
        object=statement.object.noun.english,
        adjective=statement.adjective,
        referent=statement.referent.noun.english,
        pronoun=statement.referent.pronoun,
        form=statement.form.name,
        is_plural=statement.referent.is_plural,
    )
