"""A page in which a served model is tried out: one file, without anything from elsewhere."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

SETTINGS = re.compile(r'(<script type="application/json" id="settings">)(.*?)(</script>)', re.DOTALL)
CODE = re.compile("[a-z]{2,3}")  # Of a language.
OPTIONS = ("beam_size", "length_penalty", "max_length")


def write_playground(
    path: str | os.PathLike,
    model_name: str,
    url: str = "http://localhost:8501",
    *,
    title: str | None = None,
    defaults: Mapping[str, float] | None = None,
    limits: Mapping[str, float] | None = None,
    examples: Sequence[str] = (),
    languages: Sequence[str] | None = None,
) -> Path:
    """Writes a page that translates with a model of TensorFlow Serving.

    It is opened from the file or from any web server, and talks to the server's REST port, which must have been started with
    `--rest_api_enable_cors_support=true` unless both are one origin. The address and the model can be changed in the page, or
    by what follows its own address: `playground.html?url=http://host:8501&model=NAME`.

    Args:
        path: Where to write.
        model_name: The model's name on the server.
        url: Where the server is. An empty string is the origin that the page comes from.
        title: Heading of the page. Defaults to the model's name.
        defaults: The exported `beam_size`, `length_penalty` and `max_length`, shown in fields that are left empty.
        limits: The largest `beam_size` and `max_length` that were exported.
        examples: Texts to try, shown below the input.
        languages: The codes of the source and the target language, such as `("en", "de")`, which the page names.

    Returns:
        The path.
    """
    settings = {
        "model": model_name,
        "url": url,
        "title": title,
        "defaults": known(defaults, "defaults"),
        "limits": known(limits, "limits"),
        "examples": list(examples),
        "languages": list(check_languages(languages) or ()),
    }
    path = Path(path)
    path.write_text(page_with(settings), encoding="utf8")
    return path


def page_with(settings: Mapping) -> str:
    """Returns the page with these settings."""
    page = resources.files(__package__).joinpath("playground.html").read_text(encoding="utf8")
    text = json.dumps(settings, ensure_ascii=False).replace("<", "\\u003c")  # Nothing in it can end the element.
    return SETTINGS.sub(lambda match: match[1] + text + match[3], page, count=1)


def settings_of(folder: Path) -> dict:
    """Returns the settings of the page that lies beside an export; none if there is no such page."""
    path = folder / "playground.html"
    found = SETTINGS.search(path.read_text(encoding="utf8")) if path.is_file() else None
    return json.loads(found[2]) if found else {}


def page_at_origin(folder: Path, model_name: str) -> str:
    """Returns the page of an export for the server that sends it: it asks the address from which it comes.

    Args:
        folder: The folder of the model.
        model_name: The model's name on the server.
    """
    settings = {"defaults": {}, "limits": {}, "examples": [], **settings_of(folder)}
    return page_with({**settings, "model": model_name, "url": ""})


def known(options: Mapping[str, float] | None, argument: str) -> dict[str, float]:
    """Returns options that the page has fields for."""
    unknown = sorted(set(options or {}) - set(OPTIONS))
    if unknown:
        raise ValueError(f"`{argument}` takes {OPTIONS}. Received: {unknown}")
    return {name: value for name, value in (options or {}).items() if value is not None}


def check_languages(languages: Sequence[str] | None) -> Sequence[str] | None:
    """Returns the codes of two languages, if they are given and have the form of such codes."""
    if languages is not None and (len(languages) != 2 or not all(map(CODE.fullmatch, languages))):
        raise ValueError(f'`languages` takes two codes, such as ("en", "de"). Received: languages={languages!r}')
    return languages
