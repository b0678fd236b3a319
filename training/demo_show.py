"""What the demo shows: two sentences during training, and what the finished model makes of new ones."""

import re
from collections.abc import Iterable

import keras
from rich.console import Console
from rich.text import Text

import keras_transformer as kt
from keras_transformer.data.corpora.pronoun_scores import reason_pronoun

from .finishing import scores_of
from .run_folder import RunFolder

# Of combinations that are in no training sentence; what they mean is in the corpus.
FAMOUS = (
    ("The animal didn't cross the street because it was too tired.", "es", "the animal"),
    ("The animal didn't cross the street because it was too wide.", "sie", "the street"),
)
WORD = re.compile(r"[\w']+")
RIGHT, WRONG = "green", "red"


class ThinkingAloud(keras.callbacks.Callback):
    """Translates the two famous sentences after each epoch.

    Args:
        run: The run, whose tokenizer is used.
        console: Where to print.
    """

    def __init__(self, run: RunFolder, console: Console):
        super().__init__()
        self.run, self.console = run, console
        self._translator: kt.Translator | None = None

    def on_epoch_end(self, epoch, logs=None):
        """Is called by Keras."""
        self._translator = self._translator or kt.Translator(self.model, kt.load_tokenizer(self.run.tokenizer))
        self.console.print(Text(f"\nAfter epoch {epoch + 1} it says:", style="bold"))
        print_famous(self._translator, self.console)


def print_famous(translator: kt.Translator, console: Console):
    """Translates the two famous sentences, and says what the model took "it" for."""
    translations = translator.translate([source for source, _, _ in FAMOUS], progress=False)
    for (source, pronoun, meant), translation in zip(FAMOUS, translations, strict=True):
        found = reason_pronoun(translation)
        verdict = f'"{found}": {meant}, right' if found == pronoun else f'"{found}", but it was {meant}' if found else "hm"
        console.print(Text(f"  {source}"), soft_wrap=True)
        console.print(Text(f"  -> {translation} ").append(f"({verdict})", RIGHT if found == pronoun else WRONG), soft_wrap=True)


def show(run: RunFolder, results: dict, console: Console):
    """Shows what the finished model can do.

    Args:
        run: The run.
        results: What `training.trainer.train` returned.
        console: Where to print.
    """
    console.print(Text("\nThe finished model:", style="bold"))
    print_famous(kt.Translator.load(run.translator), console)
    console.print(Text("\nSentences that it never saw:", style="bold"))
    for sample in results["samples"][len(FAMOUS) :]:
        print_sample(sample, console)
    console.print()
    for score in scores_of(results)["test"]:
        if score.name not in ("BLEU", "chrF"):
            console.print(Text(f"  {score.name:<20} {score!s:>8}  {score.signature}"), soft_wrap=True)
    facts = results["training"]
    console.print(
        Text(f"\n{facts['updates']:,} updates in {facts['seconds']:.0f} s, {results['model']['parameters']:,} parameters.\n")
    )


def what_it_knows(lines: Iterable[str]) -> str:
    """Says what the model can be asked, and what not.

    Args:
        lines: The sentences that it was trained on.

    Returns:
        A paragraph.
    """
    words = {word for line in lines for word in WORD.findall(line.lower())}
    return (
        f"It knows {len(words)} English words and one grammar: what happened, because it was too tired, wide, loud...\n"
        "Of any other sentence it makes nonsense.\n"
    )


def print_sample(sample: dict, console: Console):
    """Prints a translation in green, or in red with what it should have been."""
    is_right = sample["translation"] == sample["reference"]
    console.print(Text(f"  {sample['source']}"), soft_wrap=True)
    console.print(Text(f"  -> {sample['translation']}", RIGHT if is_right else WRONG), soft_wrap=True)
    if not is_right:
        console.print(Text(f"     should be: {sample['reference']}"), soft_wrap=True)
