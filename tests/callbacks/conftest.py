"""Tests of what is the same on every backend run on one of them."""

from pathlib import Path

import keras

from tests.conftest import ON_ONE_BACKEND


def pytest_configure(config):
    config.addinivalue_line("markers", "once: is the same on every backend, and runs on one of them")


def pytest_collection_modifyitems(config, items):
    if keras.backend.backend() != ON_ONE_BACKEND and not config.getoption("--all-backends"):
        own = Path(__file__).parent
        items[:] = [item for item in items if own not in item.path.parents or not item.get_closest_marker("once")]
