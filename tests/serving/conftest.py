"""A small exported model for the tests of serving."""

import shutil

import pytest

from tests.serving.toy_export import write_toy_export

LABELS = {"stable": 1, "gone": 9}


@pytest.fixture(scope="session")
def toy_version(tmp_path_factory):
    """A SavedModel with an exported translator's signatures, whose translations are in upper case."""
    return write_toy_export(tmp_path_factory.mktemp("toy") / "1")


@pytest.fixture(scope="session")
def toy(toy_version):
    """The folder of the versions of that model, of which two have names; one of them does not exist."""
    labels = "".join(f'version_labels {{ key: "{label}" value: {version} }}\n' for label, version in LABELS.items())
    (toy_version.parent / "models.config").write_text(labels)
    return toy_version.parent


@pytest.fixture
def versions(toy_version, tmp_path):
    """Adds versions to a folder: `versions(3)` returns the folder."""

    def add(number):
        shutil.copytree(toy_version, tmp_path / "versions" / str(number))
        return tmp_path / "versions"

    return add
