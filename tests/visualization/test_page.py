"""The page: self-contained, escaped, small. What it does in a browser is in test_viewer.py."""

import base64
import html
import json
import re

import numpy as np
import pytest

from keras_transformer.attention import KINDS
from keras_transformer.attention.page import attention_page
from tests.visualization.records import make_record

HOSTILE = [
    "▁</script><script>alert(1)</script>",
    "▁<!--<script>",
    '▁"><img',
    "▁src=x",
    "▁onerror=alert(2)>",
    "▁&lt;b&gt;",
    "▁\u2028",
    "</s>",
]


def data_of(page):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    return json.loads(text)


def test_the_data_are_those_of_the_record(tmp_path):
    record = make_record()
    record.save_html(tmp_path / "new" / "attention.html", title="A title")
    data = data_of((tmp_path / "new" / "attention.html").read_text(encoding="utf8"))
    assert data["title"] == "A title" and data["source"] == "The animal didn't cross."
    assert [kind["name"] for kind in data["kinds"]] == list(KINDS)
    for kind in data["kinds"]:
        weights = record[kind["name"]]
        steps = np.frombuffer(base64.b64decode(kind["weights"]), "uint8").reshape(weights.shape)
        assert np.abs(steps / 255 - weights).max() <= 0.5 / 255 + 1e-6
        assert (kind["layers"], kind["heads"]) == weights.shape[:2]
        assert len(kind["queries"]["labels"]) == weights.shape[2]
        assert sorted(place for group in kind["keys"]["groups"] for place in group) == list(range(weights.shape[3]))
    assert data["kinds"][0]["keys"]["words"] == record.words().source_tokens


def test_text_is_never_html():
    record = make_record(source=HOSTILE)
    page = attention_page(record, title="</title><script>alert(3)</script>")
    assert page.count("<script") == 2 and page.count("</script>") == 2
    assert "<img" not in page and "<!--" not in page
    assert data_of(page)["kinds"][0]["queries"]["labels"][0] == "</script><script>alert(1)</script>"
    assert data_of(page)["title"] == "</title><script>alert(3)</script>"
    assert re.findall(r"<title>(.*?)</title>", page) == [html.escape("</title><script>alert(3)</script>")]


def test_marks_of_the_template_in_a_text_stay_text():
    record = make_record(source=["▁{data}", "▁/*", "▁script", "▁*/", "▁{title}", "</s>"])
    assert data_of(attention_page(record, "/* script */ {data}"))["source"] == "{data} /* script */ {title}"


def test_nothing_is_loaded_from_elsewhere():
    page = attention_page(make_record())
    assert not re.search(r"""(src|href)\s*=|@import|url\(|https?://|fetch\(|XMLHttpRequest""", page)
    assert "default-src 'none'" in page
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", page)


def test_in_a_notebook_the_page_is_in_a_frame():
    record = make_record(source=HOSTILE)
    frame = record._repr_html_()
    (inner,) = re.findall(
        r'^<iframe srcdoc="([^"]*)" sandbox="allow-scripts" title="Attention" style="[^"]*"></iframe>$', frame
    )
    assert html.unescape(inner) == attention_page(record)


@pytest.mark.proof("The page of a sentence of 60 tokens with 6 layers of 8 heads is below 2 MB")
def test_size(seen):
    words = [f"▁word{place}" for place in range(60)]
    page = attention_page(make_record(words, words, layers=6, heads=8)).encode()
    seen(f"{len(page):,} bytes")
    assert len(page) < 2_000_000
