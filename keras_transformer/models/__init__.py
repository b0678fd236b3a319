"""Whole models: the record of a model's shape, shapes with a name, and the Transformer itself."""

from keras_transformer.models.config import TransformerConfig
from keras_transformer.models.layout import layout_map
from keras_transformer.models.presets import PRESETS
from keras_transformer.models.transformer import Transformer

__all__ = ["PRESETS", "Transformer", "TransformerConfig", "layout_map"]
