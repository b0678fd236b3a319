"""The examples in the docstrings run and print what they say."""

import doctest
import importlib
import pkgutil

import keras
import pytest

import keras_transformer

MODULES = [name for _, name, _ in pkgutil.walk_packages(keras_transformer.__path__, "keras_transformer.")]


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="shapes print as plain tuples on JAX only")
@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    names = {"keras": keras, "keras_transformer": keras_transformer, "kt": keras_transformer}
    for example in finder.find(module, extraglobs=names):
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="does not depend on the backend")
def test_every_public_layer_has_an_example():
    for name in keras_transformer.layers.__all__:
        documentation = getattr(keras_transformer.layers, name).__doc__
        for heading in ("Args:", "Call arguments:", "Returns:", "Masking:", "Example:", ">>> "):
            assert heading in documentation, (name, heading)
