"""Folders that appear when they are complete, and what they may replace."""

import pytest

from keras_transformer.folders import check_replaceable, complete_folder


def write(directory, mark=None):
    with complete_folder(directory, mark) as folder:
        (folder / "mark.json").write_text("new")


def test_a_folder_with_the_mark_is_replaced(tmp_path):
    write(tmp_path / "folder", "mark.json")
    (tmp_path / "folder" / "old").touch()
    write(tmp_path / "folder", "mark.json")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "mark.json"]


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
    with pytest.raises(ValueError, match="Only an empty folder"):
        check_replaceable(tmp_path / "file", "mark.json")
    check_replaceable(tmp_path / "nothing", "mark.json")


def test_without_a_mark_anything_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").touch()
    write(tmp_path / "folder")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "mark.json"]
