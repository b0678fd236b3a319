"""Marian and OPUS-MT: models as Hugging Face publishes them, made into translators."""

from keras_transformer.bridges.marian.importing import from_marian

__all__ = ["from_marian"]
