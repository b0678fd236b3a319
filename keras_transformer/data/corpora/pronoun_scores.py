"""How well a model understands pronouns: scores of translations of the pronoun corpus."""

import re
from collections.abc import Iterable, Sequence

from keras_transformer.data.corpora.pronoun_grammar import GERMAN_CONJUNCTIONS, PRONOUNS
from keras_transformer.data.corpora.pronouns import PronounExample

WORD = re.compile(r"\w+")
REASONS = frozenset(GERMAN_CONJUNCTIONS.values())
ANY_PRONOUN = frozenset(PRONOUNS.values())


def reason_pronoun(translation: str) -> str | None:
    """Finds the pronoun of the subordinate clause in a German sentence, however wrong the sentence may be otherwise.

    Args:
        translation: Any text.

    Returns:
        The first `er`, `sie` or `es` after the first `weil` or `da`, or `None` if there is none before the clause ends.

    Example:

    >>> reason_pronoun("Das Tier überquerte die Straße nicht, weil es zu müde war.")
    'es'
    """
    lowered = translation.lower()
    starts = [match.end() for match in WORD.finditer(lowered) if match.group() in REASONS]
    if not starts:
        return None
    clause = re.split(r"[,.;!?]", lowered[starts[0] :].lstrip(" ,"), maxsplit=1)[0]
    return next((word for word in WORD.findall(clause) if word in ANY_PRONOUN), None)


def pronoun_accuracy(examples: Sequence[PronounExample], translations: Iterable[str]) -> float:
    """Computes the share of translations with the right pronoun.

    Args:
        examples: What was to be translated, such as `corpus.examples["test"]`.
        translations: A translation of each example's source.

    Returns:
        A number from 0 to 1.
    """
    found = [reason_pronoun(translation) for translation in translations]
    return share_equal([example.pronoun for example in examples], found)


def minimal_pair_accuracy(
    pairs: Sequence[tuple[PronounExample, PronounExample]], translations: Iterable[Sequence[str]]
) -> float:
    """Computes the share of minimal pairs with the right pronoun in both sentences.

    One who does not understand the sentences and always takes the same noun has none of them right.

    Args:
        pairs: What was to be translated, such as `corpus.minimal_pairs`.
        translations: For each pair, the translations of its two sources.

    Returns:
        A number from 0 to 1.
    """
    found = [tuple(reason_pronoun(translation) for translation in both) for both in translations]
    return share_equal([(first.pronoun, second.pronoun) for first, second in pairs], found)


def exact_match(targets: Sequence[str], translations: Iterable[str]) -> float:
    """Computes the share of translations that equal their targets, apart from spaces at the ends.

    Args:
        targets: What the translations should be.
        translations: What they are.

    Returns:
        A number from 0 to 1.
    """
    return share_equal([target.strip() for target in targets], [translation.strip() for translation in translations])


def share_equal(wanted: Sequence, found: Sequence) -> float:
    """Computes the share of places at which two sequences of the same length agree."""
    if len(wanted) != len(found) or not wanted:
        raise ValueError(
            "Each sentence needs one translation, and there must be at least one. "
            f"Received: {len(wanted)} sentences and {len(found)} translations"
        )
    return sum(a == b for a, b in zip(wanted, found, strict=True)) / len(wanted)
