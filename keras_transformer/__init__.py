"""The Transformer of "Attention Is All You Need" in Keras 3.

One alphabet names the axes of every tensor, in code, docstrings and error messages:

| letter | axis |
|---|---|
| `B` | batch |
| `S`, `T` | source and target length |
| `L` | length of a cache |
| `M` | model width |
| `N`, `H` | heads, and the width of a head |
| `F` | feed-forward width |
| `V` | vocabulary |
| `K` | beams |

A line of code that changes a shape ends in a comment such as `# (B, N, T, S)`.
"""

import keras_transformer.backends  # noqa: F401  # isort: skip  # Before whatever else needs Keras.
from keras_transformer import (
    attention,
    bridges,
    callbacks,
    data,
    decoding,
    layers,
    losses,
    masks,
    metrics,
    models,
    optimizers,
    schedules,
    serving,
    text,
    visualization,
)
from keras_transformer.decoding import SearchOptions
from keras_transformer.models import Transformer, TransformerConfig
from keras_transformer.text import SubwordSampling, Tokenizer, TokenizerPair, as_tokenizer, load_tokenizer
from keras_transformer.threads import parallel_sentences
from keras_transformer.translator import Translation, Translator
from keras_transformer.version import __version__

__all__ = [
    "SearchOptions",
    "SubwordSampling",
    "Tokenizer",
    "TokenizerPair",
    "Transformer",
    "TransformerConfig",
    "Translation",
    "Translator",
    "__version__",
    "as_tokenizer",
    "attention",
    "bridges",
    "callbacks",
    "data",
    "decoding",
    "export_saved_model",
    "layers",
    "load_tokenizer",
    "losses",
    "masks",
    "metrics",
    "models",
    "optimizers",
    "parallel_sentences",
    "schedules",
    "serving",
    "text",
    "visualization",
]


def __getattr__(name: str):
    # Imported when it is first asked for, so that its module can also be run as a program.
    if name == "export_saved_model":
        return serving.export_saved_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
