"""From strings to ids and back: tokenizers that train, save, load and run inside a TensorFlow graph."""

from keras_transformer.text.keras_hub import as_tokenizer
from keras_transformer.text.marian import MarianTokenizer
from keras_transformer.text.pair import TokenizerPair, load_tokenizer
from keras_transformer.text.protocol import TokenizerProtocol
from keras_transformer.text.sampling import SubwordSampling
from keras_transformer.text.tokenizer import Tokenizer

__all__ = [
    "MarianTokenizer",
    "SubwordSampling",
    "Tokenizer",
    "TokenizerPair",
    "TokenizerProtocol",
    "as_tokenizer",
    "load_tokenizer",
]
