"""The code of the documents runs as written, from top to bottom, and gives what they say."""

import pytest

from tests.pages import ROOT, check_block, run_page


@pytest.mark.parametrize("page", ["layers", "data", "decoding"])
def test_python_blocks_give_what_they_say(page, tmp_path, monkeypatch):
    assert "kt" in run_page(ROOT / "docs" / f"{page}.md", tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("print(3)\n", "4\n"),
        ("print(3)\n", None),
        ("pass\n", "4\n"),
        ("1 + 2  # 4\n", None),
        ("a = [1, 2]  # [1, 3]\n", None),
        ("import numpy\nnumpy.ones((2, 3))  # (2, 4)\n", None),
    ],
)
def test_what_a_page_says_wrongly_is_found(code, output):
    with pytest.raises(AssertionError):
        check_block(code, output, {}, "a page")


def test_what_a_page_says_rightly_passes():
    code = "a = 3\nprint(a)  # a comment\na + 1  # 4\n'x'  # 'x'\nimport numpy\nb = numpy.ones((2, 3))  # (2, 3)\n"
    check_block(code, "3\n", {}, "a page")
