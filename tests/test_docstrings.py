"""The examples in the docstrings run and print what they say."""

import doctest
import importlib
import pkgutil
import re

import keras
import pytest

import keras_transformer

MODULES = [name for _, name, _ in pkgutil.walk_packages(keras_transformer.__path__, "keras_transformer.")]


class PlainShapes(doctest.OutputChecker):
    """Takes torch's shapes for the tuples that they are."""

    def check_output(self, want, got, optionflags):
        plain = re.sub(r"torch\.Size\(\[([^]]*)\]\)", lambda found: repr(eval(f"({found[1]},)")), got)
        return super().check_output(want, plain, optionflags)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(checker=PlainShapes(), optionflags=doctest.NORMALIZE_WHITESPACE)
    names = {"keras": keras, "keras_transformer": keras_transformer, "kt": keras_transformer}
    for example in finder.find(module, extraglobs=names):
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


def test_every_public_layer_has_an_example():
    for name in keras_transformer.layers.__all__:
        documentation = getattr(keras_transformer.layers, name).__doc__
        for heading in ("Args:", "Call arguments:", "Returns:", "Masking:", "Example:", ">>> "):
            assert heading in documentation, (name, heading)
