"""Pairs from files and from Python, and what is said of those that do not fit together."""

import gzip

import pytest

from keras_transformer.data import parallel_dataset
from keras_transformer.data.alignment import first_line_out_of_step
from keras_transformer.data.reading import PairReader
from tests.data.conftest import generated_lines


def read(source, target=None) -> list[tuple[str, str]]:
    return [pair for chunk in PairReader(source, target).chunks() for pair in zip(chunk.source, chunk.target, strict=True)]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return path


def test_files_plain_and_compressed_one_after_the_other(tmp_path):
    first = write(tmp_path / "a.en", ["one", "two"]), write(tmp_path / "a.de", ["eins", "zwei"])
    (tmp_path / "b.en.gz").write_bytes(gzip.compress(b"three\r\nfour"))
    (tmp_path / "b.de.gz").write_bytes(gzip.compress(b"drei\nvier"))
    sources, targets = [first[0], tmp_path / "b.en.gz"], [first[1], tmp_path / "b.de.gz"]
    assert read(sources, targets) == [("one", "eins"), ("two", "zwei"), ("three", "drei"), ("four", "vier")]


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_archive_is_named(tmp_path, damage):
    content = bytearray(gzip.compress(b"one two three four\n" * 50))
    content[len(content) // 2] ^= 255
    (tmp_path / "a.en.gz").write_bytes(content[:-12] if damage == "cut" else content)
    with pytest.raises(ValueError, match=r"a.en.gz is not a whole gzip file"):
        read(tmp_path / "a.en.gz", tmp_path / "a.en.gz")


def test_columns(tmp_path):
    path = write(tmp_path / "pairs.tsv", ["one\teins", "two\tzwei"])
    assert read(path) == read(str(path)) == [("one", "eins"), ("two", "zwei")]
    path = write(tmp_path / "wrong.tsv", ["one\teins", "two zwei"])
    with pytest.raises(ValueError, match=r"wrong.tsv, line 2: expected a source and a target with one tab"):
        read(path)


def test_lines_and_pairs_from_python():
    assert read(["a b", "c d"], ("e f\n", b"g h")) == [("a b", "e f"), ("c d", "g h")]
    assert read((line for line in ["a", "b"]), iter(["c", "d"])) == [("a", "c"), ("b", "d")]
    assert read(iter([("a", "c"), ("b", "d")])) == [("a", "c"), ("b", "d")]
    with pytest.raises(ValueError, match=r"must be a \(source, target\) pair.*'a b'"):
        read(["a b", "c d"])


def test_files_beside_lines(tmp_path):
    with pytest.raises(ValueError, match=r"both be files or both be lines. Received: files as source, lines as target"):
        PairReader(write(tmp_path / "a.en", ["one"]), iter(["eins"]))
    with pytest.raises(ValueError, match=r"the same number of files.*2 source files.*1 target files"):
        PairReader(["a.en", "b.en"], ["a.de"])


@pytest.mark.parametrize("missing", [0, 57, 199])
@pytest.mark.parametrize("side", ["source", "target"])
def test_different_numbers_of_lines(tmp_path, missing, side):
    sources, targets = generated_lines(200, max_words=60)
    del (sources if side == "source" else targets)[missing]
    paths = write(tmp_path / "a.en", sources), write(tmp_path / "a.de", targets)
    with pytest.raises(ValueError, match="same number of lines") as error:
        read(*paths)
    assert f"Received: {len(sources)} and {len(targets)} lines" in str(error.value)
    place = int(str(error.value).split("out of step is line ")[1].split(":")[0])
    assert abs(place - 1 - missing) <= 2


def test_different_numbers_of_lines_from_python():
    with pytest.raises(ValueError, match=r"Received: 3 and 2 lines. Look for a missing or an extra line"):
        read(iter("abc"), iter("de"))


@pytest.mark.parametrize("gap", [1, 3])
def test_the_place_is_found_where_lines_are_missing(gap, random):
    source = random.integers(5, 200, 1000)
    target = (source * random.uniform(0.9, 1.4, 1000)).astype(int)
    assert abs(first_line_out_of_step(source, [*target[:400], *target[400 + gap :]]) - 400) <= 2
    assert abs(first_line_out_of_step([*source[:400], *source[400 + gap :]], target) - 400) <= 2


def test_one_side_empty():
    assert first_line_out_of_step([3, 4], []) == 0


def test_bad_files(tmp_path, tokenizer):
    good = write(tmp_path / "good.en", ["ba be"])
    with pytest.raises(FileNotFoundError, match=r"no such file: .*missing.de"):
        parallel_dataset(good, tmp_path / "missing.de", tokenizer)
    empty = write(tmp_path / "empty.de", [])
    with pytest.raises(ValueError, match=r"empty.de is empty"):
        parallel_dataset(good, empty, tokenizer)
    (tmp_path / "bytes.de").write_bytes(b"ba\n\xff\xfe\n")
    two = write(tmp_path / "two.en", ["ba", "be"])
    with pytest.raises(ValueError, match=r"bytes.de, line 2: not valid UTF-8"):
        parallel_dataset(two, tmp_path / "bytes.de", tokenizer)
    assert not list(tmp_path.glob("cache/**/source.ids"))


def test_nothing_left(tokenizer):
    with pytest.raises(ValueError, match="There are no pairs"):
        parallel_dataset([], [], tokenizer)
    with pytest.raises(ValueError, match="No pair is left of 2; dropped: 2 empty"):
        parallel_dataset([" ", "ba be"], ["ba", "\t "], tokenizer)
