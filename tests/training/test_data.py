"""The command that shows a corpus, run in this process on small files."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

import keras_transformer as kt
from training.data import main

# 30 pairs of 3 and 2 words, 10 of 5 and 5, and one pair for each reason to be dropped; every word is a piece.
SHORT, LONG = ("der Hund schläft", "dogs sleep"), ("das Haus an der Straße", "the house on the street")
SOURCE = [SHORT[0]] * 30 + [LONG[0]] * 10 + ["  ", "der " * 50, "der " * 18]
TARGET = [SHORT[1]] * 30 + [LONG[1]] * 10 + ["dogs", "dogs " * 50, "dogs"]
DROPPED = {"source or target empty or blank": 1, "longer than the limit": 1, "lengths that cannot belong together": 1}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_TRANSFORMER_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture(scope="module")
def tokenizer():
    return kt.Tokenizer.train(iter(SOURCE + TARGET), 330)


@pytest.fixture
def files(folder, tokenizer):
    """Writes the pairs and a tokenizer, and returns the words that name them."""
    (folder / "train.de").write_text("\n".join(SOURCE) + "\n", encoding="utf8")
    (folder / "train.en").write_text("\n".join(TARGET) + "\n", encoding="utf8")
    tokenizer.save("small.model")
    return ["train.de", "train.en", "--tokenizer", "small.model", "--max-length", "30"]


@pytest.fixture
def show(capsys):
    """Runs the command and returns what it prints."""

    def show(*words, plot=("--plot", "none")):
        assert main([*map(str, words), *plot]) == 0
        return capsys.readouterr().out

    return show


@pytest.fixture
def complaint(capsys):
    """Runs the command on something wrong and returns the one line that it says."""

    def complaint(*words):
        assert main([*map(str, words), "--plot", "none"]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.count("\n") == 1
        return captured.err

    return complaint


def figures(out, name):
    """Returns what stands behind a name that begins a line."""
    lines = [line for line in out.splitlines() if line.startswith(f"{name}  ")]
    assert len(lines) == 1, out
    return lines[0].removeprefix(name).split()


class TestFigures:
    def test_pairs_kept_and_dropped_and_why(self, files, show):
        out = show(*files)
        assert figures(out, "read") == ["43"]
        assert figures(out, "kept") == ["40", "93.0%"]
        for reason in DROPPED:
            assert figures(out, f"dropped: {reason}") == ["1", "2.3%"]

    def test_limits_are_options(self, files, show):
        out = show(*files[:4], "--max-length", "none", "--max-ratio", "none")
        assert figures(out, "kept") == ["42", "97.7%"]
        assert "longer than" not in out and "cannot belong together" not in out

    def test_lengths_and_tokens_a_word(self, files, show):
        out = show(*files)
        assert figures(out, "words") == figures(out, "tokens") == ["140", "110"]
        assert figures(out, "tokens a word") == ["1.00", "1.00"]
        assert figures(out, "tokens a sentence") == ["3.5", "2.8"]
        assert figures(out, "half have up to") == ["3", "2"]
        assert figures(out, "95% have up to") == figures(out, "longest") == ["5", "5"]

    def test_batches_of_one_shape(self, files, show):
        # 6 rows of 6 + 6 positions; 40 pairs make 7 batches, with 30 * (4 + 3) + 10 * (6 + 6) tokens in 504 positions.
        out = show(*files, "--batch-tokens", "40", "--num-shapes", "1")
        assert figures(out, "batches an epoch") == ["7"]
        assert figures(out, "shapes") == ["1"]
        assert figures(out, "padding") == ["34.5%", "of", "all", "positions"]
        assert figures(out, "1") == ["6", "6", "6", "7"]

    def test_batches_that_are_padded_to_their_own_longest(self, files, show):
        # Three batches of 10 short pairs, and 6 + 4 long ones.
        out = show(*files, "--batch-tokens", "40", "--num-shapes", "none")
        assert figures(out, "batches an epoch") == ["5"]
        assert figures(out, "pairs a batch") == ["8.0"]
        assert figures(out, "padding") == ["0.0%", "of", "all", "positions"]
        assert [figures(out, number) for number in "123"] == [["10", "4", "3", "3"], ["6", "6", "6", "1"], ["4", "6", "6", "1"]]

    def test_samples_are_pieces(self, files, show):
        out = show(*files, "--samples", "2")
        assert "pair 1\n  ▁der ▁Hund ▁schläft\n  ▁dogs ▁sleep\n" in out
        assert "pair 40\n  ▁das ▁Haus ▁an ▁der ▁Straße\n" in out
        assert "pair" not in show(*files, "--samples", "0").replace("pairs", "")

    def test_text_that_looks_like_markup_is_shown_as_it_is(self, folder, show):
        (folder / "pairs.tsv").write_text("[bold]a[/]\t[/b] b\n" * 20)
        assert "[bold]a[/]" in show("pairs.tsv", "--vocabulary-size", "280").replace("▁", "").replace(" ", "")

    def test_lines_are_drawn_on_a_terminal_only(self, files, show, monkeypatch):
        assert not set("─\x1b") & set(show(*files))
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert set("─\x1b") < set(show(*files))


class TestInputs:
    def test_a_tokenizer_is_trained_on_both_sides(self, files, show):
        out = show(*files[:2], "--vocabulary-size", "330", "--max-length", "30")
        assert figures(out, "vocabulary") == ["330", "330"]
        assert out == show(*files)

    def test_columns_and_gzip_say_the_same_as_two_files(self, files, folder, show):
        expected = show(*files).split("\n", 1)[1]
        text = "".join(f"{source}\t{target}\n" for source, target in zip(SOURCE, TARGET, strict=True))
        (folder / "both.tsv").write_text(text, encoding="utf8")
        (folder / "both.tsv.gz").write_bytes(gzip.compress(text.encode()))
        for name in files[:2]:
            Path(f"{name}.gz").write_bytes(gzip.compress(Path(name).read_bytes()))
        for words in (["both.tsv"], ["both.tsv.gz"], ["train.de.gz", "train.en.gz"]):
            assert show(*words, *files[2:]).split("\n", 1)[1] == expected

    def test_a_pair_of_vocabularies(self, files, show):
        german, english = (
            kt.Tokenizer.train([name], size, progress=False) for name, size in [("train.de", 310), ("train.en", 290)]
        )
        kt.TokenizerPair(german, english).save("pair.model")
        out = show(*files[:2], "--tokenizer", "pair.model")
        assert figures(out, "vocabulary") == ["310", "290"]

    def test_built_in_corpora(self, show):
        out = show("reverse", "--vocabulary-size", "280", "--samples", "1")
        assert out.startswith("reverse (train)\n")
        assert figures(out, "kept") == ["8,000", "100.0%"]

    def test_multi30k_from_a_folder(self, files, folder, show):
        (folder / "raw").mkdir()
        (folder / "train.en").rename("raw/train.en")
        (folder / "train.de").rename("raw/train.de")
        out = show("multi30k", "--folder", "raw", *files[2:])
        assert figures(out, "read") == ["43"]

    def test_a_vocabulary_too_large_is_a_line_of_warning(self, files, capsys):
        assert main([*files[:2], "--plot", "none"]) == 0
        assert capsys.readouterr().err.startswith("warning: The text is too small for a vocabulary of 8,000")


class TestRecipe:
    @pytest.fixture
    def recipe(self, files, folder):
        """Writes a recipe into a folder beside the files' and returns its path."""

        def write(data, tokenizer="vocabulary_size = 330"):
            path = folder / "recipes" / "small.toml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f'[data]\n{data}\n[tokenizer]\n{tokenizer}\n[model]\npreset = "tiny"\n', encoding="utf8")
            return path

        return write

    BOTH = 'train_source = "../train.de"\ntrain_target = ["../train.en"]\nmax_length = 30\n'

    def test_says_what_the_command_line_would(self, recipe, files, show):
        path = recipe(self.BOTH + 'batch_tokens = 40\nnum_shapes = "none"\nmax_ratio = 3.5')
        out = show(path)
        options = ["--batch-tokens", "40", "--num-shapes", "none", "--max-ratio", "3.5"]
        assert out.split("\n", 1)[1] == show(*files, *options).split("\n", 1)[1]
        assert figures(out, "kept") == ["40", "93.0%"]

    def test_the_command_line_has_the_last_word(self, recipe, show):
        path = recipe(self.BOTH + "batch_tokens = 40\nnum_shapes = 1")
        out = show(path, "--num-shapes", "none", "--vocabulary-size", "329")
        assert figures(out, "batches an epoch") == ["5"]
        assert figures(out, "vocabulary") == ["329", "329"]

    def test_several_files(self, recipe, show):
        path = recipe('train_source = ["../train.de", "../train.de"]\ntrain_target = ["../train.en", "../train.en"]')
        assert figures(show(path), "read") == ["86"]

    def test_a_corpus_and_its_folder(self, recipe, folder, show):
        path = recipe('corpus = "multi30k"\nfolder = ".."\nmax_length = 30')
        assert figures(show(path), "kept") == ["40", "93.0%"]

    def test_tokenizer_options(self, recipe, show):
        path = recipe(self.BOTH, 'vocabulary_size = 290\nmodel = "unigram"\nnormalization = "nfkc_casefold"')
        out = show(path)
        assert figures(out, "vocabulary") == ["290", "290"]
        assert "aus" in out and "Haus" not in out

    @pytest.mark.parametrize(
        ("data", "vocabulary", "message"),
        [
            ("batch_token = 40", "", r"small.toml, table [data]: there is no key `batch_token`. Did you mean `batch_tokens`?"),
            ("colour = 1", "", "there is no key `colour`. There are train_source, train_target, corpus"),
            ("", "vocab_size = 9", "table [tokenizer]: there is no key `vocab_size`. Did you mean `vocabulary_size`?"),
            ("batch_tokens = '40'", "", "`batch_tokens`: expected an integer. Received: batch_tokens = '40'"),
            ("num_shapes = true", "", '`num_shapes`: expected an integer, or "none". Received: num_shapes = True'),
            ("num_shapes = 0", "", "must be a positive integer"),
            ("corpus = 'pronoun'", "", 'one of "multi30k", "pronouns", "reverse". Did you mean `pronouns`?'),
            (
                "corpus = 'reverse'",
                "",
                "or a built-in `corpus`. Received: both",
            ),
            ("max_ratio = 0.5", "", "`max_ratio` must be at least 1"),
            ("test_target = 'x'", "", "`test_source` is missing"),
            ("", "model = 'word'", '`model` must be "bpe" or "unigram"'),
            ("", "model = 3", "`model`: expected a string"),
            ("x = ", "", "small.toml is not valid TOML"),
        ],
    )
    def test_what_is_wrong_with_it_is_said(self, recipe, complaint, data, vocabulary, message):
        assert message in complaint(recipe(self.BOTH + data, vocabulary))

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "[data]: Name either files"),
            ("data = 3", "expected a table. Received: data = 3"),
            ('[data]\ntrain_source = "a.de"', "`train_target` is missing: only .tsv and .tsv.gz files"),
            ('[data]\ntrain_source = ["a.de", 3]\ntrain_target = "b"', "expected a path, or a list of paths"),
            ('[data]\ncorpus = "reverse"\ntrain_target = "b"', "`train_target` belongs to files"),
            ('[data]\ntrain_source = "a.de"\ntrain_target = "b.en"', "There is no such file"),
        ],
    )
    def test_data_that_cannot_be_found_is_an_error(self, folder, complaint, content, message):
        (folder / "bad.toml").write_text(content)
        assert message in complaint("bad.toml")

    def test_a_missing_recipe_is_named(self, complaint):
        assert "There is no such recipe: nowhere.toml" in complaint("nowhere.toml")


class TestBadInput:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["nowhere.de", "nowhere.en"], "There is no such file: nowhere.de"),
            (["train.de"], "Expected two text files (source and target), one .tsv file"),
            (["pronoun"], "Received: pronoun. Did you mean `pronouns`?"),
            (["a.tsv", "b.tsv"], "Received: a.tsv b.tsv"),
            (["a", "b", "c"], "Received: a b c"),
            (["reverse", "--folder", "x"], "Only files and the corpus 'multi30k' are read from a folder"),
            (["multi30k", "--folder", "x"], "There is no folder x"),
            (["reverse", "--tokenizer", "no.model"], "There is no tokenizer at no.model"),
            (["reverse", "--vocabulary-size", "100"], "The vocabulary is too small"),
            (["reverse", "--batch-tokens", "0"], "`batch_tokens` must be a positive integer"),
            (["reverse", "--samples", "-1"], "`--samples` must not be negative"),
        ],
    )
    def test_is_one_line_and_exit_code_2(self, complaint, words, message):
        assert message in complaint(*words)

    def test_files_of_different_lengths(self, files, complaint):
        Path("train.en").write_text("\n".join(TARGET[:-1]) + "\n", encoding="utf8")
        assert "Received: 43 and 42 lines" in complaint(*files)

    def test_text_that_is_not_utf8(self, files, complaint):
        Path("train.en").write_bytes(b"dogs\nd\xf6gs\n")
        assert "train.en, line 2: not valid UTF-8" in complaint("train.de", "train.en")

    def test_a_file_that_is_no_tokenizer(self, files, complaint):
        assert "train.de" in complaint(*files[:2], "--tokenizer", "train.de")

    def test_options_that_are_no_numbers(self, capsys):
        with pytest.raises(SystemExit) as stopped:
            main(["reverse", "--num-shapes", "many"])
        assert stopped.value.code == 2
        assert "expected an integer, or none. Received: many" in capsys.readouterr().err


class TestPlot:
    def test_is_written_where_it_was_asked_for(self, files, folder, show):
        pytest.importorskip("matplotlib")
        out = show(*files, plot=["--plot", "new/lengths.png"])
        assert out.endswith("Plot: new/lengths.png\n")
        assert (folder / "new" / "lengths.png").read_bytes().startswith(b"\x89PNG")

    def test_is_data_png_unless_said_otherwise(self, files, folder, show):
        pytest.importorskip("matplotlib")
        show(*files, plot=[])
        assert (folder / "data.png").is_file()
        (folder / "data.png").unlink()
        show(*files)
        assert not (folder / "data.png").exists()

    def test_without_matplotlib_the_figures_are_shown_all_the_same(self, files, folder, show, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        out = show(*files, plot=[])
        assert figures(out, "read") == ["43"]
        assert out.endswith('No plot: matplotlib is not installed. Install it with: pip install ".[plots]"\n')
        assert not (folder / "data.png").exists()


def test_help_needs_no_backend():
    command = [sys.executable, "-X", "importtime", "-m", "training.data", "--help"]
    result = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert "FILES_OR_RECIPE" in result.stdout
    assert "tensorflow" not in result.stderr and "keras_transformer" not in result.stderr
