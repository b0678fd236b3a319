"""The page in a browser: hover, choose, switch, keyboard, hostile text, width of a phone."""

import json

import numpy as np
import pytest

from keras_transformer.attention import Attention
from tests.browser import Browser, needs_chromium
from tests.visualization.records import make_record

NAMES = {"encoder_self": 0, "decoder_self": 1, "cross": 2}
SAYS = "document.querySelector('#says').textContent"
FRAME = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


def texts(page, selector):
    return page.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(one => one.textContent)")


def choose(page, group, index):
    page.evaluate(f"document.querySelectorAll('input[name={group}]')[{index}].click()")


def hover(page, side, index):
    page.hover(f"#{side} li:nth-child({index + 1}) .token")
    page.evaluate(FRAME)


def shares(page, side):
    """The percentages beside the words of a column, as numbers."""
    return [int(text.rstrip("%") or 0) for text in texts(page, f"#{side} .share")]


@pytest.fixture
def record():
    return make_record(layers=3, heads=4)


@needs_chromium
@pytest.mark.proof(
    "The viewer in Chromium: hovering a word shows its weights; layers, heads, kinds and views are chosen by mouse or keyboard"
)
def test_hover_choose_and_switch(record, tmp_path, seen):
    record.save_html(tmp_path / "page.html")
    with Browser() as page:
        page.open(tmp_path / "page.html")
        assert "Point at a word" in page.evaluate(SAYS)
        for kind, index in NAMES.items():
            choose(page, "kind", index)
            choose(page, "layer", 1)
            hover(page, "queries", 2)
            wanted = 100 * record[kind][1].mean(axis=0)[2]
            assert np.abs(np.array(shares(page, "keys")) - wanted).max() <= 1
            hover(page, "keys", 1)
            wanted = 100 * record[kind][1].mean(axis=0)[:, 1]
            assert np.abs(np.array(shares(page, "queries")) - wanted).max() <= 1
        page.key("3")  # The third head alone.
        hover(page, "queries", 4)
        assert np.abs(np.array(shares(page, "keys")) - 100 * record.cross[1, 2, 4]).max() <= 1
        assert page.evaluate(SAYS).startswith("Layer 2, head 3: “·te” looks at ")
        seen(f"{len(page.requests) - 1} requests beside the page itself, {len(page.errors)} errors")
        assert page.errors == [] and len(page.requests) == 1


@needs_chromium
@pytest.mark.proof("The viewer in Chromium: all of it by keyboard, and a pinned word stays when the mouse leaves")
def test_keyboard(record, tmp_path):
    record.save_html(tmp_path / "page.html")
    with Browser() as page:
        page.open(tmp_path / "page.html")
        for key in ("e", "n", "ArrowDown", "ArrowDown"):
            page.key(key)
        page.evaluate(FRAME)
        assert page.evaluate("document.querySelector('#queries .chosen .word').textContent") == "ani"
        assert page.evaluate("document.activeElement.classList.contains('token')")
        page.key("p")
        page.evaluate(FRAME)
        assert page.evaluate(SAYS).startswith("Layer 1, all 4 heads: “ani” looks at ")
        page.key("ArrowRight")
        page.evaluate(FRAME)
        assert "is looked at by" in page.evaluate(SAYS)
        page.key("w")
        assert texts(page, "#queries .word") == record.words().source_tokens
        page.key("v")
        page.key("ArrowDown")
        page.key("ArrowRight")
        page.evaluate(FRAME)
        place = 100 * record.words().encoder_self[0].mean(axis=0)[0, 1]
        said = page.evaluate(SAYS)
        assert said.startswith("Layer 1, all 4 heads: “The” gives “animal” ")
        assert abs(int(said.split("“animal” ")[1].split("%")[0]) - place) <= 1
        page.key("v")
        assert len(texts(page, "#all button")) == 12
        page.click("#all button:nth-child(7)")
        page.evaluate(FRAME)
        assert page.evaluate(SAYS).startswith("Layer 2, head 3: “The” looks at ")
        page.click("#queries li:nth-child(3) .token")
        page.hover("h1")
        page.evaluate(FRAME)
        assert "looks at" in page.evaluate(SAYS)
        page.key("Escape")
        page.evaluate(FRAME)
        assert "Point at a word" in page.evaluate(SAYS)
        assert page.errors == []


@needs_chromium
@pytest.mark.proof("The viewer in Chromium: hostile text in a sentence is text")
def test_hostile_text(tmp_path, seen):
    hostile = [
        "▁<script>window.hit=1</script>",
        "▁</script><img src=x onerror=window.hit=2>",
        "▁\"'><svg/onload=window.hit=3>",
        "</s>",
    ]
    record = make_record(source=hostile)
    record.save_html(tmp_path / "page.html", title="</title><script>window.hit=4</script>")
    with Browser() as page:
        page.open(tmp_path / "page.html")
        for view in range(3):
            choose(page, "view", view)
            choose(page, "kind", 0)
        choose(page, "view", 0)
        hover(page, "queries", 0)
        assert texts(page, "#queries .word") == [token.replace("▁", "") for token in hostile]
        assert page.evaluate("window.hit") is None
        assert page.evaluate("document.querySelectorAll('img, svg').length") == 0
        assert page.evaluate("document.title") == "</title><script>window.hit=4</script>"
        seen(f"{len(hostile) - 1} attacks shown as text, {len(page.errors)} errors")
        assert page.errors == []


@needs_chromium
@pytest.mark.proof(
    "The viewer in Chromium: 60 tokens, 6 layers of 8 heads, fits the width of a desktop and of a phone, light and dark"
)
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_a_long_sentence(width, height, tmp_path, seen):
    words = ["▁Donaudampfschifffahrtsgesellschaft", *(f"▁word{place}" if place % 4 else "ing" for place in range(58)), "</s>"]
    make_record(words, words, layers=6, heads=8).save_html(tmp_path / "page.html")
    with Browser(width, height, dark=width < 600) as page:
        page.open(tmp_path / "page.html")
        for view in range(3):
            choose(page, "view", view)
            page.evaluate(FRAME)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        choose(page, "view", 0)
        nodes = page.evaluate("document.querySelectorAll('*').length")
        # From a move of the mouse until the lines are drawn, word by word.
        spent = page.evaluate(
            """(async () => {
                const times = [];
                for (const token of document.querySelectorAll('#queries .token')) {
                    const start = performance.now();
                    token.dispatchEvent(new PointerEvent('pointerenter', { pointerType: 'mouse' }));
                    await new Promise(requestAnimationFrame);
                    times.push(performance.now() - start);
                }
                return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
            })()"""
        )
        seen(f"{width} pixels: {nodes} elements, a move of the mouse is drawn after {spent:.0f} ms")
        assert nodes < 800 and page.errors == []


@needs_chromium
@pytest.mark.proof("The viewer in Chromium: works in the frame of a notebook")
def test_in_a_frame(record, tmp_path):
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><body>{record._repr_html_()}</body>", encoding="utf8")
    with Browser() as page:
        page.open(tmp_path / "notebook.html")
        # The frame has an origin of its own: what it shows can be seen from outside only as pixels, and errors.
        page.evaluate(FRAME)
        picture = page.screenshot(tmp_path / "frame.png").read_bytes()
        assert len(picture) > 15_000 and page.errors == []


@needs_chromium
def test_one_head_and_one_word(tmp_path):
    one = np.ones((1, 1, 1, 1))
    Attention(["</s>"], ["<s>"], ["</s>"], one, one, one).save_html(tmp_path / "page.html")
    with Browser(390, 844) as page:
        page.open(tmp_path / "page.html")
        hover(page, "queries", 0)
        assert shares(page, "keys") == [100]
        assert page.errors == []
