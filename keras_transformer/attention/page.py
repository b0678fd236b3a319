"""The page that shows a record of attention: one HTML file with everything in it."""

import base64
import html
import json
import re
from importlib import resources

import numpy as np

from keras_transformer.attention.words import join_pieces, labels, printable, word_groups

TITLES = {
    "encoder_self": ("Encoder", "Each word of the sentence looks at the others."),
    "decoder_self": ("Decoder", "To write a word, the decoder looks at what it has written so far."),
    "cross": ("Cross", "To write a word, the decoder looks at the sentence it translates."),
}
SCRIPTS = ("data.js", "controls.js", "lines.js", "heat_map.js", "main.js")  # In the order in which they run.
FRAME_HEIGHT = 640  # Pixels of the frame in a notebook.


def attention_page(attention, title: str = "Attention") -> str:
    """Returns a page that shows a record, without any other resource.

    Args:
        attention: An `Attention`.
        title: Title of the page.

    Returns:
        HTML. All text of the record is in it as JSON in which no `<` occurs, and is never read as HTML.
    """
    parts = {
        "/* style */": asset("style.css"),
        "/* script */": script(),
        "{title}": html.escape(title),
        "{data}": as_script_data(page_data(attention, title)),
    }
    marks = "|".join(map(re.escape, parts))
    return re.sub(marks, lambda mark: parts[mark.group()], asset("page.html"))  # Once: marks in a text are text.


def notebook_frame(page: str) -> str:
    """Puts a page into a frame of its own, so that neither its style nor its script reaches a notebook's."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" title="Attention" '
        f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"></iframe>'
    )


def asset(name: str) -> str:
    """Reads one of the files in the folder `viewer`."""
    return resources.files(__package__).joinpath("viewer", name).read_text(encoding="utf8")


def script() -> str:
    """Puts the scripts together, with names that are seen by nobody else."""
    return '"use strict";\n(() => {\n' + "\n".join(asset(name) for name in SCRIPTS) + "})();"


def as_script_data(data: dict) -> str:
    """Writes JSON that can stand inside a script element: nothing in it can end the element, or begin another."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_data(attention, title: str) -> dict:
    """Returns what the page's script needs to know of a record."""
    return {
        "title": title,
        "source": printable(attention.source),
        "target": printable(attention.target),
        "kinds": [kind_data(attention, kind) for kind in TITLES],
    }


def kind_data(attention, kind: str) -> dict:
    """Returns the labels and the weights of one kind of attention."""
    num_layers, num_heads = attention[kind].shape[:2]
    title, hint = TITLES[kind]
    return {
        "name": kind,
        "title": title,
        "hint": hint,
        "layers": num_layers,
        "heads": num_heads,
        "queries": side_data(attention.query_tokens(kind)),
        "keys": side_data(attention.key_tokens(kind)),
        "weights": as_base64(attention[kind]),
    }


def side_data(tokens: list[str]) -> dict:
    """Returns the labels of pieces, the pieces of each word, and the labels of the words."""
    groups = word_groups(tokens)
    return {
        "labels": labels(tokens),
        "groups": groups,
        "words": [printable(join_pieces([tokens[place] for place in group])) for group in groups],
    }


def as_base64(weights: np.ndarray) -> str:
    """Writes weights as bytes, from 0 to 255 for 0 to 1: as fine as a screen can show, and small."""
    steps = np.rint(np.clip(np.nan_to_num(weights), 0.0, 1.0) * 255).astype("uint8")
    return base64.b64encode(steps.tobytes()).decode()
