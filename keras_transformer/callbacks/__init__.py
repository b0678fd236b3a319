"""Callbacks for `fit`: exact checkpoints and going on from them, BLEU, averaged weights, stopping in time."""

from keras_transformer.callbacks.averaging import WeightAveraging, average_weights
from keras_transformer.callbacks.bleu import BleuEvaluation
from keras_transformer.callbacks.checkpoints import Checkpoints
from keras_transformer.callbacks.early_stopping import EarlyStopping
from keras_transformer.callbacks.non_finite import StopOnNonFinite
from keras_transformer.callbacks.position import Position
from keras_transformer.callbacks.resuming import fit

__all__ = [
    "BleuEvaluation",
    "Checkpoints",
    "EarlyStopping",
    "Position",
    "StopOnNonFinite",
    "WeightAveraging",
    "average_weights",
    "fit",
]
