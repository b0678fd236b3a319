"""Lines of files and streams: only a line feed ends one."""

import io
import os

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
