"""How good translations are: BLEU and chrF with their signatures, and the scores of the pronoun corpus."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import keras_transformer as kt
from keras_transformer.callbacks.bleu import make_metrics, reference_streams
from keras_transformer.data.corpora import PronounCorpus

from .recipe_tables import EvaluationTable
from .recipe_values import did_you_mean


@dataclass(frozen=True)
class Score:
    """A number and how it was computed.

    Args:
        name: What it is.
        value: The number, BLEU and chrF from 0 to 100, shares from 0 to 1.
        signature: What sacrebleu says of how it was computed, or what it is the share of.
    """

    name: str
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.value:.2f}" if self.name in ("BLEU", "chrF") else f"{self.value:.2%}"

    def as_json(self) -> dict:
        """Returns it as plain values."""
        return asdict(self)


def comparison(lowercase: bool, tokenize: str) -> dict:
    """Returns sacrebleu's metrics by their names; a tokenization that it does not have is a `ValueError`."""
    import sacrebleu

    known = list(sacrebleu.BLEU.TOKENIZERS)
    if tokenize not in known:
        hint = did_you_mean(tokenize, known)
        raise ValueError(f"`tokenize` must be one of sacrebleu's {', '.join(known)}. Received: {tokenize!r}{hint}")
    return dict(zip(("BLEU", "chrF"), make_metrics(lowercase, tokenize), strict=True))


def corpus_scores(
    translations: Sequence[str], references: Sequence[Sequence[str]], lowercase: bool = False, tokenize: str = "13a"
) -> list[Score]:
    """Computes BLEU and chrF with sacrebleu.

    Args:
        translations: The translations.
        references: For each of them, one or several references.
        lowercase: Whether to ignore case.
        tokenize: How sacrebleu cuts texts into words.

    Returns:
        Both scores.
    """
    streams = reference_streams([list(one) for one in references])
    scores = []
    for name, metric in comparison(lowercase, tokenize).items():
        value = metric.corpus_score(list(translations), streams).score
        scores.append(Score(name, value, str(metric.get_signature())))
    return scores


def pronoun_scores(corpus: PronounCorpus, split: str, translations: Sequence[str]) -> list[Score]:
    """Computes what the pronoun corpus is made for.

    Args:
        corpus: The corpus.
        split: Name of the split that was translated.
        translations: A translation of each of its sources.

    Returns:
        The share of translations that are right to the letter, and of those with the right pronoun; for the test split, the
        share of minimal pairs with the right pronoun in both sentences, too.
    """
    examples, targets = corpus.examples[split], corpus[split].target
    count = f"{len(targets):,} sentences with new combinations"
    scores = [
        Score("exact match", kt.data.exact_match(targets, translations), f"of {count}"),
        Score("right pronoun", kt.data.pronoun_accuracy(examples, translations), f"of {count}"),
    ]
    if split == "test":
        found = dict(zip(corpus[split].source, translations, strict=True))
        both = [(found[first.source], found[second.source]) for first, second in corpus.minimal_pairs]
        value = kt.data.minimal_pair_accuracy(corpus.minimal_pairs, both)
        scores.append(Score("both pronouns right", value, f"of {len(both):,} pairs that differ in the adjective alone"))
    return scores


def split_scores(splits, split: str, translations: Sequence[str], table: EvaluationTable) -> list[Score]:
    """Computes all scores of a split of a recipe.

    Args:
        splits: The recipe's `Splits`.
        split: `"validation"`, or the name of a test.
        translations: A translation of each of its sources.
        table: How to compare.

    Returns:
        BLEU and chrF, and those of the pronoun corpus, if it is from there.
    """
    references = [[target] for target in splits.pairs_of(split).target]
    scores = corpus_scores(translations, references, table.lowercase, table.tokenize)
    if isinstance(splits.corpus, PronounCorpus):
        scores += pronoun_scores(splits.corpus, split, translations)
    return scores
