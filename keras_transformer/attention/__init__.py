"""Seeing where a model looks: the record of its attention, how it is captured, and the page that shows it."""

from keras_transformer.attention.capture import attention_scores, token_names
from keras_transformer.attention.record import KINDS, Attention

__all__ = ["KINDS", "Attention", "attention_scores", "token_names"]
