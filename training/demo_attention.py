"""What the demo's model looks at when it decides what "it" means."""

import importlib.util

from rich.console import Console
from rich.text import Text

from keras_transformer import Translator
from keras_transformer.attention import Attention
from keras_transformer.data import pronouns
from keras_transformer.data.corpora.pronoun_scores import reason_pronoun
from keras_transformer.visualization import plot_threads

from .demo_show import FAMOUS
from .pronoun_heads import answers, best_head, make_questions
from .run_folder import RunFolder

NUM_QUESTIONS = 200


def draw(run: RunFolder, console: Console):
    """Draws what a run's model looks at to write the pronouns of the famous sentences, and says where to see it.

    Args:
        run: The run.
        console: Where to print.
    """
    console.print(Text("What it looked at to choose the pronoun:", style="bold"))
    for path, what in write_attention(run, Translator.load(run.translator)).items():
        console.print(Text(f"  {path}  {what}"), soft_wrap=True)
    console.print()


def attend_to_famous(translator: Translator) -> list[Attention]:
    """Returns where the model looks while it translates the two famous sentences."""
    return [translator.attend(source) for source, _, _ in FAMOUS]


def pronoun_head(translator: Translator) -> tuple[int, int]:
    """Finds the head of the cross-attention, as layer and head from 0, that most often looks at the noun that is meant.

    Args:
        translator: The demo's translator.

    Returns:
        What was found on sentences that are neither in training nor in the test.
    """
    examples = pronouns(num_train=4000).examples["validation"]  # Drawn before training pairs, however many these are.
    hits = answers(translator.model, make_questions(translator.tokenizer, examples)[:NUM_QUESTIONS])["pronoun"]
    return best_head(hits[:, :, :-1])


def plot_pronouns(translator: Translator):
    """Draws where that head looks to write the pronouns of the two famous sentences, side by side.

    Args:
        translator: The demo's translator.

    Returns:
        A matplotlib `Figure`.
    """
    layer, head = pronoun_head(translator)
    records = attend_to_famous(translator)
    return plot_threads(records, [pronoun_of(record) for record in records], "cross", layer, head)


def pronoun_of(record: Attention) -> str:
    """Returns the pronoun of the reason as it stands in a translation; the end, if a translation has none."""
    pronoun, words = reason_pronoun(record.target), record.words().output_tokens
    return next((word for word in words if word.lower() == pronoun), words[-1])


def write_attention(run: RunFolder, translator: Translator) -> dict[str, str]:
    """Writes pages of the famous sentences, and a picture if there is something to draw with, into a run's folder.

    Args:
        run: The run.
        translator: Its translator.

    Returns:
        The paths of what was written, and what each shows.
    """
    written = {}
    if importlib.util.find_spec("matplotlib") is not None:
        picture = run.directory / "attention.png"
        plot_pronouns(translator).savefig(picture)
        written[str(picture)] = "both sentences, side by side"
    for name, record in zip(("tired", "wide"), attend_to_famous(translator), strict=True):
        page = run.directory / f"attention-{name}.html"
        record.save_html(page, title="What does “it” mean?")
        written[str(page)] = f"every head, to explore in a browser, for “{name}”"
    return written
