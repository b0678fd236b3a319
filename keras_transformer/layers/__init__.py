"""The parts of the Transformer, a public class a file."""

from keras_transformer.layers.decoder_block import DecoderBlock
from keras_transformer.layers.encoder_block import EncoderBlock
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.learned_positional_encoding import LearnedPositionalEncoding
from keras_transformer.layers.multi_head_attention import MultiHeadAttention
from keras_transformer.layers.padding_mask import PaddingMask
from keras_transformer.layers.sinusoidal_positional_encoding import SinusoidalPositionalEncoding
from keras_transformer.layers.tied_logits import TiedLogits
from keras_transformer.layers.token_embedding import TokenEmbedding

__all__ = [
    "DecoderBlock",
    "EncoderBlock",
    "FeedForward",
    "LearnedPositionalEncoding",
    "MultiHeadAttention",
    "PaddingMask",
    "SinusoidalPositionalEncoding",
    "TiedLogits",
    "TokenEmbedding",
]
