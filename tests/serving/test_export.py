"""An exported translator: the answers of the translator, whoever asks with whom, whatever they ask."""

import contextlib
import functools
import importlib.util
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request

import keras
import numpy as np
import pytest
import yaml

import keras_transformer as kt
from keras_transformer.serving.export import SAMPLES
from keras_transformer.serving.graph_checks import all_nodes, check_graph, known_operations, read_graph
from keras_transformer.serving.runtime import SavedModelSession, as_json
from keras_transformer.serving.serve import find_export, make_server
from keras_transformer.serving.signatures import served_limits
from keras_transformer.serving.verification import verify
from keras_transformer.serving.warm_up import FILE
from tests.conftest import PROVING
from tests.serving.other_runtimes import alone, other_tensorflow
from tests.serving.translators import make_translator, texts
from tests.user_blocks import RotaryDecoderBlock, RotaryEncoderBlock

pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="an export is made on TensorFlow")


# Exports by the place of the normalizations and the device, and what is special about them.
EXPORTS = {
    ("post", "gpu"): {"max_beam_size": 5},
    ("post", "cpu"): {"batch_sizes": [1], "samples": SAMPLES[:2], "max_beam_size": 2},  # Narrower than the translator's own.
    ("pre", "gpu"): {"batch_sizes": [1], "samples": SAMPLES[:2]},
    ("pre", "cpu"): {"batch_sizes": [1], "samples": SAMPLES[:2]},
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Exports a translator once: `exported("pre", "cpu")` returns it, the folder of the version and a session."""
    make = functools.cache(lambda norm: make_translator(norm=norm, feed_forward_dim=512))

    @functools.cache
    def export(norm, device):
        folder = tmp_path_factory.mktemp("export") / "en-de"
        folder.mkdir()
        (folder / "docker-compose.gpu.yml").write_text("of an export before")
        version = kt.export_saved_model(make(norm), folder, device=device, **EXPORTS[norm, device])
        return make(norm), version, opened.enter_context(SavedModelSession(version))

    with contextlib.ExitStack() as opened:
        yield export


@pytest.fixture(scope="module")
def translator(exported):
    return exported("post", "gpu")[0]


@pytest.fixture(scope="module")
def version(exported):
    return exported("post", "gpu")[1]


@pytest.fixture(scope="module")
def session(exported):
    return exported("post", "gpu")[2]


def decoded(array):
    return [text.decode("utf8") for text in array]


def assert_as_translated(answer, expected):
    """Another text is accepted only where its score is that of the expected one."""
    for text, score, own in zip(decoded(answer["translation"]), answer["score"], expected, strict=True):
        assert score == pytest.approx(own.score, abs=1e-3)
        assert text == own.text or abs(score - own.score) < 1e-4


@pytest.mark.proof("The SavedModel, run by TensorFlow's C runtime with ctypes, answers all signatures as the translator does")
@pytest.mark.parametrize(("norm", "device"), EXPORTS)
def test_answers_as_the_translator(exported, norm, device, size, seen):
    translator, _, session = exported(norm, device)
    sources = texts(size(40 if (norm, device) == ("post", "gpu") else 15, full=500))
    same = compare_all_signatures(translator, session, sources, min(3, EXPORTS[norm, device].get("max_beam_size", 3)))
    assert same > 0.98
    seen(f"{norm}-norm, export for a {device.upper()}: {len(sources)} sentences, {same:.1%} the same text, the others as good")


def compare_all_signatures(translator, session, sources, beam_size) -> float:
    """Compares what a session answers with what a translator says; returns the share of translations that are the same text."""
    expected = translator.translate(sources, beam_size=beam_size, return_scores=True)
    answer = session.run("serving_default", {"text": sources})
    assert_as_translated(answer, expected)
    assert not answer["truncated"].any()

    found = session.run("nbest", {"text": sources})
    own = translator.translate(sources, beam_size=beam_size, num_hypotheses=beam_size, return_scores=True)
    np.testing.assert_allclose(found["scores"], [[one.score for one in row] for row in own], atol=1e-3)
    assert [decoded(row)[0] for row in found["translations"]] == decoded(answer["translation"])

    number = len(sources)
    options = {"beam_size": np.full(number, 2), "length_penalty": np.full(number, 1.5), "max_length": np.zeros(number, int)}
    answer_of_two = session.run("translate_with_options", {"text": sources, **options})
    assert_as_translated(answer_of_two, translator.translate(sources, beam_size=2, length_penalty=1.5, return_scores=True))

    targets = texts(len(sources), seed=3)
    scored = session.run("score", {"source": sources, "target": targets})
    np.testing.assert_allclose(scored["log_probability"], translator.score(sources, targets), rtol=1e-4, atol=1e-3)
    assert scored["token_count"].tolist() == [len(row) + 1 for row in translator.tokenizer.target.encode(targets)]

    aligned = session.run("align", {"text": sources})
    assert aligned["translation"].tolist() == answer["translation"].tolist()
    assert_aligned(translator, sources, aligned, beam_size)
    return np.mean([text == own.text for text, own in zip(decoded(answer["translation"]), expected, strict=True)])


@pytest.mark.skipif(not PROVING, reason="downloads other versions of TensorFlow: runs in `make prove`")
@pytest.mark.proof("The same export answers all signatures on the C runtimes of tensorflow 2.18 and 2.20")
@pytest.mark.parametrize("runtime", ["2.18", "2.20"])
@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_on_other_runtimes(translator, version, session, tmp_path, runtime, device, seen):
    if device == "cpu":
        version = kt.export_saved_model(translator, tmp_path / "en-de", max_beam_size=5, device="cpu")
    sources = texts(500)
    inputs = {"serving_default": {"text": sources}, "nbest": {"text": sources}, "align": {"text": sources[:20]}}
    inputs["score"] = {"source": sources, "target": texts(500, seed=3)}
    options = {"beam_size": [1, 2, 3, 5] * 125, "length_penalty": [0.6, 1.0] * 250, "max_length": [0] * 500}
    inputs["translate_with_options"] = {"text": sources, **options}
    lines = "".join(json.dumps({"signature": name, "inputs": given}) + "\n" for name, given in inputs.items())
    result = alone(tmp_path, version, "--packages", other_tensorflow(runtime), requests=lines)
    answers = dict(zip(inputs, map(json.loads, result.stdout.splitlines()), strict=True))
    answer = {**answers["serving_default"]}
    answer["translation"] = [text.encode() for text in answer["translation"]]
    assert_as_translated(answer, translator.translate(sources, return_scores=True))
    for name, given in inputs.items():
        for output, values in session.run(name, given).items():
            if values.dtype.kind == "f":
                np.testing.assert_allclose(np.array(answers[name][output]), values, rtol=1e-4, atol=1e-3)
    seen(f"{runtime}, export for a {device.upper()}: {len(inputs)} signatures, {len(sources)} sentences")


@pytest.mark.proof("`serving.serve` answers as the C runtime does beside it: all signatures, in rows and in columns")
def test_served_on_this_machine(version, tmp_path, size, seen):
    count, requests = size(20, full=500), []
    for number, signature in zip(range(count), itertools.cycle(REQUESTS)):
        requests.append((signature, REQUESTS[signature](texts(1 + number % 3, seed=number))))
    lines = "".join(json.dumps({"signature": name, "inputs": inputs}) + "\n" for name, inputs in requests)
    runtime = alone(tmp_path, version, requests=lines)
    with make_server(version.parent, "127.0.0.1", 0) as server:
        for (name, inputs), line in zip(requests, runtime.stdout.splitlines(), strict=True):
            expected = json.loads(line)
            in_rows = [dict(zip(inputs, row, strict=True)) for row in zip(*inputs.values(), strict=True)]
            rows = predicted(server, {"signature_name": name, "instances": in_rows})["predictions"]
            columns = predicted(server, {"signature_name": name, "inputs": inputs})["outputs"]
            for found in (columns, {key: [row[key] for row in rows] for key in rows[0]}):
                assert set(found) == set(expected)
                for key, values in found.items():
                    if np.asarray(values).dtype.kind == "f":
                        np.testing.assert_allclose(values, expected[key], rtol=1e-5, atol=1e-6)
                    else:
                        assert values == expected[key]
    seen(f"{count} requests of {len(REQUESTS)} signatures, in both forms")


REQUESTS = {  # The inputs of each signature for some texts.
    "serving_default": lambda texts: {"text": texts},
    "translate_with_options": lambda texts: {
        "text": texts,
        "beam_size": [2] * len(texts),
        "length_penalty": [0.5] * len(texts),
        "max_length": [0] * len(texts),
    },
    "nbest": lambda texts: {"text": texts},
    "score": lambda texts: {"source": texts, "target": texts[::-1]},
    "align": lambda texts: {"text": texts},
}


def predicted(server, body):
    address = f"{server.url}/v1/models/en-de:predict"
    with urllib.request.urlopen(address, json.dumps(body).encode(), timeout=600) as answer:
        return json.load(answer)


@pytest.mark.proof("An export for CPUs, whose kernels are laid out for them, is hardly larger")
def test_for_cpus(exported, seen):
    tf = pytest.importorskip("tensorflow")
    translator, version, _ = exported("post", "cpu")
    assert json.loads((version / "export_info.json").read_text())["device"] == "cpu"
    variables = dict(tf.train.list_variables(str(version / "variables" / "variables")))
    assert [16, 528] in variables.values() and [16, 512] not in variables.values()
    loops = sum(node.op in ("While", "StatelessWhile") for node in all_nodes(read_graph(version)))
    assert loops == 3, "Signatures that search equally widely share its graph: a loop that encodes, and one within another"
    stored, weights = sum(map(np.prod, variables.values())), translator.model.count_params()
    seen(f"{stored:,} numbers stored, {weights:,} weights")


@pytest.fixture(scope="module")
def checked_answers(exported):
    """Lets the check of an export hear changed answers to two texts: `checked_answers(monkeypatch, change)`."""
    translator, version, session = exported("post", "gpu")
    own = kt.Translator(translator.model, translator.tokenizer, translator.options)
    own.translate, own.score_ids = functools.cache(translator.translate), translator.score_ids

    def check(monkeypatch, change):
        def answered(folder, requests):
            answers = {name: session.run(name, inputs) for name, inputs in requests.items()}
            answers = {name: {key: as_json(x.tolist()) for key, x in outputs.items()} for name, outputs in answers.items()}
            change(answers)
            return answers

        monkeypatch.setattr("keras_transformer.serving.verification.run_signatures", answered)
        verify(version, own, ["eins zwei drei vier", ""], served_limits(own, max_beam_size=5))

    return check


def moved(signature, output, *places):
    """Changes one number of an answer by a twentieth."""

    def change(answers):
        values = answers[signature][output]
        for place in places[:-1]:
            values = values[place]
        values[places[-1]] += 0.05

    return change


def put(signature, output, value, *places):
    """Puts another value into an answer."""

    def change(answers):
        values = answers[signature][output]
        for place in places[:-1]:
            values = values[place]
        values[places[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("serving_default", "translation", "something else", 0), r"\(serving_default\) translates 'eins .* as 'something"),
        (moved("serving_default", "score", 0), r"\(serving_default\) translates"),
        (put("serving_default", "truncated", True, 0), r"\(serving_default\) says that it cut"),
        (moved("translate_with_options", "score", 0), r"\(translate_with_options\) translates"),
        (moved("nbest", "scores", 0, 2), r"\(nbest\) translates"),
        (moved("score", "log_probability", 1), r"scores '' for '' with .*; the translator with"),
        (put("score", "token_count", 9, 0), r"scores 'eins .* tokens; the translator with .* for 11"),
        (put("align", "translation", "nothing", 0), r"`align` translates otherwise"),
        (moved("align", "alignment", 0, 0, 0), r"aligns 'eins .* otherwise than the translator: by up to 0.050"),
        (moved("align", "alignment", 1, 0, 0), r"aligns '' otherwise than the translator: by up to 0.050"),
        (put("align", "alignment", float("nan"), 0, 0, 0), "by up to nan"),
        (put("align", "source_tokens", "▁zwei", 0, 0), r"cuts 'eins .* into"),
        (put("align", "target_tokens", "nothing", 0, 0), r"writes .*nothing"),
    ],
)
def test_the_check_refuses_other_answers(checked_answers, monkeypatch, change, message):
    with pytest.raises(ValueError, match=message):
        checked_answers(monkeypatch, change)


def test_the_check_takes_its_own_answers(checked_answers, monkeypatch):
    checked_answers(monkeypatch, lambda answers: None)


def assert_aligned(translator, sources, aligned, beam_size):
    """The tokens are those of both sides, and the weights those of `attend`."""
    for number in range(min(4, len(sources))):
        pieces = [*translator.tokenizer.source.tokens(sources[number]), "</s>"]
        assert [token for token in decoded(aligned["source_tokens"][number]) if token] == pieces
        own = translator.attend(sources[number], beam_size=beam_size)
        rows, columns = len(own.target_tokens), len(pieces)
        weights = aligned["alignment"][number, :rows, :columns]
        np.testing.assert_allclose(weights, own.cross.mean(axis=(0, 1)), atol=1e-4)
        assert not aligned["alignment"][number, rows:].any() and not aligned["alignment"][number, :, columns:].any()


@pytest.mark.proof("Requests of several clients in one batch, with other options in each row, equal the separate answers")
def test_rows_of_a_batch_do_not_know_each_other(translator, session, size, seen):
    sources = texts(size(12, full=200), seed=4)
    random = np.random.default_rng(0)
    options = {
        "beam_size": random.integers(1, 6, len(sources)).astype("int32"),
        "length_penalty": random.choice([0.0, 0.6, 1.5], len(sources)).astype("float32"),
        "max_length": random.integers(0, 12, len(sources)).astype("int32"),
    }
    together = session.run("translate_with_options", {"text": sources, **options})
    for row, source in enumerate(sources):
        one = {name: values[row : row + 1] for name, values in options.items()}
        alone = session.run("translate_with_options", {"text": [source], **one})
        assert together["score"][row] == pytest.approx(alone["score"][0], abs=1e-4)
        if row < size(2, full=40):
            own = translator.translate(
                source,
                beam_size=int(one["beam_size"][0]),
                length_penalty=float(one["length_penalty"][0]),
                max_length=int(one["max_length"][0]) or None,
                return_scores=True,
            )
            assert together["score"][row] == pytest.approx(own.score, abs=1e-3)
    seen(f"{len(sources)} rows, beams of 1 to 5, penalties 0, 0.6 and 1.5, limits of 1 to 11 tokens")


def test_options_out_of_range(translator, session):
    options = {
        "beam_size": [0, -7, 99, 3, 3, 3],
        "length_penalty": [float("nan"), -1.0, 0.6, float("inf"), -float("inf"), 1e30],
        "max_length": [0, -5, 2**31 - 1, 3, 3, 3],
    }
    answer = session.run("translate_with_options", {"text": ["eins zwei"] * 6, **options})
    default = session.run("serving_default", {"text": ["eins zwei"]})
    assert answer["score"][:2] == pytest.approx(default["score"][0], abs=1e-4)
    assert np.isfinite(answer["score"]).all()
    widest = translator.translate("eins zwei", beam_size=5, max_length=45, return_scores=True)
    assert answer["score"][2] == pytest.approx(widest.score, abs=1e-3)
    assert answer["score"][3] == pytest.approx(answer["score"][5], abs=1e-6)


def hostile_texts(count):
    """Random bytes, random Unicode, control characters, very long, empty."""
    random = np.random.default_rng(6)
    kinds = [
        lambda: random.bytes(int(random.integers(0, 60))),
        lambda: "".join(map(chr, random.choice([0x20AC, 0x1F600, 0x65, 0x5D0, 0x0, 0x7F, 0x200D, 0xFFFD], 20))).encode(),
        lambda: bytes(random.integers(0, 32, 30).astype("uint8")),
        lambda: b"",
        lambda: b" \t\n" * int(random.integers(0, 9)),
        lambda: random.bytes(3) + "Straße".encode()[: int(random.integers(0, 7))],
    ]
    return [kinds[int(random.integers(len(kinds)))]() for _ in range(count)]


@pytest.mark.proof(
    "No text makes the export fail: answers are valid UTF-8, scores finite, and neighbours translated as if alone"
)
def test_no_text_makes_it_fail(session, size, seen):
    good = ["eins zwei drei", "the animal", "Straße müde"]
    alone = session.run("serving_default", {"text": good})
    bad = [*hostile_texts(size(120, full=20_000)), b"a" * 100_000, "🙂".encode() * 25_000]
    for start in range(0, len(bad), 64):
        part = bad[start : start + 64]
        answer = session.run("serving_default", {"text": [good[0], *part, *good[1:]]})
        assert np.isfinite(answer["score"]).all()
        decoded(answer["translation"])
        places = [0, -2, -1]
        np.testing.assert_allclose(answer["score"][places], alone["score"], atol=1e-4)
        assert answer["translation"][places].tolist() == alone["translation"].tolist()
    assert answer["truncated"].tolist()[-4:-2] == [True, True]
    for signature, inputs in {"nbest": ("text",), "align": ("text",), "score": ("source", "target")}.items():
        answer = session.run(signature, dict.fromkeys(inputs, bad[-60:]))
        for values in answer.values():
            if values.dtype == object:
                decoded(values.ravel())
            else:
                assert np.isfinite(values).all()
    seen(f"{len(bad):,} hostile strings in batches of 67")


def test_texts_that_are_far_too_long_are_cut_as_the_translator_cuts_them(translator, session):
    sources = ["eins zwei " * 100_000, " " * 1_000_000 + "eins", "zwei" + " " * 1_000_000 + "drei", "eins"]
    answer = session.run("serving_default", {"text": sources})
    with pytest.warns(UserWarning, match="3 of 4 texts"):
        expected = translator.translate(sources, return_scores=True)
    assert answer["truncated"].tolist() == [one.truncated for one in expected] == [True, True, True, False]
    assert_as_translated(answer, expected)
    assert session.run("nbest", {"text": sources})["translations"][:, 0].tolist() == answer["translation"].tolist()
    with pytest.warns(UserWarning, match="3 of 4"):
        wanted = translator.score(sources, sources[::-1])
    scored = session.run("score", {"source": sources, "target": sources[::-1]})
    np.testing.assert_allclose(scored["log_probability"], wanted, rtol=1e-4, atol=1e-3)
    aligned = session.run("align", {"text": sources})
    assert_aligned(translator, sources[3:], {name: values[3:] for name, values in aligned.items()}, 3)
    pieces = [token for token in decoded(aligned["source_tokens"][2]) if token]
    assert pieces == [*translator.tokenizer.source.tokens("zwei"), "</s>"]


def test_blank_texts_and_no_texts(session):
    answer = session.run("serving_default", {"text": ["", " ", "eins"]})
    assert decoded(answer["translation"])[:2] == ["", ""] and answer["score"].tolist()[:2] == [0.0, 0.0]
    assert session.run("serving_default", {"text": np.array([], object)})["translation"].shape == (0,)


def test_limits_narrower_than_the_translators_and_what_an_export_says(translator, tmp_path, capsys):
    limits = {"max_source_tokens": 4, "max_target_tokens": 3, "max_beam_size": 1, "num_hypotheses": 3}
    version = kt.export_saved_model(
        translator, tmp_path / "en-de", **limits, batch_sizes=[1], languages=("en", "de"), progress=True
    )
    assert '"languages": ["en", "de"]' in (tmp_path / "en-de" / "playground.html").read_text(encoding="utf8")
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("export: ")] == [
        *(f"export: tracing {name}" for name in ("serving_default", "translate_with_options", "nbest", "score", "align")),
        "export: writing the SavedModel",
        "export: checking its graph",
        "export: loading it in a process of its own, and translating",
        "export: comparing its answers with the translator's",
        "export: version 1 is complete",
    ]
    sources = texts(20)
    is_long = [len(row) > 4 for row in translator.tokenizer.source.encode(sources)]
    expected = translator.translate(sources, beam_size=1, max_length=3, return_scores=True)
    with SavedModelSession(version) as session:
        answer, aligned = (session.run(name, {"text": sources}) for name in ("serving_default", "align"))
        assert session.run("nbest", {"text": sources})["translations"].shape == (20, 3)
    assert answer["truncated"].tolist() == is_long and set(is_long) == {True, False}
    assert aligned["alignment"].shape == (20, 3 + 1, 4 + 1)
    whole = [number for number in range(20) if not is_long[number]]
    assert_as_translated({name: values[whole] for name, values in answer.items()}, [expected[number] for number in whole])


def test_several_translations_are_no_more_than_the_widest_beam_unless_asked_for(translator):
    assert served_limits(translator).num_hypotheses == translator.options.beam_size == 3
    assert served_limits(translator, max_beam_size=2).num_hypotheses == 2
    assert served_limits(translator, max_beam_size=2, num_hypotheses=4).num_hypotheses == 4


@pytest.mark.proof("A model with a user's own blocks is exported and answers as its translator does")
def test_blocks_of_a_user_as_the_next_version(version, tmp_path, capsys, seen):
    folder = tmp_path / "en-de"
    shutil.copytree(version.parent, folder)
    rotary = make_translator(pair=True, encoder_block=RotaryEncoderBlock, decoder_block=RotaryDecoderBlock)
    capsys.readouterr()
    next_version = kt.export_saved_model(rotary, folder, samples=["eins zwei"], keep=1)
    assert "export: " not in capsys.readouterr().err  # It is no terminal.
    assert next_version.name == "2" and not (folder / "1").exists()
    sources = texts(20, seed=5)
    with SavedModelSession(next_version) as session:
        assert_as_translated(session.run("serving_default", {"text": sources}), rotary.translate(sources, return_scores=True))
    with pytest.raises(ValueError, match="There is a version 2"):
        kt.export_saved_model(rotary, folder, version=2)
    with pytest.raises(ValueError, match="Version 1 would not be served"):
        kt.export_saved_model(rotary, folder, version=1, keep=1)
    assert next_version.is_dir()
    seen("rotary attention, a gate with weights of its own, two vocabularies; 20 sentences")


def test_what_lies_beside_the_versions(version, translator):
    folder = version.parent
    assert version.name == "1"
    info = json.loads((version / "export_info.json").read_text())
    assert info["limits"] == {"source_tokens": 39, "target_tokens": 45, "beam_size": 5, "num_hypotheses": 3}
    assert info["defaults"]["beam_size"] == 3 and len(info["weights"]) == 64
    assert (version / FILE).stat().st_size > 0
    assert 'name: "en-de"' in (folder / "models.config").read_text()
    batching = (folder / "batching_parameters.txt").read_text()
    assert "max_batch_size { value: 32 }" in batching and batching.count("allowed_batch_sizes: ") == 6
    written = ("docker-compose.yml", "docker-compose.gpu.yml", "monitoring.config", "session.config", "README.md")
    for name, on_cpu in {"docker-compose.yml": True, "docker-compose.gpu.yml": False}.items():
        (service,) = yaml.safe_load((folder / name).read_text())["services"].values()
        assert service.get("environment") == (["TF_ENABLE_ONEDNN_OPTS=1"] if on_cpu else None)
    for name in (*written, "playground.html"):
        assert "$" not in (folder / name).read_text().replace("$PWD", "").replace("${", "") or name == "playground.html"


def test_an_export_for_cpus_has_the_files_for_them_alone(exported):
    folder = exported("post", "cpu")[1].parent
    assert [path.name for path in folder.glob("*compose*")] == ["docker-compose.yml"]
    assert "gpu" not in (folder / "README.md").read_text().lower()


def test_commands_of_the_readme_are_commands(version):
    lines = re.sub(r"\\\n\s*", "", (version.parent / "README.md").read_text()).splitlines()
    (run,) = [shlex.split(line) for line in lines if line.startswith("    docker run")]
    assert run[run.index("-e") + 1] == "TF_ENABLE_ONEDNN_OPTS=1" and run.index("-e") < run.index("tensorflow/serving:2.20.0")
    composed = [line.split("docker compose ")[1] for line in lines if line.startswith("    docker compose")]
    assert composed == ["up -d --wait", "-f docker-compose.gpu.yml up -d --wait"]
    (serve,) = [shlex.split(line) for line in lines if line.endswith(".serving.serve .")]
    assert importlib.util.find_spec(serve[2]) is not None and find_export(version.parent / serve[3]) == (version.parent, None)
    commands = [shlex.split(line) for line in lines if line.startswith("    curl")]
    assert len(commands) == 3
    for _, _, body, address in commands:
        assert json.loads(body)["instances"][0]["text"] == SAMPLES[0]
        assert address == "http://localhost:8501/v1/models/en-de:predict"


def test_what_cannot_be_exported(translator, tmp_path):
    sampling = kt.Translator(translator.model, translator.tokenizer, kt.SearchOptions(temperature=1.0))
    for arguments, message in [
        ((sampling, tmp_path / "a"), "does not draw"),
        ((translator, tmp_path / "1"), "not a number alone"),
        ((translator, tmp_path / "a b"), "name on the server"),
    ]:
        with pytest.raises(ValueError, match=message):
            kt.export_saved_model(*arguments)
    with pytest.raises(ValueError, match="`dtype` must be one of"):
        kt.export_saved_model(translator, tmp_path / "a", dtype="int8")
    with pytest.raises(ValueError, match="`device` must be one of"):
        kt.export_saved_model(translator, tmp_path / "a", device="tpu")
    with pytest.raises(ValueError, match=r"`keep` must be at least 1.* Received: keep=0"):
        kt.export_saved_model(translator, tmp_path / "a", keep=0)
    assert not list(tmp_path.iterdir())


def test_the_graph_has_only_what_servers_have(version):
    graph = read_graph(version)
    check_graph(graph)
    assert {"SentencepieceOp", "MatMul", "While"} <= known_operations()
    graph.library.function[0].node_def[0].op = "XlaDynamicUpdateSlice"
    with pytest.raises(ValueError, match="XlaDynamicUpdateSlice"):
        check_graph(graph)


def loops_of(graph) -> list:
    """Returns the functions that are repeated."""
    names = [function.signature.name for function in graph.library.function]
    return [
        function for function, name in zip(graph.library.function, names, strict=True) if "while" in name and "body" in name
    ]


def test_a_step_reads_weights_and_caches_as_they_are(version):
    steps = [function for function in loops_of(read_graph(version)) if any(node.op == "MatMul" for node in function.node_def)]
    assert steps
    for step in steps:
        assert not [node.name for node in step.node_def if node.op == "ReadVariableOp"]
        attention = [node.op for node in step.node_def if "attention" in node.name]
        assert attention.count("BatchMatMulV2") == 4  # Two attentions of one layer.
        assert attention.count("Transpose") == 4  # Queries and results of both: no cache, and nothing that goes into one.


def test_what_a_gpu_lacks_is_noticed(version):
    graph = read_graph(version)
    nodes = [node for function in loops_of(graph) for node in function.node_def]
    node = next(node for node in nodes if node.op == "SelectV2" and node.attr["T"].type == 9)
    node.op, node.attr["T"].type = "AddV2", 3  # int32
    del node.input[2:]
    with pytest.raises(ValueError, match=r"AddV2\[int32\] in a loop is computed on the host"):
        check_graph(graph)


@pytest.mark.proof("A run of any backend is exported by one command, which switches itself to TensorFlow")
@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_command_on_another_backend(translator, tmp_path, backend, size, seen):
    if not size(False, full=True):
        pytest.skip("runs in `make prove`")
    translator.save(tmp_path / "run" / "translator")
    command = [sys.executable, "-m", "keras_transformer.serving.export", str(tmp_path / "run"), str(tmp_path / "out")]
    environment = {**os.environ, "KERAS_BACKEND": backend}
    result = subprocess.run([*command, "--samples", "eins zwei"], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.splitlines()[-1] == str(tmp_path / "out" / "1")
    assert "export: starting a process" in result.stderr and "export: version 1 is complete" in result.stderr
    seen(f"from {backend}")
