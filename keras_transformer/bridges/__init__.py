"""Bridges to other systems: models of Marian and OPUS-MT in, models for CTranslate2 out."""

from keras_transformer.bridges.ctranslate2 import to_ctranslate2
from keras_transformer.bridges.marian import from_marian

__all__ = ["from_marian", "to_ctranslate2"]
