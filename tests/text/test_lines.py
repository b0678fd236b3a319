"""Lines of files and streams: only a line feed ends one."""

import codecs
import gzip
import io
import os
import shlex
import shutil
import subprocess

import pytest

from keras_transformer.text.lines import one_line, read_lines, stream_lines


def stream(content: bytes, encoding="utf8"):
    """A stream as `sys.stdin` is one: text over bytes, any kind of line end."""
    return io.TextIOWrapper(io.BytesIO(content), encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf8", "ascii"])
def test_streams_have_the_lines_of_files(tmp_path, encoding):
    content = "\ufeffeins\rzwei\r\nmüde\u2028\x0b\n\n\ufefflast".encode()
    (tmp_path / "lines.txt").write_bytes(content)
    lines = list(stream_lines(stream(content, encoding)))
    assert lines == ["eins\rzwei", "müde\u2028\x0b", "", "\ufefflast"] == list(read_lines(tmp_path / "lines.txt"))
    assert list(stream_lines(io.StringIO(content.decode()))) == lines


def test_what_is_not_utf8_in_a_stream_is_replaced():
    assert list(stream_lines(stream(b"caf\xe9 \xff\nb\n"))) == ["caf\ufffd \ufffd", "b"]


def test_a_line_of_a_stream_is_there_before_the_next():
    source, sink = os.pipe()
    with open(source, encoding="utf8") as text, open(sink, "wb", buffering=0) as typed:
        lines = stream_lines(text)
        for line in ("eins", "zwei"):
            typed.write(f"{line}\n".encode())
            assert next(lines) == line


def test_one_line():
    assert one_line("eins\r\nzwei\x85drei\u2028vier") == "eins zwei drei vier"


# Files in other encodings.

GERMAN = ["Ein müder Hund schläft.", "", "Er träumt von der Straße."] * 3
CHINESE = ["猫坐在垫子上。", "狗睡在街上。", "一二三。"] * 3


def run_hint(message: str) -> list[str]:
    """Runs the command that an error message gives, and returns the lines of the file that it writes."""
    command = message.rpartition("Convert it first: ")[2]
    subprocess.run(command, shell=True, check=True)
    return list(read_lines(shlex.split(command)[-1]))


@pytest.mark.skipif(shutil.which("iconv") is None, reason="there is no iconv here")
@pytest.mark.parametrize("lines", [GERMAN, CHINESE], ids=["German", "Chinese"])
@pytest.mark.parametrize("name", ["lines.txt", "my lines.txt", "lines.txt.gz"])
@pytest.mark.parametrize(
    ("encoding", "mark", "said"),
    [
        ("utf-32-le", b"", "UTF-32LE"),
        ("utf-16-le", codecs.BOM_UTF16_LE, "UTF-16"),
        ("utf-16-be", codecs.BOM_UTF16_BE, "UTF-16"),
        ("utf-16-le", b"", "UTF-16LE"),
        ("utf-16-be", b"", "UTF-16BE"),
        ("utf-32-le", codecs.BOM_UTF32_LE, "UTF-32"),
        ("utf-32-be", codecs.BOM_UTF32_BE, "UTF-32"),
    ],
)
def test_the_hint_for_another_encoding_keeps_the_lines(tmp_path, lines, name, encoding, mark, said):
    path = tmp_path / name
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wb") as file:
        file.write(mark + "".join(f"{line}\n" for line in lines).encode(encoding))
    with pytest.raises(ValueError, match=rf"lines\.txt.* is in {said}, not in UTF-8") as error:
        list(read_lines(path))
    assert run_hint(str(error.value)) == lines


def test_bytes_of_no_known_encoding(tmp_path):
    """Latin-1, with a stray NUL: it may be this or another, and the hint says so."""
    path = tmp_path / "lines.txt"
    path.write_bytes("ein \0 müder Hund\nzwei\n".encode("latin-1") * 100)
    with pytest.raises(ValueError, match=r"line 1: not valid UTF-8 .*If it is in ISO-8859-1") as error:
        list(read_lines(path))
    assert str(error.value).endswith(f": iconv -f ISO-8859-1 -t UTF-8 {path} > {tmp_path}/utf8.lines.txt")


def test_utf8_with_odd_characters_is_read(tmp_path):
    path = tmp_path / "lines.txt"
    for line in ("a\0b", "\0", "\x00\x07 tick", "\u4e00\u0a00", "\0" * 9000, "x" * 5000 + "\0"):
        path.write_bytes(f"{line}\nzwei\n".encode() * 3)
        assert list(read_lines(path)) == [line, "zwei"] * 3
