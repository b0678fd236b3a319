"""Running the Python of a page, and comparing what it prints and returns with what the page says.

Two places say what a block gives, and both are compared:

- A block of plain text right below a Python block is what it prints. A block that prints something must have one.
- A literal in the comment behind an expression is its value: `tokenizer.tokens("The animal")  # ["▁The", "▁animal"]`. Of an
  array it is the shape: `attention(x)  # (2, 10, 512)`. Other comments claim nothing.
"""

import ast
import contextlib
import io
import re
import tokenize
from pathlib import Path

import keras

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$\n?(\s*)", flags=re.MULTILINE | re.DOTALL)


def code_blocks(page, language):
    return [code for found, code, _ in BLOCK.findall(page.read_text(encoding="utf8")) if found == language]


def python_blocks(page):
    """Returns each Python block of a page with the text block right below it, or `None`."""
    text = page.read_text(encoding="utf8")
    found = list(BLOCK.finditer(text))
    pairs = []
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block[1] == "python":
            is_output = following is not None and following[1] == "text" and following.start() == block.end()
            pairs.append((block[2], following[2] if is_output else None))
    return pairs


def run_page(page, folder, monkeypatch):
    """Runs a page's Python blocks one after the other in one namespace, in an empty folder, and compares what they give."""
    monkeypatch.chdir(folder)
    keras.config.disable_interactive_logging()  # Progress bars are not compared.
    names = {"__name__": "__main__"}
    try:
        for number, (code, output) in enumerate(python_blocks(page), 1):
            check_block(code, output, names, f"{page.name}, block {number}")
    finally:
        keras.config.enable_interactive_logging()
    return names


def check_block(code, output, names, where):
    """Runs one block and compares."""
    claims = claims_of(code)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for statement in ast.parse(code).body:
            value = run(statement, names, where)
            if statement.end_lineno in claims:
                assert agrees(value, claims[statement.end_lineno]), (where, ast.unparse(statement), value)
    assert (where, printed.getvalue().strip()) == (where, (output or "").strip())


def run(statement, names, where):
    """Runs a statement and returns the value of an expression, or what was assigned to a name."""
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), where, "eval"), names)
    exec(compile(ast.Module([statement], []), where, "exec"), names)
    is_named = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    return names[statement.targets[0].id] if is_named else None


def claims_of(code):
    """Returns the literals in comments behind code, by line; of what is printed, the text block tells."""
    claims = {}
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip():
            with contextlib.suppress(ValueError, SyntaxError):
                claims[token.start[0]] = ast.literal_eval(token.string.lstrip("# "))
    return claims


def agrees(value, claim):
    """Tells whether a value is what a page says, or an array has the shape that it says."""
    if hasattr(value, "shape"):
        return tuple(value.shape) == claim
    return value == claim
