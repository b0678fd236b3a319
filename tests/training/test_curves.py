"""The picture of a run."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from training.curves import draw

ROWS = [
    {"updates": 100, "learning_rate": 0.1, "loss": 5.0, "perplexity": 90.0, "val_loss": 4.0, "val_perplexity": 40.0},
    {
        "updates": 200,
        "learning_rate": 0.2,
        "loss": 3.0,
        "perplexity": 12.0,
        "val_loss": 3.5,
        "val_bleu": 20.0,
        "val_chrf": 41.0,
    },
    {"updates": 300, "learning_rate": 0.1, "loss": 2.0, "perplexity": 5.0, "val_loss": 3.0, "val_bleu": 30.0, "val_chrf": 52.0},
]


def panel(figure, title):
    return next(axes for axes in figure.axes if axes.get_title().startswith(title))


def lines(axes):
    return {line.get_label().split(":")[0]: line.get_xydata().tolist() for line in axes.lines}


def test_each_panel_shows_what_was_measured():
    figure = draw(ROWS, "small")
    assert figure.get_suptitle() == "small"
    loss = lines(panel(figure, "Loss"))
    assert loss == {"training": [[100, 5], [200, 3], [300, 2]], "validation": [[100, 4], [200, 3.5], [300, 3]]}
    assert lines(panel(figure, "Perplexity"))["validation"] == [[100, 40]]
    scores = lines(panel(figure, "Translations"))
    assert scores == {"BLEU": [[200, 20], [300, 30]], "chrF": [[200, 41], [300, 52]]}


def test_the_rate_is_that_of_every_update_if_it_is_known():
    rate = panel(draw(ROWS, "small", lambda updates: updates * 2), "Learning rate").lines[0].get_xydata()
    assert len(rate) == 300 and np.array_equal(rate[:, 1], 2 * rate[:, 0])
    rate = panel(draw(ROWS, "small"), "Learning rate").lines[0].get_xydata()
    assert rate.tolist() == [[100, 0.1], [200, 0.2], [300, 0.1]]


def test_a_run_without_validation_is_drawn(tmp_path):
    rows = [{"updates": 10, "learning_rate": 0.1, "loss": 5.0, "perplexity": 90.0}]
    figure = draw(rows, "bare")
    assert [text.get_text() for text in panel(figure, "Translations").texts] == ["not measured"]
    figure.savefig(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
