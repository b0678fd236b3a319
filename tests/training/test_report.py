"""The model card, word by word where it matters."""

import ast
import itertools
import shlex

import pytest
from markdown_it import MarkdownIt

from training.recipe import read_recipe
from training.report import card, duration, plain, several
from training.run_folder import RunFolder

RESULTS = {
    "command": "python -m training.train digits.toml",
    "scores": {"test": [{"name": "BLEU", "value": 27.345, "signature": "nrefs:1|case:mixed"}]},
    "samples": [
        {"source": '3 "1" 4', "translation": "4 1 3", "reference": "4 1 3"},
        {"source": "2 7", "translation": "", "reference": "7 | 2"},
    ],
    "training": {"epochs": 2, "updates": 1234, "tokens": 56789, "seconds": 432.0, "tokens_per_second": 131.4},
    "data": {
        "train": "train.digits",
        "validation": None,
        "tests": {"test": "test.digits"},
        "statistics": ["pairs       64 read, 64 kept"],
        "batches": 5,
        "shapes": 1,
        "padding": 0.25,
    },
    "model": {
        "parameters": 10048, "num_encoder_layers": 1, "num_decoder_layers": 1, "norm": "post", "model_dim": 16,
        "feed_forward_dim": 32, "num_heads": 2, "source_vocabulary_size": 280, "target_vocabulary_size": 280, "tie": "all",
        "positions": "sinusoidal", "dropout": 0.3, "attention_dropout": 0.0, "activation_dropout": 0.0,
    },
    "machine": "an abacus",
    "versions": {"keras": "3.15.1"},
}  # fmt: skip


SAMPLE = {"source": "a", "translation": "b", "reference": "c"}
HOSTILE = [
    '"])\n```\n<script>alert(1)</script>',
    "\\",
    '\\"',
    "'\"\\",
    '""" + __import__(\'os\').system(\'x\') + """',
    "a\r```\r# b\x85c\u2028d\x0be",
    "```",
    "~~~~ ``` <!-- --> </code></pre> &lt;b&gt; $x$",
    "{directory} {0} %s",
    "- a",
    "12. b",
    "\x7f\x1b[31m\x00",
    "    code",
]


def tokens(page) -> list:
    """Reads a page as GitHub does."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page)


def outline(page) -> list[str]:
    """Returns what a page consists of, and the text of its headings."""
    found = tokens(page)
    titles = [inline.content for opening, inline in itertools.pairwise(found) if opening.type == "heading_open"]
    return [f"{token.type} {token.info}" for token in found] + titles


def shown(inline) -> list[str]:
    """Returns the lines of a paragraph, without markup; nothing but line breaks is HTML."""
    kinds = {child.type for child in inline.children} - {"text", "strong_open", "strong_close", "text_special"}
    assert kinds == {"html_inline"} and {one.content for one in inline.children if one.type == "html_inline"} == {"<br>"}
    lines = "".join(child.content for child in inline.children).split("<br>")
    return [" ".join(line.split()) for line in lines]


@pytest.fixture
def text(recipe):
    return card(RunFolder("runs/digits"), read_recipe(recipe), RESULTS)


def test_says_what_it_is_and_what_it_scores(text):
    assert text.startswith(
        "# digits\n\nA Transformer of 10,048 parameters, trained on train.digits in 7.2 minutes. BLEU 27.34 on"
    )
    assert "| test | BLEU | 27.34 | nrefs:1\\|case:mixed |" in text


def test_shows_samples_beside_references(text):
    assert '- 3 "1" 4<br>**4 1 3** (as the reference)\n' in text
    assert "- 2 7<br>**(empty)**<br>reference: 7 \\| 2\n" in text


def test_says_how_it_was_trained(text):
    for line in (
        "| updates | 1,234 in 2 epochs |",
        "| speed | 131 target tokens a second |",
        "| an update | 2 batches of up to 64 tokens a side |",
        "| machine | an abacus |",
        "batches     5 an epoch in 1 shapes, 25.0% of all positions padding",
        "The weights are the mean of the last 2 saved ones.",
        "python -m training.train digits.toml",
        "keras 3.15.1",
    ):
        assert line in text


def test_its_code_can_be_pasted(text):
    code = text.split("```python\n")[1].split("```")[0]
    compile(code, "card", "exec")
    assert "kt.Translator.load('runs/digits/translator')" in code


@pytest.mark.parametrize("sentence", HOSTILE)
def test_no_text_leaves_its_place(recipe, sentence):
    """Neither a sample nor a path closes the string, the block or the line that it is in."""
    sample = {"source": sentence, "translation": sentence, "reference": f"not {sentence}"}
    name = sentence.replace("\r", "\n").replace(
        "\0", ""
    )  # No path has a NUL, and Markdown makes a line feed of what ends a line.
    command = shlex.join(["python", "-m", "training.train", name])
    data = {**RESULTS["data"], "train": name, "tests": {"test": name}}
    run = RunFolder(f"runs/{name}")
    results = {**RESULTS, "samples": [sample] * 2, "command": command, "data": data}
    page = card(run, read_recipe(recipe), results)
    assert outline(page) == outline(card(RunFolder("x"), read_recipe(recipe), {**RESULTS, "samples": [SAMPLE] * 2}))

    words = " ".join("".join(" " if one == "\x7f" or one < " " else one for one in sentence).split())
    items = [shown(token) for token in tokens(page) if token.type == "inline" and token.level == 3]
    assert items == [[words, words, f"reference: not {words}"]] * 2

    blocks = [(token.info, token.content) for token in tokens(page) if token.type == "fence"]
    calls = [node for node in ast.walk(ast.parse(dict(blocks)["python"])) if isinstance(node, ast.Call)]
    values = {node.func.attr: ast.literal_eval(node.args[0]) for node in calls}
    assert values == {"load": str(run.translator), "translate": [sentence]}
    shells = [shlex.split(content) for language, content in blocks if language == "bash"]
    assert shells == [["python", "-m", "training.translate", str(run)], shlex.split(command)]


def test_there_is_no_picture_where_none_was_drawn(recipe, text, tmp_path):
    assert "![" not in text
    run = RunFolder(tmp_path)
    run.curves.write_bytes(b"")
    assert "](curves.png)" in card(run, read_recipe(recipe), RESULTS)


def test_a_run_without_tests(recipe):
    text = card(RunFolder("x"), read_recipe(recipe), {**RESULTS, "scores": {}, "samples": []})
    assert "Nothing to measure on" in text


def test_words():
    assert [duration(seconds) for seconds in (0.4, 119, 120, 7199, 7200)] == [
        "0 s",
        "119 s",
        "2.0 minutes",
        "120.0 minutes",
        "2.0 hours",
    ]
    assert [several(1, "batch", "es"), several(2, "batch", "es"), several(1500, "epoch")] == [
        "1 batch",
        "2 batches",
        "1,500 epochs",
    ]
    assert plain("a*b_c|d") == "a\\*b\\_c\\|d"
