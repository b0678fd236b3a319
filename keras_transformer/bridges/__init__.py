"""Bridges to other systems."""

from keras_transformer.bridges.ctranslate2 import to_ctranslate2

__all__ = ["to_ctranslate2"]
