import json
import re

import pytest

from keras_transformer.serving import write_playground
from keras_transformer.serving.playground import page_at_origin
from tests.browser import Browser, needs_chromium
from tests.serving.local_servers import serving

SENTENCE = "The animal didn't cross the street because it was too tired."
MINUS = "\N{MINUS SIGN}"
IDLE = "document.querySelector('#translation').getAttribute('aria-busy') === 'false'"
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>bold</b> & \u202e\u2028 ' \" \\"


def settings_of(path):
    text = re.search(
        r'<script type="application/json" id="settings">(.*?)</script>', path.read_text(encoding="utf8"), re.DOTALL
    )
    return json.loads(text[1])


def test_what_is_given_is_in_the_page(tmp_path):
    path = write_playground(
        tmp_path / "page.html",
        "en-de",
        "http://host:8501",
        title=HOSTILE,
        defaults={"beam_size": 4, "length_penalty": 0.6, "max_length": None},
        limits={"beam_size": 8, "max_length": 200},
        examples=[SENTENCE],
        languages=("en", "de"),
    )
    assert settings_of(path) == {
        "model": "en-de",
        "url": "http://host:8501",
        "title": HOSTILE,
        "defaults": {"beam_size": 4, "length_penalty": 0.6},
        "limits": {"beam_size": 8, "max_length": 200},
        "examples": [SENTENCE],
        "languages": ["en", "de"],
    }


@pytest.mark.parametrize("languages", [("en",), ("en", "German"), "de"])
def test_languages_that_are_none(tmp_path, languages):
    with pytest.raises(ValueError, match=r"`languages` takes two codes.* Received: languages="):
        write_playground(tmp_path / "page.html", "en-de", languages=languages)


@needs_chromium
def test_the_languages_are_named(tmp_path):
    with Browser() as page:
        page.open(write_playground(tmp_path / "page.html", "en-de", languages=("en", "de")))
        assert text_of(page, "#text-name") == "English" and text_of(page, "#translation-name") == "German"
        assert page.evaluate("document.querySelector('#translation').lang") == "de"
        page.open(write_playground(tmp_path / "other.html", "model"))
        assert text_of(page, "#text-name") == "Text" and text_of(page, "#translation-name") == "Translation"


def test_unknown_options_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`limits` takes .* Received: \['beams'\]"):
        write_playground(tmp_path / "page.html", "en-de", limits={"beams": 4})


def test_the_page_is_one_file_and_reads_nothing_as_html(tmp_path):
    text = write_playground(tmp_path / "page.html", "en-de").read_text(encoding="utf8")
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", text)
    assert not re.findall(r"url\(|@import|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


@pytest.fixture(scope="module")
def server(toy):
    with serving(toy, cors=True) as server:
        yield server


@pytest.fixture
def page_file(server, tmp_path):
    return write_playground(
        tmp_path / "page.html",
        "toy",
        server.url,
        title="English → German",
        defaults={"beam_size": 4, "length_penalty": 0.6},
        limits={"beam_size": 8, "max_length": 200},
        examples=[SENTENCE, "A small house."],
    )


@pytest.fixture
def page(page_file, server):
    with Browser(1280, 900) as page:
        page.open(page_file)
        page.wait_for("document.querySelector('#status').dataset.state === 'ready'")
        server.requests.clear()
        yield page
        assert page.errors == []
        assert page.evaluate("document.title") == "English → German"


def text_of(page, selector):
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")


def translated(page, text):
    """Types a text, sends it and returns the translation once all of the answer is there."""
    page.evaluate("document.querySelector('#text').value = ''")
    page.type("#text", text)
    page.key("Control+Enter")
    page.wait_for(f"{IDLE} && document.querySelector('#drawing svg')")
    return text_of(page, "#translation")


def asked(server):
    return [json.loads(body) for method, _, body in server.requests if method == "POST"]


@needs_chromium
@pytest.mark.proof("The playground translates in Chromium through the local server: text, alternatives, alignment")
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_translates_end_to_end(page_file, server, width, height, tmp_path, seen):
    with Browser(width, height) as page:
        page.open(page_file)
        page.wait_for("document.querySelector('#status').dataset.state === 'ready'")
        assert text_of(page, "#status-text") == "Ready, version 1"
        assert translated(page, SENTENCE) == SENTENCE.upper()
        assert text_of(page, "#note") == f"Score {MINUS}6.00"
        rows = page.evaluate("[...document.querySelectorAll('#hypotheses li')].map(row => row.textContent)")
        assert rows == [f"{SENTENCE.upper()}{MINUS}6.00", f"{SENTENCE.lower()}{MINUS}6.50", f"{SENTENCE}{MINUS}8.00"]
        words = page.evaluate("[...document.querySelectorAll('#drawing text')].map(word => word.textContent)")
        assert words == SENTENCE.split() + SENTENCE.upper().split()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("[...document.querySelectorAll('#drawing text')].every(word => word.getBBox().x >= 0)")
        assert page.errors == []
        assert {url.split(":")[0] for url in page.requests} <= {"file", "http", "data"}
        assert all(url.startswith((server.url, "file:", "data:")) for url in page.requests)
        assert page.screenshot(tmp_path / "page.png", full_page=True).stat().st_size > 20_000
    seen(f"{width}x{height}")


@needs_chromium
def test_a_word_shows_its_own_lines(page):
    translated(page, "the houses are small")
    assert page.evaluate("document.querySelectorAll('#drawing path.faint').length") == 0
    page.hover("#drawing .word:nth-of-type(2)")
    faint = page.evaluate("document.querySelectorAll('#drawing path.faint').length")
    lines = page.evaluate("document.querySelectorAll('#drawing path').length")
    assert 0 < faint < lines
    label = page.evaluate("document.querySelector('#drawing .word:nth-of-type(2)').getAttribute('aria-label')")
    assert re.fullmatch(r"houses: HOUSES \d+%(, \w+ \d+%)*", label)
    page.hover("h1")
    assert page.evaluate("document.querySelectorAll('#drawing path.faint').length") == 0
    page.evaluate("document.querySelector('#drawing .word').focus()")
    assert page.evaluate("document.querySelectorAll('#drawing path.faint').length") > 0


@needs_chromium
def test_long_sentences_are_drawn_in_columns(page):
    translated(page, "word " * 60)
    places = page.evaluate("[...document.querySelectorAll('#drawing text')].map(word => Number(word.getAttribute('y')))")
    assert len(places) == 120
    assert len(set(places)) == 60
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@needs_chromium
def test_tokens_become_words(page):
    tokens = ["▁hous", "es", "▁", "(", "<0xE2>", "<0x82>", "<0xAC>", ")", "</s>", ""]
    words = page.evaluate(f"wordsOf({json.dumps(tokens)})")
    assert words == [{"text": "houses", "indices": [0, 1]}, {"text": "(€)", "indices": [2, 3, 4, 5, 6, 7]}]
    assert [word["text"] for word in page.evaluate("wordsOf(['▁我', '喜欢', '▁the', 'm'])")] == ["我", "喜欢", "them"]
    weights = page.evaluate(
        "wordWeights(wordsOf(['▁a', 'b', '▁c']), wordsOf(['▁x', 'y']), [[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])"
    )
    assert weights == [[pytest.approx(0.475), pytest.approx(0.525)]]


@needs_chromium
def test_words_that_differ_are_marked(page):
    nodes = "marked('a big house there', 'a small house')"
    found = page.evaluate(nodes + ".map(node => node.textContent ? `[${node.textContent}]` : node)")
    assert "".join(found) == "a [big] house [there]"


@needs_chromium
def test_lines_are_sentences(page, server):
    assert translated(page, "one\n\ntwo three") == "ONE\n\nTWO THREE"
    assert asked(server)[0] == {"signature_name": "serving_default", "inputs": {"text": ["one", "two three"]}}
    assert text_of(page, "#which") == "Sentence 1 of 2"
    page.click("#next")
    page.wait_for("document.querySelectorAll('#drawing text').length === 4")
    assert text_of(page, "#hypotheses .words") == "TWO THREE"
    assert page.evaluate("document.querySelector('#next').disabled")


@needs_chromium
def test_options_are_sent_and_kept(page, server, page_file):
    page.click("#options summary")
    page.type("#beam", "2")
    page.key("Tab")
    assert text_of(page, "#options-tip") == "beam 2"
    assert translated(page, "a") == "A (2 -1.00 0)"
    assert asked(server)[0]["signature_name"] == "translate_with_options"
    page.open(page_file)
    assert page.evaluate("document.querySelector('#beam').value") == "2"
    page.click("#options summary")
    page.click("#reset")
    assert translated(page, "a") == "A"
    assert page.evaluate("[...document.querySelectorAll('#beam, #penalty, #longest')].map(field => field.placeholder)") == [
        "4", "0.6", "as exported",
    ]  # fmt: skip


@needs_chromium
def test_closed_sections_ask_nothing(page, server):
    page.click("#alternatives summary")
    page.click("#alignment summary")
    page.type("#text", "a")
    page.click("#go")
    page.wait_for("document.querySelector('#translation').textContent === 'A'")
    page.wait_for(IDLE)
    assert [request["signature_name"] for request in asked(server)] == ["serving_default", "score"]
    page.click("#alignment summary")
    page.wait_for("document.querySelector('#drawing svg')")
    assert [request["signature_name"] for request in asked(server)] == ["serving_default", "score", "align"]


@needs_chromium
def test_translations_that_the_model_hardly_expects_are_marked(page):
    marked = "[...document.querySelectorAll('#translation .doubtful')].map(line => line.textContent)"
    assert translated(page, "a house") == "A HOUSE"
    assert page.evaluate(marked) == [] and "not sure" not in text_of(page, "#note")
    page.click("#options summary")
    page.type("#beam", "2")
    assert translated(page, "one\n\ntwo") == "ONE (2 -1.00 0)\n\nTWO (2 -1.00 0)"
    page.wait_for("document.querySelector('#translation .doubtful')")  # What has become longer is less likely to the toy.
    assert page.evaluate(marked) == ["ONE (2 -1.00 0)", "TWO (2 -1.00 0)"]
    assert text_of(page, "#note") == "The model is not sure of 2 of 2 lines"
    assert page.evaluate("document.querySelector('#note').classList.contains('warning')")


@needs_chromium
def test_translates_while_one_types_if_asked_to(page, server):
    page.click("#options summary")
    page.click("#typing")
    page.type("#text", "a")
    page.type("#text", "b")
    page.wait_for("document.querySelector('#translation').textContent === 'AB'")
    assert asked(server)[0]["inputs"] == {"text": ["ab"]}


@needs_chromium
def test_examples_and_clearing(page):
    page.click("#examples button")
    page.wait_for(f"document.querySelector('#translation').textContent === {json.dumps(SENTENCE.upper())}")
    page.wait_for("document.querySelector('#drawing svg')")
    assert text_of(page, "#count") == "60 characters"
    page.evaluate("document.querySelector('#text').select()")
    page.key("Delete")
    page.wait_for("document.querySelector('#translation').textContent === 'The translation appears here'")
    assert page.evaluate("document.querySelectorAll('#hypotheses li, #drawing svg').length") == 0
    assert page.evaluate("document.querySelector('#copy').disabled")


@needs_chromium
@pytest.mark.proof("The playground shows any text as text")
def test_text_is_never_markup(page):
    hostile = "<img src=x onerror=\"document.title='owned'\"> <script>document.title='owned'</script> &amp;"
    assert translated(page, hostile) == hostile.upper()
    assert page.evaluate("document.querySelectorAll('main img, main script, main b').length") == 0
    assert "<SCRIPT>DOCUMENT.TITLE='OWNED'</SCRIPT>" in text_of(page, "#hypotheses")


@needs_chromium
def test_overlong_text_is_said_to_be_cut(page):
    translated(page, "x" * 201)
    assert "too long" in text_of(page, "#note")
    assert page.evaluate("document.querySelector('#note').classList.contains('warning')")


@needs_chromium
@pytest.mark.proof("The playground says what to do when the server refuses cross-origin requests, is away, or lacks the model")
def test_says_what_is_wrong(page_file, toy, tmp_path, seen):
    with serving(toy) as strict, serving(toy, name="other", cors=True) as other, Browser() as page:
        page.open(f"{page_file.as_uri()}?url={strict.url}")
        page.wait_for("!document.querySelector('#help').hidden")
        assert text_of(page, "#status-text") == "Refuses this page"
        assert "--rest_api_enable_cors_support=true" in text_of(page, "#help")
        page.open(f"{page_file.as_uri()}?url={other.url}")
        page.wait_for("!document.querySelector('#help').hidden")
        assert text_of(page, "#status-text") == "No such model"
        page.open(f"{page_file.as_uri()}?url=http://127.0.0.1:65534")
        page.wait_for("!document.querySelector('#help').hidden")
        assert text_of(page, "#help h2") == "Nothing answers at http://127.0.0.1:65534"
        assert "python3 -m http.server" in text_of(page, "#help")
        page.type("#text", "a")
        page.key("Control+Enter")
        page.wait_for("document.querySelector('#note').textContent === 'No answer from the server'")
    seen("refused, no such model, away")


@needs_chromium
def test_comes_back_when_the_server_does(page_file, tmp_path, versions):
    (tmp_path / "versions").mkdir()
    with serving(tmp_path / "versions", cors=True) as server, Browser() as page:
        page.open(f"{page_file.as_uri()}?url={server.url}")
        page.wait_for("document.querySelector('#status-text').textContent === 'No such model'")
        versions(3)
        server.poll()
        page.click("#status")
        page.wait_for("document.querySelector('#status-text').textContent === 'Ready, version 3'")
        assert page.evaluate("document.querySelector('#help').hidden")


@needs_chromium
def test_one_origin_needs_no_leave(toy):
    """A page that comes from the server itself works without cross-origin requests."""
    with serving(toy, page=lambda: page_at_origin(toy, "toy")) as strict, Browser() as page:
        page.open(f"{strict.url}/")
        page.wait_for("document.querySelector('#status').dataset.state === 'ready'")
        assert translated(page, "a house") == "A HOUSE"


CONTRAST = """(() => {
  const channel = value => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const colour = text => text.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const found = colour(getComputedStyle(element).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
  };
  const names = "h1, h2, label, summary, button, p, footer, output, #count, #status-text, .words, .score";
  return [...document.querySelectorAll(names)]
    .filter(element => element.offsetParent && element.textContent.trim() && !element.disabled)
    .map(element => [light(colour(getComputedStyle(element).color)), light(behind(element)), element.id || element.className])
    .map(([a, b, name]) => [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), name]);
})()"""


@needs_chromium
@pytest.mark.proof("Every field of the playground has a label, and all text a contrast of 4.5 in light and dark")
def test_can_be_read_by_all(page, seen):
    translated(page, SENTENCE)
    page.click("#options summary")
    fields = page.evaluate("[...document.querySelectorAll('input, textarea')].map(field => field.labels.length)")
    assert len(fields) == 8
    assert all(fields)
    buttons = page.evaluate(
        "[...document.querySelectorAll('button')].map(one => one.getAttribute('aria-label') || one.textContent.trim())"
    )
    assert all(buttons)
    least = []
    for dark in (False, True):
        page.prefer_dark(dark)
        found = page.evaluate(CONTRAST)
        assert len(found) > 15
        least.append(min(found))
    seen(f"least contrast {least[0][0]:.1f} in light, {least[1][0]:.1f} in dark")
    assert min(least)[0] >= 4.5, least
