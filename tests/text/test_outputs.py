"""Files that a user names to be written to: nothing that is there is lost before the new one is whole."""

import contextlib
import errno
import os
import stat
import threading

import pytest

from keras_transformer.text.outputs import check_output, output_file


@contextlib.contextmanager
def descriptor(number, file):
    """Lets a descriptor of this process, such as 0 for the standard input, be that of a file."""
    own = os.dup(number)
    os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        os.dup2(own, number)
        os.close(own)


def write(path, text="new\n"):
    with output_file(path) as file:
        file.write(text)


def test_an_older_file_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "new folder" / "out.txt"
    write(path, "ü\r\n")
    assert path.read_bytes() == "ü\r\n".encode()
    with pytest.raises(OSError, match="No space left"), output_file(path) as file:
        file.write("half")
        file.flush()
        assert path.read_bytes() == "ü\r\n".encode()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert path.read_bytes() == "ü\r\n".encode()
    assert os.listdir(path.parent) == ["out.txt"]


def test_links_and_permissions_stay(tmp_path):
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "out.txt"
    target.write_text("old")
    target.chmod(0o640)
    for link, to in (("link", "real/out.txt"), ("dangling", "not/there.txt")):
        (tmp_path / link).symlink_to(to)
        write(tmp_path / link)
        assert os.readlink(tmp_path / link) == to
        assert (tmp_path / to).read_text() == "new\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir(tmp_path / "real") == ["out.txt"]


def test_a_pipe_gets_each_line(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write(tmp_path / "pipe")
    reader.join()
    assert read == ["new\n"] and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("output", ["/dev/stdout", "out.txt"])
def test_the_standard_output_is_added_to(tmp_path, output):
    """Whatever the shell has opened it for, here `>> out.txt`."""
    (tmp_path / "out.txt").write_text("old\n")
    with (tmp_path / "out.txt").open("a") as file, descriptor(1, file):
        os.write(1, b"before\n")
        write(tmp_path / output)
        os.write(1, b"after\n")
    assert (tmp_path / "out.txt").read_text() == "old\nbefore\nnew\nafter\n"


def test_what_is_read_is_not_written_over(tmp_path):
    source = tmp_path / "in.txt"
    source.write_text("text")
    os.link(source, tmp_path / "hard")
    (tmp_path / "soft").symlink_to("in.txt")
    for name in ("in.txt", "hard", "soft", f"../{tmp_path.name}/in.txt"):
        with pytest.raises(ValueError, match=f"would be lost. Choose another output. Received: --output .*{name}"):
            check_output(tmp_path / name, [tmp_path / "other", source])
    check_output(tmp_path / "other", [source])
    check_output(None, [source])
    check_output("/dev/null", ["/dev/null"])
    with source.open() as file, pytest.raises(ValueError, match="Choose another output"):
        check_output(source, [file.fileno()])


def test_what_may_not_be_written_is_said_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "out.txt").write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"out\.txt"):
        check_output(tmp_path / "out.txt", [])
    with pytest.raises(IsADirectoryError):
        check_output(tmp_path, [])
