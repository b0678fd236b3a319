"""Keeps the links from a document to lines of code right: `python -m training.source_links docs/paper.md`.

A link such as [`causal_mask`](../keras_transformer/masks.py#L26) leads to the line where that name is defined. When code moves,
this command writes the numbers anew.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

LINK = re.compile(r"\[`(?P<name>[\w.]+)`\]\((?P<path>[^)#]+)#L\d+\)")


def main(argv: Sequence[str] | None = None) -> int:
    """Renews the links of the given documents and returns 0."""
    for name in sys.argv[1:] if argv is None else argv:
        page = Path(name)
        page.write_text(renewed(page), encoding="utf8")
        print(f"{page}: {len(LINK.findall(page.read_text(encoding='utf8')))} links to lines of code")
    return 0


def renewed(page: Path) -> str:
    """Returns the text of a document with the right line numbers."""

    def link(match: re.Match) -> str:
        line = line_of(page.parent / match["path"], match["name"])
        return f"[`{match['name']}`]({match['path']}#L{line})"

    return LINK.sub(link, page.read_text(encoding="utf8"))


def line_of(path: Path, name: str) -> int:
    """Finds the line of a file that defines a name: a class, a function, a method (`Class.method`) or a constant."""
    lines = path.read_text(encoding="utf8").splitlines()
    start = 0
    for part in name.split("."):
        pattern = re.compile(rf"\s*(class|def) {part}\b|{part} = ")
        start = next((place for place in range(start, len(lines)) if pattern.match(lines[place])), None)
        if start is None:
            raise ValueError(f"{path} defines no {name}. Mend the link in the document")
    return start + 1


if __name__ == "__main__":
    sys.exit(main())
