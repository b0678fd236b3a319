"""A small exported model for the tests of serving."""

import shutil

import pytest

from tests.serving.toy_export import write_toy_export


@pytest.fixture(scope="session")
def toy_version(tmp_path_factory):
    """A SavedModel with an exported translator's signatures, whose translations are in upper case."""
    return write_toy_export(tmp_path_factory.mktemp("toy") / "1")


@pytest.fixture(scope="session")
def toy(toy_version):
    """The folder of the versions of that model."""
    return toy_version.parent


@pytest.fixture
def versions(toy_version, tmp_path):
    """Adds versions to a folder: `versions(3)` returns the folder."""

    def add(number):
        shutil.copytree(toy_version, tmp_path / "versions" / str(number))
        return tmp_path / "versions"

    return add
