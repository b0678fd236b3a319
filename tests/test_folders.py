"""Files and folders that appear when they are complete, and what they may replace."""

import errno
import os

import pytest

from keras_transformer import folders, locks
from keras_transformer.folders import check_replaceable, clear_leftovers, complete_folder, hidden_place, write_files
from tests.dying import full_disk, killed


def write(directory, mark=None, text="new"):
    with complete_folder(directory, mark) as folder:
        (folder / "mark.json").write_text(text)
        (folder / "more").write_text(text)


def names_in(directory) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture(params=["at once", "in two steps"])
def exchanged(request, monkeypatch):
    """How folders are exchanged: as on Linux, and as elsewhere."""
    if request.param == "in two steps":
        monkeypatch.setattr(folders, "exchange", lambda *_: False)


def test_a_folder_with_the_mark_is_replaced(tmp_path, exchanged):
    write(tmp_path / "folder", "mark.json", "old")
    (tmp_path / "folder" / "old").touch()
    write(tmp_path / "folder", "mark.json")
    assert names_in(tmp_path) == ["folder"]
    assert names_in(tmp_path / "folder") == ["mark.json", "more"]


def test_an_empty_folder_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    write(tmp_path / "folder", "mark.json")
    assert (tmp_path / "folder" / "mark.json").read_text() == "new"


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"Only an empty folder, or one with a mark.json, is replaced.*Choose another.*run"):
        write(tmp_path / "run", "mark.json")
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "checkpoints"]


def test_a_file_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("precious")
    for mark in ("mark.json", None):
        with pytest.raises(ValueError, match="Only a"):
            check_replaceable(tmp_path / "file", mark)
        check_replaceable(tmp_path / "nothing", mark)


def test_without_a_mark_any_folder_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").touch()
    write(tmp_path / "folder")
    assert names_in(tmp_path / "folder") == ["mark.json", "more"]


def test_what_a_link_points_to_is_replaced(tmp_path):
    write(tmp_path / "disk" / "folder", text="old")
    (tmp_path / "link").symlink_to("disk/folder")
    (tmp_path / "to_nothing").symlink_to("disk/other")
    for link in ("link", "to_nothing"):
        write(tmp_path / link, "mark.json")
        assert (tmp_path / link).is_symlink() and (tmp_path / link / "mark.json").read_text() == "new"
    assert names_in(tmp_path / "disk") == ["folder", "other"]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ValueError, match="Only an empty folder"):
        write(tmp_path / "loop", "mark.json")


def test_the_folder_that_one_works_in_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    (tmp_path / "folder" / "mark.json").touch()
    monkeypatch.chdir(tmp_path / "folder" / "inside")
    for path in (".", "..", tmp_path / "folder"):
        with pytest.raises(ValueError, match=r"works in, or is inside of, cannot be replaced.*Received: "):
            write(path)
    write("./new")
    write("../other")
    assert names_in(tmp_path / "folder") == ["inside", "mark.json", "other"]


@pytest.mark.skipif(not os.path.ismount("/proc"), reason="needs a mounted file system")
def test_a_mounted_file_system_is_left_alone(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"on which a file system is mounted.*inside it, such as /proc/new. Received: /proc"):
        write("/proc")


def test_a_new_folder_that_cannot_be_put_in_place_leaves_the_old_one(tmp_path, monkeypatch):
    write(tmp_path / "folder", text="old")
    rename = os.rename

    def fail_for_the_new(source, target):
        if source.name == "new":
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(folders, "exchange", lambda *_: False)
    monkeypatch.setattr(os, "rename", fail_for_the_new)
    with pytest.raises(OSError, match="Input/output error"):
        write(tmp_path / "folder")
    assert names_in(tmp_path) == ["folder"] and (tmp_path / "folder" / "mark.json").read_text() == "old"


def moments(work, step):
    """Kills some work at one moment after the other, until it is done before it is killed."""
    moment = 1
    while killed(moment, work):
        yield moment
        moment += step


@pytest.mark.proof("A folder that a process replaces that is killed at any moment is the whole old one or the whole new one")
def test_killed_at_any_moment(tmp_path, exchanged, size, seen):
    write(tmp_path / "folder", text="old")
    kills = leftovers = 0
    for _ in moments(lambda: write(tmp_path / "folder", "mark.json", "new"), size(3, full=1)):
        kills, leftovers = kills + 1, leftovers + (len(names_in(tmp_path)) > 1)
        clear_leftovers(tmp_path, "folder")
        assert names_in(tmp_path) == ["folder"]
        found = {(tmp_path / "folder" / name).read_text() for name in ("mark.json", "more")}
        assert found in ({"old"}, {"new"})
        write(tmp_path / "folder", text="old")
    assert (tmp_path / "folder" / "mark.json").read_text() == "new"
    assert leftovers > size(4, full=12)
    seen(f"{kills} kills, of which {leftovers} left something hidden, which is gone afterwards")


def write_file(path):
    write_files(path.parent, {path.name: b"content"})


@pytest.mark.parametrize("work", [write, write_file])
def test_the_next_writer_clears_what_a_killed_one_left(tmp_path, work):
    leftovers = 0
    for _ in moments(lambda: work(tmp_path / "target"), 3):
        leftovers += any(name != "target" for name in names_in(tmp_path))
        work(tmp_path / "target")
        assert names_in(tmp_path) == ["target"]
    assert leftovers > 2


def test_what_living_writers_and_others_have_is_left_alone(tmp_path):
    others = [".target.0123456789abcdef", ".other.writing-0123456789abcdef", "x.target.writing-0123456789abcdef"]
    for name in others:
        (tmp_path / name).mkdir()
    with complete_folder(tmp_path / "target") as first, complete_folder(tmp_path / "target") as second:
        clear_leftovers(tmp_path, "target")
        assert first.is_dir() and second.is_dir()
        (first / "first").touch()
    assert names_in(tmp_path / "target") == ["first"]
    assert names_in(tmp_path) == sorted([*others, "target"])


def test_leftovers_of_all_targets(tmp_path):
    for _ in moments(lambda: write(tmp_path / "one"), 9):
        pass
    clear_leftovers(tmp_path)
    assert names_in(tmp_path) == ["one"]


def test_where_nothing_can_be_locked_nothing_is_cleared(tmp_path, monkeypatch):
    monkeypatch.setattr(folders.locks, "fcntl", None)
    with hidden_place(tmp_path / "target") as place:
        clear_leftovers(tmp_path)
        assert place.is_dir()
    assert names_in(tmp_path) == []


def test_a_place_that_cannot_be_locked_for_want_of_room_is_removed(tmp_path, monkeypatch):
    def no_space(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(folders.locks, "hold_lock", no_space)
    with pytest.raises(OSError, match=r"No space left on device. What was there before is untouched"):
        write(tmp_path / "folder")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("number", locks.NO_LOCKS)
def test_a_file_system_without_locks(tmp_path, monkeypatch, number):
    def no_locks(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(folders.locks.fcntl, "flock", no_locks)
    write(tmp_path / "folder", text="old")
    with complete_folder(tmp_path / "folder") as folder:
        clear_leftovers(tmp_path)
        assert folder.is_dir()
    assert names_in(tmp_path) == ["folder"]


def test_files_are_replaced_only_together(tmp_path):
    write_files(tmp_path, {"one": b"old", "two": b"old"})
    with full_disk(5), pytest.raises(OSError, match=r"What was there before is untouched. Make room.*one'"):
        write_files(tmp_path, {"one": b"new", "two": b"too long"})
    assert names_in(tmp_path) == ["one", "two"]
    assert {(tmp_path / name).read_text() for name in ("one", "two")} == {"old"}
