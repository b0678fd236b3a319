"""The report of a run: a model card in Markdown."""

import re
import shlex

from keras_transformer.text.files import write_bytes

from .console import program
from .recipe import Recipe
from .run_folder import RunFolder
from .scores import Score

CARD = """# {name}

{summary}

## Results

{scores}

Translated with {search}.{averaged}

## Samples

From the first of the sets above, unchosen.

{samples}

## Training

{training}

{curves}Epoch by epoch: [history.csv](history.csv), in smaller steps: [steps.csv](steps.csv). All settings:
[recipe.toml](recipe.toml). All numbers of this page: [results.json](results.json).

## Model

{model}

## Data

{data}

## Use

{python}

{shell}

## Made with

{command}

{versions}
"""
PYTHON = """import keras_transformer as kt

translator = kt.Translator.load({translator!r})
translator.translate([{example!r}])"""
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
MARKUP = re.compile(r"[\\`*_\[\]<>|#&~$]")
MARKER = re.compile(r"^(\d+(?=[.)])|(?=[-+]))")  # What begins a list.


def write_report(run: RunFolder, recipe: Recipe, results: dict):
    """Writes the model card of a run.

    Args:
        run: The run.
        recipe: Its recipe.
        results: What `training.finishing.finish` gathered.
    """
    write_bytes(run.report, card(run, recipe, results).encode())


def card(run: RunFolder, recipe: Recipe, results: dict) -> str:
    """Returns the text of the model card."""
    averaged = recipe.optimization.average_checkpoints
    example = (results["samples"] or [{"source": "A sentence."}])[0]["source"]
    return CARD.format(
        name=plain(recipe.name),
        summary=summary(results),
        scores=score_table(results["scores"]),
        search=f"{recipe.evaluation.beam_size} beams, length penalty {recipe.evaluation.length_penalty:g}",
        averaged=f" The weights are the mean of the last {averaged} saved ones." if averaged > 1 else "",
        samples=sample_list(results["samples"]),
        training=fact_table(training_facts(recipe, results)),
        curves=f"![Loss, perplexity, learning rate and BLEU]({run.curves.name})\n\n" if run.curves.exists() else "",
        model=fact_table(model_facts(results["model"])),
        data=block("text", "\n".join(data_lines(results["data"]))),
        python=block("python", PYTHON.format(translator=str(run.translator), example=example)),
        shell=block("bash", f"{program('translate')} {shlex.quote(str(run))}"),
        command=block("bash", results["command"]),
        versions=", ".join(f"{package} {version}" for package, version in results["versions"].items()),
    )


def summary(results: dict) -> str:
    """Says in a sentence or two what this is."""
    facts, best = results["training"], first_score(results["scores"])
    measured = f" {best[1].name} {best[1]} on {best[0]}." if best else ""
    return (
        f"A Transformer of {results['model']['parameters']:,} parameters, trained on {plain(results['data']['train'])} in "
        f"{duration(facts['seconds'])}.{measured}"
    )


def first_score(scores: dict[str, list[dict]]) -> tuple[str, Score] | None:
    """Returns the first score of all."""
    return next(((split, Score(**found[0])) for split, found in scores.items()), None)


def score_table(scores: dict[str, list[dict]]) -> str:
    """Makes a table of scores."""
    if not scores:
        return "Nothing to measure on: the recipe names neither a validation set nor a test."
    rows = [
        f"| {split} | {score.name} | {score} | {plain(score.signature)} |"
        for split, found in scores.items()
        for score in (Score(**one) for one in found)
    ]
    return "\n".join(["| set | score | | signature |", "|---|---|---|---|", *rows])


def sample_list(samples: list[dict]) -> str:
    """Lists translations beside their references."""
    lines = []
    for sample in samples:
        right = " (as the reference)" if sample["translation"] == sample["reference"] else ""
        lines.append(f"- {plain(sample['source'])}<br>**{plain(sample['translation'])}**{right}")
        if not right:
            lines[-1] += f"<br>reference: {plain(sample['reference'])}"
    return "\n".join(lines) or "None."


def training_facts(recipe: Recipe, results: dict) -> dict[str, str]:
    """Returns what the training was, in words."""
    facts, table = results["training"], recipe.optimization
    schedule = f"factor {table.factor:g}" if table.schedule == "paper" else f"peak {table.peak_rate:g}"
    return {
        "updates": f"{facts['updates']:,} in {several(facts['epochs'], 'epoch')}",
        "target tokens": f"{facts['tokens']:,}",
        "time": f"{duration(facts['seconds'])}, with the evaluations on the way",
        "speed": f"{facts['tokens_per_second']:,.0f} target tokens a second",
        "learning rate": f'"{table.schedule}", {schedule}, {table.warmup_updates:,} updates of warm-up',
        "an update": f"{several(recipe.batches_per_update, 'batch', 'es')} of up to {recipe.data.batch_tokens:,} tokens a side",
        "label smoothing": f"{table.label_smoothing:g}",
        "precision": f"{table.dtype}{', XLA' if table.xla else ''}",
        "seed": str(table.seed),
        "machine": results["machine"],
    }


def model_facts(model: dict) -> dict[str, str]:
    """Returns what the model is, in words."""
    return {
        "parameters": f"{model['parameters']:,}",
        "layers": f"{model['num_encoder_layers']} + {model['num_decoder_layers']}, {model['norm']}-norm",
        "width": f"{model['model_dim']}, feed-forward {model['feed_forward_dim']}, {model['num_heads']} heads",
        "vocabulary": f"{model['source_vocabulary_size']:,} and {model['target_vocabulary_size']:,}, tied: {model['tie']}",
        "positions": model["positions"],
        "dropout": f"{model['dropout']:g}, attention {model['attention_dropout']:g}, "
        f"activation {model['activation_dropout']:g}",
    }


def data_lines(data: dict) -> list[str]:
    """Describes the data."""
    return [
        f"train       {data['train']}",
        f"validation  {data['validation'] or 'none'}",
        *(f"{name:<11} {files}" for name, files in data["tests"].items()),
        *data["statistics"],
        f"batches     {data['batches']:,} an epoch in {data['shapes']} shapes, {data['padding']:.1%} of all positions padding",
    ]


def fact_table(facts: dict[str, str]) -> str:
    """Makes a table of two columns."""
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts.items())])


def plain(text: str) -> str:
    """Returns a text as a line that Markdown does not read anything into."""
    text = CONTROLS.sub(" ", text).strip() or "(empty)"
    return MARKER.sub(r"\1\\", MARKUP.sub(r"\\\g<0>", text))


def block(language: str, text: str) -> str:
    """Returns a block of code, between fences that the text does not have."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def several(count: int, name: str, ending: str = "s") -> str:
    """Returns a number and what it counts, in the plural if need be."""
    return f"{count:,} {name}{'' if count == 1 else ending}"


def duration(seconds: float) -> str:
    """Says a time in the units a person would use."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} minutes"
    return f"{seconds / 3600:.1f} hours"
