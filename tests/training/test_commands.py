"""The commands around a run: what they print, what they take, what they complain about."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.callbacks import average_weights
from keras_transformer.text.lines import one_line
from tests.text.test_outputs import descriptor
from training import average, evaluate, train, trainer, translate
from training.building import measured_names
from training.recipe import read_recipe
from training.scores import corpus_scores

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def finished(tmp_path_factory, write_files):
    """A folder with files and a finished run."""
    folder = tmp_path_factory.mktemp("finished")
    recipe = write_files(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("KERAS_TRANSFORMER_CACHE", str(folder / "cache"))
        assert train.main([str(recipe), "--output", "run", "--set", "every_epochs=1"]) == 0
    return folder


@pytest.fixture
def folder(finished, monkeypatch):
    monkeypatch.chdir(finished)
    return finished


@pytest.fixture
def ask(capsys):
    """Runs a command and returns what it prints."""

    def ask(main, *words):
        capsys.readouterr()
        assert main([*map(str, words)]) == 0
        return capsys.readouterr().out

    return ask


@pytest.fixture
def complaint(capsys):
    """Runs a command on something wrong and returns what it says."""

    def complaint(main, *words):
        capsys.readouterr()
        assert main([*map(str, words)]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.startswith("error: ")
        return captured.err

    return complaint


class TestTrain:
    def test_a_finished_run_has_nothing_left_to_do(self, folder, ask):
        before = (folder / "run" / "report.md").stat().st_mtime_ns
        out = ask(train.main, "digits.toml", "--output", "run", "--resume", "--set", "every_epochs=1")
        assert "The run in run is finished" in out and "BLEU" in out
        assert (folder / "run" / "report.md").stat().st_mtime_ns == before

    def test_a_run_in_the_way(self, folder, complaint):
        assert "Add --resume to go on with it" in complaint(train.main, "digits.toml", "--output", "run")

    def test_a_changed_recipe_shows_its_difference(self, folder, complaint):
        message = complaint(train.main, "digits.toml", "--output", "run", "--resume", "--set", "seed=3")
        assert message.endswith("-every_epochs = 1\n+every_epochs = 2\n") and "-seed = 0\n+seed = 3\n" in message

    def test_mistakes_in_the_recipe_are_one_line(self, folder, complaint):
        assert complaint(train.main, "digits.toml", "--set", "epoch=3").count("\n") == 1
        assert "There is no such recipe: digit.toml" in complaint(train.main, "digit.toml")
        assert not (folder / "runs").exists()

    def test_an_export_if_the_recipe_wants_it(self, folder, monkeypatch):
        exported = []
        export = lambda translator, out, **options: exported.append((str(out), options["samples"], options["languages"]))  # noqa: E731
        monkeypatch.setattr(kt, "export_saved_model", export, raising=False)
        assert train.main(["digits.toml", "--set", "saved_model=true", "--output", "served"]) == 0
        held_out = (folder / "test.digits").read_text().splitlines()
        ((out, samples, languages),) = exported
        assert out == "served/saved_model/digits" and languages is None  # The files are called .digits and .reversed.
        assert set(samples[:-1]) <= set(held_out) and len(samples) == 4 and samples[-1] == ""

    def test_an_interruption_says_how_to_go_on(self, folder, capsys, monkeypatch):
        monkeypatch.setattr(trainer.callbacks, "fit", interrupt)
        assert train.main(["digits.toml", "--output", "with blank"]) == 130
        assert capsys.readouterr().err.endswith("python -m training.train digits.toml --output 'with blank' --resume\n")

    def test_the_run_holds_what_it_should(self, folder):
        results = json.loads((folder / "run" / "results.json").read_text(encoding="utf8"))
        assert set(results["scores"]) == {"test", "validation"}
        assert results["training"]["epochs"] == 2
        report = (folder / "run" / "report.md").read_text(encoding="utf8")
        assert "python -m training.train " in report and "![" in report and "nrefs:1" in report
        translator = kt.Translator.load(folder / "run" / "translator")
        assert translator.options.beam_size == 2
        assert translator.translate([results["samples"][0]["source"]]) == [results["samples"][0]["translation"]]

    def test_early_stopping_may_watch_every_number_of_an_epoch(self, folder):
        columns = (folder / "run" / "history.csv").read_text().splitlines()[0].split(",")
        counts = {"epoch", "updates", "learning_rate", "tokens", "train_seconds", "seconds"}
        assert set(measured_names(read_recipe("digits.toml"))) == set(columns) - counts

    def test_a_tokenizer_of_ones_own_and_one_for_each_language(self, recipe, ask):
        pair = ["--set", "shared=false", "--set", "tie=decoder", "--set", "max_updates=1"]
        ask(train.main, recipe, "--output", "pair", *pair)
        assert isinstance(kt.load_tokenizer("pair/tokenizer.model"), kt.TokenizerPair)
        ask(train.main, recipe, "--output", "same", *pair, "--set", "tokenizer.file=pair/tokenizer.model")
        assert kt.load_tokenizer("same/tokenizer.model") == kt.load_tokenizer("pair/tokenizer.model")

    def test_the_last_update_may_be_in_the_middle_of_an_epoch(self, recipe, ask):
        out = ask(train.main, recipe, "--output", "short", "--set", "max_updates=1", "--set", "epochs=none")
        assert "1 updates in" in out
        assert json.loads(Path("short/results.json").read_text())["training"]["updates"] == 1
        assert "is finished" in ask(
            train.main, recipe, "--output", "short", "--set", "max_updates=1", "--set", "epochs=none", "--resume"
        )

    def test_early_stopping_mixed_precision_clipping_moving_average(self, recipe, ask):
        settings = ["dtype=mixed_bfloat16", "clip_norm=1.0", "average_checkpoints=1", "ema_momentum=0.9", "epochs=1"]
        settings += ["early_stopping=val_loss", "subword_sampling=0.1", "tensorboard=true"]
        ask(train.main, recipe, "--output", "run", *(word for one in settings for word in ("--set", one)))
        assert any(Path("run/tensorboard").iterdir()) and not Path("run/averages").exists()


class TestEvaluate:
    def test_files(self, folder, ask, tmp_path):
        out = ask(
            evaluate.main, "run", "--source", "test.digits", "--reference", "test.reversed", "--output", tmp_path / "out.txt"
        )
        translations = (tmp_path / "out.txt").read_text(encoding="utf8").splitlines()
        references = [[line] for line in Path("test.reversed").read_text().splitlines()]
        for score in corpus_scores(translations, references):
            assert any(line.split() == ["test.digits", score.name, str(score), score.signature] for line in out.splitlines())

    def test_a_line_for_each_translation(self, folder, ask, tmp_path, monkeypatch):
        monkeypatch.setattr(kt.Translator, "translate", lambda self, texts, **search: ["4 1\r\n3\u2028"] * len(texts))
        files = ["--source", "test.digits", "--reference", "test.reversed", "--output", tmp_path / "out.txt"]
        ask(evaluate.main, "run", *files)
        lines = Path("test.digits").read_text().splitlines()
        assert (tmp_path / "out.txt").read_bytes() == b"4 1 3\n" * len(lines)

    def test_several_references(self, folder, ask):
        out = ask(evaluate.main, "run", "--source", "test.digits", "--reference", "test.reversed", "test.reversed")
        assert "nrefs:2" in out

    def test_without_files_the_sets_of_the_recipe(self, folder, ask):
        lines = [line.split()[:3] for line in ask(evaluate.main, "run").splitlines()]
        results = json.loads(Path("run/results.json").read_text())
        assert ["test", "chrF", f"{results['scores']['test'][1]['value']:.2f}"] in lines
        assert ["validation", "BLEU", f"{results['scores']['validation'][0]['value']:.2f}"] in lines

    def test_some_of_the_sets(self, folder, ask):
        lines = [line.split() for line in ask(evaluate.main, "run", "--sets", "validation", "--beam-size", "1").splitlines()]
        assert {line[0] for line in lines if "nrefs:1" in " ".join(line)} == {"validation"}

    def test_every_measurement_is_logged_with_its_text(self, folder, ask):
        log = Path("run/evaluations.jsonl")
        before = log.read_text(encoding="utf8").splitlines()
        assert {json.loads(line)["set"] for line in before[:2]} == {"test", "validation"}  # By the training itself.
        files = ["--source", "test.digits", "--reference", "test.reversed"]
        ask(evaluate.main, "run", *files, "--beam-size", "1")
        entry = json.loads(log.read_text(encoding="utf8").splitlines()[len(before) :][0])
        for key, file in (("source_sha256", "test.digits"), ("reference_sha256", "test.reversed")):
            digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
            assert entry[key] == (digest if key == "source_sha256" else [digest])
        assert entry["search"] == {"beam_size": 1, "length_penalty": 0.6, "penalty": "google"}
        assert [score["name"] for score in entry["scores"]] == ["BLEU", "chrF"]

    def test_a_translator_alone(self, folder, ask):
        out = ask(evaluate.main, "run/translator", "--source", "test.digits", "--reference", "test.reversed", "--lowercase")
        assert "case:lc" in out

    def test_a_translator_in_a_run_is_measured_as_the_run_is(self, folder, ask, tmp_path, complaint):
        found = [ask(evaluate.main, name, "--sets", "validation") for name in ("run", "run/translator")]
        assert found[0] == found[1]
        shutil.copytree("run/translator", tmp_path / "alone" / "translator")
        assert "There is no recipe.toml" in complaint(evaluate.main, str(tmp_path / "alone" / "translator"))

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["nowhere"], "There is no translator in nowhere"),
            (["run", "--source", "test.digits"], "--source and --reference go together"),
            (["run", "--source", "no.txt", "--reference", "no.txt"], "There is no such file: no.txt"),
            (["run", "--source", "test.digits", "--reference", "train.reversed"], "Each source needs a reference"),
            (["run", "--output", "x"], "--output needs --source"),
            (["run", "--sets", "tests"], "has no set 'tests'. There are: test, validation"),
            (["run", "--sets", "test", "--source", "x", "--reference", "x"], "--source and --sets are two ways"),
            (["run", "--tokenize", "words"], "`tokenize` must be one of"),
        ],
    )
    def test_bad_input(self, folder, complaint, words, message):
        assert message in complaint(evaluate.main, *words)

    def test_neither_the_source_nor_a_reference_is_written_over(self, folder, complaint):
        for file in ("test.digits", "validation.reversed"):
            before = Path(file).read_bytes()
            files = ["--source", "test.digits", "--reference", "test.reversed", "validation.reversed", "--output", file]
            assert f"Choose another output. Received: --output {file}" in complaint(evaluate.main, "run", *files)
            assert Path(file).read_bytes() == before


def interrupt(*_, **__):
    raise KeyboardInterrupt


class TestTranslate:
    def test_sentences_share_the_cores(self, folder, complaint, monkeypatch):
        for own, threads in ((None, "1"), ("4", "4")):
            monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
            if own is not None:
                monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", own)
            complaint(translate.main, "nowhere")
            assert os.environ["TF_NUM_INTRAOP_THREADS"] == threads

    def test_a_file_to_a_file(self, folder, ask, tmp_path):
        assert ask(translate.main, "run", "test.digits", "--output", tmp_path / "new" / "out.txt") == ""
        sources = Path("test.digits").read_text().splitlines()
        expected = kt.Translator.load("run/translator").translate(sources)
        assert (tmp_path / "new" / "out.txt").read_text(encoding="utf8").splitlines() == expected

    @pytest.mark.parametrize("link", [None, os.link, os.symlink])
    def test_the_source_is_not_written_over(self, folder, complaint, tmp_path, link):
        source = output = tmp_path / "in.en"
        shutil.copy("test.digits", source)
        if link is not None:
            output = tmp_path / "out.de"
            link(source, output)
        message = complaint(translate.main, "run", source, "--output", output)
        assert f"Choose another output. Received: --output {output}" in message
        assert source.read_bytes() == Path("test.digits").read_bytes()

    def test_nor_is_what_comes_through_the_standard_input(self, folder, complaint, tmp_path):
        source = tmp_path / "in.en"
        shutil.copy("test.digits", source)
        with source.open() as file, descriptor(0, file):
            assert "Choose another output" in complaint(translate.main, "run", "--output", source)
        assert source.read_bytes() == Path("test.digits").read_bytes()

    @pytest.mark.parametrize(("line", "code"), [(b"2 \xff\n", 2), (KeyboardInterrupt, 130)])
    def test_an_older_output_survives_an_error(self, folder, tmp_path, monkeypatch, capsys, line, code):
        monkeypatch.setattr(translate, "CHUNK", 1)
        (tmp_path / "in.en").write_bytes(b"3 1 4\n" + (b"2 7\n" if line is KeyboardInterrupt else line))
        output = tmp_path / "out.de"
        output.write_text("a night of work\n")
        if line is KeyboardInterrupt:
            numbers = iter([1])
            own = translate.output_line
            monkeypatch.setattr(translate, "output_line", lambda *words: own(*words) if next(numbers, 0) else interrupt())
        assert translate.main(["run", str(tmp_path / "in.en"), "--output", str(output), "--beam-size", "1"]) == code
        assert output.read_text() == "a night of work\n"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.en", "out.de"]

    def test_an_output_that_is_no_file(self, folder, capfd, tmp_path):
        for output in ("/dev/null", "/dev/stdout"):
            assert translate.main(["run", "test.digits", "--output", output, "--beam-size", "1"]) == 0
        expected = kt.Translator.load("run/translator").translate(Path("test.digits").read_text().splitlines(), beam_size=1)
        assert capfd.readouterr().out.splitlines() == expected

    def test_standard_input_in_pieces(self, folder, ask, monkeypatch):
        monkeypatch.setattr(translate, "CHUNK", 2)
        monkeypatch.setattr(sys, "stdin", io.StringIO("3 1 4\n\n2 7\r\n"))
        lines = ask(translate.main, "run", "--beam-size", "1").split("\n")
        expected = kt.Translator.load("run/translator").translate(["3 1 4", "", "2 7"], beam_size=1)
        assert lines == [*expected, ""] and expected[1] == ""

    def test_a_line_for_each_line(self, folder, ask, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"3 1\r4\n2 \xff7\n"), encoding="utf8"))
        lines = ask(translate.main, "run", "--beam-size", "1").split("\n")
        expected = kt.Translator.load("run/translator").translate(["3 1\r4", "2 \ufffd7"], beam_size=1)
        assert lines == [*map(one_line, expected), ""]

    def test_hypotheses_and_scores(self, folder, ask, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.StringIO("3 1 4\n2 7\n"))
        lines = [line.split("\t") for line in ask(translate.main, "run", "--num-hypotheses", "2", "--scores").splitlines()]
        found = kt.Translator.load("run/translator").translate(["3 1 4", "2 7"], num_hypotheses=2, return_scores=True)
        expected = [[str(number), f"{one.score:.4f}", one.text] for number, both in enumerate(found, 1) for one in both]
        assert lines == expected

    def test_a_conversation(self, folder, ask, monkeypatch):
        typed = iter(["3 1 4", " 2 7 ", ""])
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
        lines = ask(translate.main, "run").splitlines()
        assert lines[1:] == [f"  {text}" for text in kt.Translator.load("run/translator").translate(["3 1 4", "2 7"])]
        assert next(typed, None) is None

    def test_bad_input(self, folder, complaint):
        assert "There is no such file: no.txt" in complaint(translate.main, "run", "no.txt")
        assert "`num_hypotheses` must be from 1 to" in complaint(translate.main, "run", "test.digits", "--num-hypotheses", "9")
        assert "Is a directory: 'run'" in complaint(translate.main, "nowhere", "test.digits", "--output", "run")


class TestAverage:
    def test_the_last_ones(self, folder, ask, tmp_path):
        out = ask(average.main, "run", "--last", "1", "--output", tmp_path / "last")
        newest = sorted(Path("run/averages").glob("*.npz"))[-1]
        assert newest.stem in out
        weights = kt.Translator.load(tmp_path / "last").model.get_weights()
        for found, expected in zip(weights, average_weights([newest]), strict=True):
            np.testing.assert_array_equal(found, expected)

    def test_as_many_as_the_recipe_says_gives_the_runs_own_translator(self, folder, ask, tmp_path):
        ask(average.main, "run", "--output", tmp_path / "mean")
        both = (kt.Translator.load(path).model.get_weights() for path in (tmp_path / "mean", "run/translator"))
        for found, expected in zip(*both, strict=True):
            np.testing.assert_array_equal(found, expected)

    def test_checkpoints_of_a_run_that_has_not_finished(self, folder, ask, tmp_path):
        shutil.copytree("run", tmp_path / "run", ignore=shutil.ignore_patterns("averages", "translator", "report.md"))
        out = ask(average.main, tmp_path / "run", "--checkpoints")
        assert f"Translator: {tmp_path / 'run' / 'translator-last-2'}" in out
        assert (tmp_path / "run" / "translator-last-2" / "translator.json").is_file()

    def test_a_run_is_not_replaced(self, folder, complaint, tmp_path):
        run = shutil.copytree("run", tmp_path / "run")
        before = sorted(run.rglob("*"))
        assert "Only an empty folder, or one with a translator.json" in complaint(average.main, run, "--output", run)
        assert sorted(run.rglob("*")) == before

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["run", "--last", "99"], "Wanted: 99. Found: "),
            (["run", "--last", "0"], "--last must be a positive integer"),
            (["nowhere"], "There is no recipe.toml in nowhere"),
        ],
    )
    def test_bad_input(self, folder, complaint, words, message):
        assert message in complaint(average.main, *words)


@pytest.mark.parametrize("name", ["train", "evaluate", "translate", "average", "demo", "prepare_wmt14"])
def test_help_needs_no_backend(name):
    command = [sys.executable, "-X", "importtime", "-m", f"training.{name}", "--help"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"python -m training.{name}" in result.stdout
    assert "tensorflow" not in result.stderr and "keras_transformer" not in result.stderr
