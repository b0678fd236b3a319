"""The grammar of the pronoun corpus: noun phrases, clauses and sentences in English and German."""

from dataclasses import dataclass

from keras_transformer.data.corpora.pronoun_forms import GERMAN_ADJECTIVES, SentenceForm
from keras_transformer.data.corpora.pronoun_lexicon import FEMININE, MASCULINE, NEUTER, Noun

PLURAL = "plural"
ARTICLES = {
    "nominative": {MASCULINE: "der", FEMININE: "die", NEUTER: "das", PLURAL: "die"},
    "accusative": {MASCULINE: "den", FEMININE: "die", NEUTER: "das", PLURAL: "die"},
    "dative": {MASCULINE: "dem", FEMININE: "der", NEUTER: "dem", PLURAL: "den"},
}
PRONOUNS = {MASCULINE: "er", FEMININE: "sie", NEUTER: "es", PLURAL: "sie"}
CONTRACTIONS = {"in das": "ins", "in dem": "im"}
GERMAN_CONJUNCTIONS = {"because": "weil", "since": "da"}


@dataclass(frozen=True)
class NounPhrase:
    """A noun with its definite article, in the singular or the plural."""

    noun: Noun
    is_plural: bool = False

    @property
    def english(self) -> str:
        """The English phrase, such as `the animals`."""
        return f"the {self.noun.english_plural if self.is_plural else self.noun.english}"

    @property
    def agreement(self) -> str:
        """What articles and pronouns agree with: the gender, or in the plural the number alone."""
        return PLURAL if self.is_plural else self.noun.gender

    @property
    def pronoun(self) -> str:
        """The German pronoun that stands for the phrase: `er`, `sie` or `es`."""
        return PRONOUNS[self.agreement]

    def german(self, case: str) -> str:
        """Returns the German phrase in a case, such as `den Tieren` in the dative."""
        return f"{ARTICLES[case][self.agreement]} {self.german_noun(case)}"

    def german_noun(self, case: str) -> str:
        """Returns the German noun alone, as the case and the number ask for it."""
        if not self.is_plural:
            return self.noun.german if case == "nominative" else self.noun.german_oblique or self.noun.german
        takes_n = case == "dative" and not self.noun.german_plural.endswith(("n", "s"))
        return self.noun.german_plural + "n" if takes_n else self.noun.german_plural


@dataclass(frozen=True)
class Style:
    """The choices of wording that leave the meaning alone.

    Args:
        conjunction: `"because"` or `"since"`.
        contracted: Whether a negated English clause has `didn't` or `did not`.
        reason_first: Whether the reason stands before the main clause.
    """

    conjunction: str = "because"
    contracted: bool = True
    reason_first: bool = False


@dataclass(frozen=True)
class Statement:
    """All that is said in a sentence, before it is put into words.

    Args:
        form: The sentence form.
        subject: Subject of the main clause.
        object: Object of the main clause.
        role: What the pronoun means, `"subject"` or `"object"`.
        adjective: English adjective of the reason.
        style: The choices of wording.
    """

    form: SentenceForm
    subject: NounPhrase
    object: NounPhrase
    role: str
    adjective: str
    style: Style = Style()

    @property
    def referent(self) -> NounPhrase:
        """The noun phrase that the pronoun means."""
        return self.subject if self.role == "subject" else self.object

    @property
    def combination(self) -> tuple[str, str, str]:
        """The two nouns, by the alphabet, and the adjective: what held-out sentences do not share with training."""
        first, second = sorted((self.subject.noun.english, self.object.noun.english))
        return first, second, self.adjective


def english_sentence(statement: Statement) -> str:
    """Puts a statement into English.

    Args:
        statement: What to say.

    Returns:
        A sentence, such as `The animal didn't cross the street because it was too tired.`
    """
    form, style = statement.form, statement.style
    negation = ["didn't" if style.contracted else "did not"] if form.negated else []
    main = [statement.subject.english, *negation, form.english, statement.object.english]
    copula = "they were" if statement.referent.is_plural else "it was"
    reason = [style.conjunction, copula, "too", statement.adjective]
    return sentence([*reason[:-1], f"{reason[-1]},", *main] if style.reason_first else [*main, *reason])


def german_sentence(statement: Statement) -> str:
    """Puts a statement into German.

    Args:
        statement: What to say.

    Returns:
        A sentence, such as `Das Tier überquerte die Straße nicht, weil es zu müde war.`
    """
    subject, verb, rest = german_main_clause(statement)
    reason = german_reason(statement)
    if statement.style.reason_first:
        # The reason takes the first place of the main clause, so that the verb comes before the subject.
        return sentence([f"{reason},", verb, subject, rest])
    return sentence([subject, verb, f"{rest},", reason])


def german_main_clause(statement: Statement) -> tuple[str, str, str]:
    """Returns the subject, the finite verb, and what follows them."""
    form = statement.form
    verb = form.german[1] if statement.subject.is_plural else form.german[0]
    words = [german_object(form, statement.object)]
    if form.negated:
        # "nicht" follows a plain object and precedes one with a preposition.
        words.insert(0 if form.preposition else 1, "nicht")
    if form.particle:
        words.append(form.particle)
    return statement.subject.german("nominative"), verb, " ".join(words)


def german_object(form: SentenceForm, phrase: NounPhrase) -> str:
    """Returns the object in its case, with its preposition (`in den Koffer`, `im Korb`)."""
    if not form.preposition:
        return phrase.german(form.case)
    start = f"{form.preposition} {ARTICLES[form.case][phrase.agreement]}"
    return f"{CONTRACTIONS.get(start, start)} {phrase.german_noun(form.case)}"


def german_reason(statement: Statement) -> str:
    """Returns the subordinate clause, with the verb at its end (`weil es zu müde war`)."""
    conjunction = GERMAN_CONJUNCTIONS[statement.style.conjunction]
    copula = "waren" if statement.referent.is_plural else "war"
    return f"{conjunction} {statement.referent.pronoun} zu {GERMAN_ADJECTIVES[statement.adjective]} {copula}"


def sentence(words: list[str]) -> str:
    """Joins words to a sentence with a capital letter and a full stop."""
    text = " ".join(words)
    return f"{text[0].upper()}{text[1:]}."
