"""The pictures show what is in the record."""

import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("matplotlib")
import keras

import keras_transformer as kt
from keras_transformer import visualization
from tests.visualization.records import make_record


def image_of(axes):
    return np.asarray(axes.images[0].get_array())


def tick_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def saved(figure, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(tmp_path / "picture.png")
    return (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_a_head(tmp_path):
    record = make_record()
    figure = visualization.plot_head(record, "cross", layer=0, head=2)
    np.testing.assert_array_equal(image_of(figure.axes[0]), record.cross[0, 2])
    assert tick_labels(figure.axes[0].yaxis) == ["Das", "Tier", "über", "·quer", "·te", "nicht", ".", "</s>"]
    assert tick_labels(figure.axes[0].xaxis)[:3] == ["The", "ani", "·mal"]
    assert figure.get_suptitle() == "Cross-attention, layer 1, head 3"
    assert saved(figure, tmp_path)
    figure = visualization.plot_head(record, "encoder_self", join=True)
    np.testing.assert_allclose(image_of(figure.axes[0]), record.words().encoder_self[-1].mean(axis=0))
    assert tick_labels(figure.axes[0].xaxis) == ["The", "animal", "didn't", "cross", ".", "</s>"]
    assert figure.get_suptitle() == "Encoder self-attention, layer 2, mean of the heads"


def test_all_heads(tmp_path):
    record = make_record()
    figure = visualization.plot_heads(record, "decoder_self")
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in panels][:4] == [*(f"layer 1, head {n}" for n in (1, 2, 3)), "layer 2, head 1"]
    for axes, weights in zip(panels, record.decoder_self.reshape(6, 8, 8), strict=True):
        np.testing.assert_array_equal(image_of(axes), weights)
        assert axes.images[0].get_clim() == (0, 1)
    assert tick_labels(panels[3].xaxis)[0] == "<s>"
    assert saved(figure, tmp_path)


def test_alignment(tmp_path):
    record = make_record()
    figure = visualization.plot_alignment(record)
    wanted = record.words().cross.mean(axis=(0, 1))
    np.testing.assert_allclose(image_of(figure.axes[0]), wanted, rtol=1e-5)
    marks = figure.axes[0].collections[0].get_offsets()
    assert marks[:, 0].tolist() == wanted.argmax(axis=1).tolist()
    assert saved(figure, tmp_path)
    one = visualization.plot_alignment(record, layer=1, head=0, join=False)
    np.testing.assert_array_equal(image_of(one.axes[0]), record.cross[1, 0])


def test_threads(tmp_path):
    records = [make_record(seed=seed) for seed in (1, 2)]
    figure = visualization.plot_threads(records, "animal", layer=0, head=1)
    for axes, record in zip(figure.axes, records, strict=True):
        weights = record.words().encoder_self[0, 1, 1]
        drawn = {round(float(line.get_ydata()[-1])): line.get_linewidth() for line in axes.lines}
        assert sorted(drawn) == np.flatnonzero(weights >= 0.005).tolist()
        assert max(drawn, key=drawn.get) == weights.argmax()
        bold = [text.get_text() for text in axes.texts if text.get_weight() == "bold"]
        assert bold == ["animal", record.words().source_tokens[weights.argmax()]]
    assert saved(figure, tmp_path)
    assert len(visualization.plot_threads(records[0], "Tier", "cross").axes) == 1
    with pytest.raises(ValueError, match=r"There is no such word in the rows of 'encoder_self'.*Received: 'Tier'"):
        visualization.plot_threads(records[0], "Tier")
    with pytest.raises(ValueError, match="at least one record"):
        visualization.plot_threads([], "it")


def test_text_is_not_a_formula(tmp_path):
    record = make_record(source=["▁$\\frac$", "▁$x_1$", "▁a^b", "</s>"])
    figure = visualization.plot_head(record)
    assert tick_labels(figure.axes[0].yaxis)[:2] == ["$\\frac$", "$x_1$"]
    assert saved(figure, tmp_path)
    assert saved(visualization.plot_threads(record, "$x_1$"), tmp_path)


def test_wrong_numbers():
    with pytest.raises(ValueError, match=r"`layer` must be from 0 to 1, for 'cross' has 2. Received: layer=2"):
        visualization.plot_head(make_record(), "cross", layer=2)
    with pytest.raises(ValueError, match=r"`head` must be from 0 to 2.*Received: head=-4"):
        visualization.plot_alignment(make_record(), head=-4)


def test_positions(tmp_path):
    figure = visualization.plot_positions(num_positions=20, model_dim=6)
    encoding = image_of(figure.axes[0])
    assert encoding.shape == (20, 6)
    assert encoding[3, 0] == pytest.approx(np.sin(3), abs=1e-6) and encoding[3, 1] == pytest.approx(np.cos(3), abs=1e-6)
    likeness = [line.get_ydata() for line in figure.axes[1].lines]
    assert likeness[0][0] == pytest.approx(1, abs=1e-6) and max(likeness[0]) == likeness[0][0]
    assert saved(figure, tmp_path)


def test_masks(tmp_path):
    figure = visualization.plot_masks(source_ids=(5, 6, 0), num_targets=4)
    encoder, decoder, cross = (image_of(axes) for axes in figure.axes)
    assert encoder.tolist() == [[1, 1, 0]] * 3 and cross.tolist() == [[1, 1, 0]] * 4
    assert np.array_equal(decoder, np.tri(4))
    assert saved(figure, tmp_path)


def test_schedules(tmp_path):
    figure = visualization.plot_schedule(updates=8000)
    assert len(figure.axes[0].lines) == 3
    base = figure.axes[0].lines[0].get_xydata()
    assert base[base[:, 1].argmax(), 0] == pytest.approx(4000, abs=30)
    assert base[:, 1].max() == pytest.approx((512 * 4000) ** -0.5, rel=0.01)
    assert saved(figure, tmp_path)
    own = visualization.plot_schedule(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5), updates=100)
    assert own.axes[0].lines[0].get_ydata()[0] == pytest.approx(0.1)


ROWS = [
    {"updates": 100, "learning_rate": 0.1, "loss": 5.0, "perplexity": 90.0, "val_loss": 4.0, "val_perplexity": 40.0},
    {"updates": 200, "learning_rate": 0.2, "loss": 3.0, "perplexity": 12.0, "val_loss": 3.5, "val_bleu": 20.0},
    {"updates": 300, "learning_rate": 0.1, "loss": 2.0, "perplexity": 5.0, "val_loss": 3.0, "val_bleu": 30.0, "val_chrf": 52.0},
]


def panel(figure, title):
    return next(axes for axes in figure.axes if axes.get_title().startswith(title))


def lines(axes):
    return {line.get_label().split(":")[0]: line.get_xydata().tolist() for line in axes.lines}


def test_training_curves(tmp_path):
    figure = visualization.plot_training(ROWS, "small")
    assert figure.get_suptitle() == "small"
    wanted = {"training": [[100, 5], [200, 3], [300, 2]], "validation": [[100, 4], [200, 3.5], [300, 3]]}
    assert lines(panel(figure, "Loss")) == wanted
    assert lines(panel(figure, "Perplexity"))["validation"] == [[100, 40]]
    assert lines(panel(figure, "Translations")) == {"BLEU": [[200, 20], [300, 30]], "chrF": [[300, 52]]}
    assert lines(panel(figure, "Learning"))["rate"] == [[100, 0.1], [200, 0.2], [300, 0.1]]
    assert saved(figure, tmp_path)


def test_the_rate_of_every_update():
    rate = panel(visualization.plot_training(ROWS, rate=lambda updates: updates * 2), "Learning rate").lines[0].get_xydata()
    assert len(rate) == 300 and np.array_equal(rate[:, 1], 2 * rate[:, 0])


def test_what_fit_returned(tmp_path):
    history = keras.callbacks.History()
    history.epoch = [0, 1]
    history.history = {"loss": [3.0, 2.0], "val_loss": [4.0, 3.0]}
    figure = visualization.plot_training(history)
    assert lines(panel(figure, "Loss")) == {"training": [[1, 3], [2, 2]], "validation": [[1, 4], [2, 3]]}
    assert panel(figure, "Translations").get_xlabel() == "epochs"
    assert [text.get_text() for text in panel(figure, "Translations").texts] == ["not measured"]
    assert saved(figure, tmp_path)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "keras3-transformer\[plots\]"'):
        kt.visualization.plot_head(make_record())


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_stacks(norm, tmp_path):
    config = kt.TransformerConfig(
        vocabulary_size=9, norm=norm, tie="none", positions="learned", num_encoder_layers=2, num_decoder_layers=3
    )
    figure = visualization.plot_stacks(config)
    texts = [text.get_text() for text in figure.axes[0].texts if text.get_text()]
    assert texts.count("LearnedPositionalEncoding  (added)") == texts.count("TokenEmbedding  (times √M)") == 2
    assert texts.count("MultiHeadAttention  (cross-attention)") == 1
    assert texts.count("FeedForward") == 2 and texts.count("Dense") == 1
    assert texts.count("LayerNormalization") == (0 if norm == "post" else 7)
    assert texts.count("add, LayerNormalization") == (5 if norm == "post" else 0)
    assert {"2 times EncoderBlock", "3 times DecoderBlock"} <= set(texts)
    assert saved(figure, tmp_path)
    assert "TiedLogits" in [text.get_text() for text in visualization.plot_stacks().axes[0].texts]
