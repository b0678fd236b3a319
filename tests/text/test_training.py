import gzip
import io
import sys
import warnings

import pytest
import sentencepiece

from keras_transformer.text import Tokenizer
from keras_transformer.text.lines import as_paths, sample_lines
from tests.text.samples import sentences


@pytest.fixture
def files(tmp_path):
    """Two text files, the second one gzipped."""
    plain, packed = tmp_path / "a.txt", tmp_path / "b.gz"
    plain.write_text("\n".join(sentences(200, seed=1)), encoding="utf8")
    packed.write_bytes(gzip.compress("\n".join(sentences(200, seed=2)).encode()))
    return [plain, packed]


def test_files_plain_and_gzipped_and_lines_give_the_same_tokenizer(files):
    expected = Tokenizer.train(iter(sentences(200, seed=1) + sentences(200, seed=2)), 350)
    assert Tokenizer.train(files, 350) == expected
    assert Tokenizer.train([str(file) for file in files], 350) == expected
    assert Tokenizer.train(sentences(200, seed=1) + sentences(200, seed=2), 350) == expected
    assert Tokenizer.train(files[0], 350) == Tokenizer.train(str(files[0]), 350) != expected


@pytest.mark.parametrize(
    ("data", "are_paths"),
    [
        ("train.en", True),
        (["train.en", "train.de"], True),
        (["the cat sat", "house"], False),
        (["x" * 5000 + " y"], False),
        (["a\0b c"], False),
        (iter(["train.en"]), False),
        ([], False),
    ],
)
def test_telling_files_from_lines(data, are_paths):
    assert (as_paths(data) is not None) == are_paths


def test_an_existing_file_with_a_blank_in_its_name_is_a_file(tmp_path):
    file = tmp_path / "my text.en"
    file.write_text("some text")
    assert as_paths([str(file), "other file.de"]) is not None


def test_training_is_reproducible(model):
    lines = sentences(300)
    first = Tokenizer.train(iter(lines), 330, model=model)
    assert Tokenizer.train(iter(lines), 330, model=model).serialized == first.serialized
    assert Tokenizer.train(iter(lines), 330, model=model, max_lines=100, seed=1) != first


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.en"):
        Tokenizer.train([tmp_path / "nowhere.en"])


@pytest.mark.parametrize("text", ["", "\n\n", "  \n\t\n"])
def test_file_without_text_is_refused(tmp_path, text):
    (tmp_path / "blank.txt").write_text(text)
    with pytest.raises(ValueError, match=r"(?s)no text to train on.*blank\.txt"):
        Tokenizer.train(tmp_path / "blank.txt")


def test_text_of_nothing_visible_is_refused(model):
    with pytest.raises(ValueError, match=r"could not train|no text"):
        Tokenizer.train(iter(["\x01\x02", "\x03"]), 300, model=model)


@pytest.mark.parametrize("name", ["bad.txt", "bad.gz"])
def test_invalid_utf8_is_found_by_file_and_line(tmp_path, name):
    content = b"good\nalso good\nb\xe4d\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(ValueError, match=rf"{name}, line 3: not valid UTF-8"):
        Tokenizer.train(tmp_path / name)


def test_cut_off_gzip_file_is_refused(files):
    files[1].write_bytes(files[1].read_bytes()[:100])
    with pytest.raises(ValueError, match=r"b\.gz is not a whole gzip file"):
        Tokenizer.train(files)


def test_line_ends_and_byte_order_mark_are_no_text(tmp_path):
    (tmp_path / "windows.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(sentences(200)).encode())
    assert Tokenizer.train(tmp_path / "windows.txt", 340) == Tokenizer.train(iter(sentences(200)), 340)


def test_vocabulary_too_small_says_what_would_do(model):
    with pytest.raises(ValueError, match=r"at least (\d+) entries.*vocabulary_size=270") as caught:
        Tokenizer.train(iter(sentences(200)), 270, model=model)
    least = int(str(caught.value).split("at least ")[1].split()[0])
    assert Tokenizer.train(iter(sentences(200)), least, model=model).vocabulary_size == least
    with pytest.raises(ValueError, match="too small"):
        Tokenizer.train(iter(sentences(200)), least - 1, model=model)


def test_vocabulary_too_large_is_shrunk_with_a_warning(model):
    with pytest.warns(UserWarning, match=r"vocabulary of 5,000: there are only \d+ pieces") as caught:
        tokenizer = Tokenizer.train(iter(sentences(100)), 5000, model=model)
    assert f"only {tokenizer.vocabulary_size:,} pieces" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert 260 < tokenizer.vocabulary_size < 5000
    assert max(max(row) for row in tokenizer.encode(sentences(100))) < tokenizer.vocabulary_size
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Tokenizer.train(iter(sentences(100)), tokenizer.vocabulary_size, model=model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "word"}, '"bpe" or "unigram"'),
        ({"normalization": "nfd"}, '"nfc", "nfkc", "nfkc_casefold", "identity"'),
        ({"max_lines": 0}, "max_lines=0"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Tokenizer.train(iter(sentences(10)), 300, **options)


def test_no_line_is_left_out_for_its_length_or_characters(model):
    long = " ".join(["zebra"] * 1000)
    lines = [*sentences(100), long, "quokka \u2585 quokka", "walrus <s> walrus", "yak\tyak", "x\0emu", "a\ud800 lynx"]
    tokenizer = Tokenizer.train(iter(lines), 370, model=model, character_coverage=1.0)
    single = [tokenizer.tokens(letter)[-1] for letter in "zqwky"]
    assert all(not piece.startswith("<0x") for piece in single)


def test_sampling_of_lines_is_even_and_keeps_all_if_there_is_room():
    lines = [str(number) for number in range(1000)]
    assert sample_lines([*lines, "", " "], 2000, seed=0) == lines
    counts = [sum(line < 500 for line in map(int, sample_lines(lines, 100, seed=seed))) for seed in range(50)]
    assert 45 < sum(counts) / len(counts) < 55
    assert sample_lines(lines, 100, seed=1) == sample_lines(lines, 100, seed=1) != sample_lines(lines, 100, seed=2)


def test_training_is_quiet_where_there_is_no_terminal(capfd):
    Tokenizer.train(iter(sentences(100)), 320)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_progress_is_shown_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    for progress in (True, False):
        monkeypatch.setattr(sys, "stderr", Terminal())
        Tokenizer.train(iter(sentences(100)), 320, progress=progress)
        shown = sys.stderr.getvalue()
        assert ("Read 100 lines" in shown and "Training the bpe model on 100 lines" in shown) == progress


def test_the_model_is_plain_sentencepiece(tokenizer):
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.serialized)
    texts = sentences(50)
    assert processor.encode(texts) == tokenizer.encode(texts)
    assert processor.decode(tokenizer.encode(texts)) == tokenizer.decode(tokenizer.encode(texts))
