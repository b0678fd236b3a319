"""Our models for CTranslate2, a C++ engine for translation."""

import os
from pathlib import Path

import numpy as np
from keras import ops

from keras_transformer.folders import check_replaceable, complete_folder
from keras_transformer.layers import DecoderBlock, EncoderBlock, MultiHeadAttention
from keras_transformer.layers.spaced_kernel import parts_of
from keras_transformer.models import Transformer

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH", "swish": "SWISH", "tanh": "Tanh", "sigmoid": "Sigmoid"}
MARK = "model.bin"
QUANTIZATIONS = (None, "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32")


def to_ctranslate2(translator, directory: str | os.PathLike, quantization: str | None = None) -> Path:
    """Writes a translator's model and vocabularies as a CTranslate2 model.

    CTranslate2 works on tokens, not on text: give it what `tokenizer.tokens(text)` returns, and decode its tokens with
    the tokenizer. The end of the source is added by CTranslate2 itself.

    Needs the package ctranslate2: `pip install "keras3-transformer[ctranslate2]"`.

    Args:
        translator: A `Translator`.
        directory: Where to write. A model that is already there is replaced when the new one is complete.
        quantization: How weights are stored, such as `"int8"`. `None` keeps float32.

    Returns:
        The directory.
    """
    tokenizer = translator.tokenizer
    sides = (tokenizer.source, tokenizer.target)
    vocabularies = [side.tokens(np.arange(side.vocabulary_size)) for side in sides]
    return write_model(translator.model, *vocabularies, directory, quantization)


def write_model(
    model: Transformer,
    source_tokens: list[str],
    target_tokens: list[str],
    directory: str | os.PathLike,
    quantization: str | None = None,
) -> Path:
    """Writes a model whose tokens are known by these names; see `to_ctranslate2`."""
    if quantization not in QUANTIZATIONS:
        raise ValueError(f"`quantization` must be one of {QUANTIZATIONS}. Received: quantization={quantization!r}")
    check_replaceable(directory, MARK)
    spec = make_spec(model)
    config = model.config
    spec.register_source_vocabulary(fitted(source_tokens, config.source_vocabulary_size, "source"))
    spec.register_target_vocabulary(fitted(target_tokens, config.target_vocabulary_size, "target"))
    spec.config.unk_token = target_tokens[config.unknown_id]
    spec.config.bos_token = target_tokens[config.start_id]
    spec.config.eos_token = target_tokens[config.end_id]
    spec.config.decoder_start_token = target_tokens[config.start_id]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = config.layer_norm_epsilon
    spec.validate()
    spec.optimize(quantization=quantization)
    with complete_folder(directory, MARK) as folder:
        spec.save(str(folder))
    return Path(directory)


def fitted(tokens: list[str], size: int, side: str) -> list[str]:
    """Returns a vocabulary, checked against the model's."""
    if len(tokens) != size:
        raise ValueError(f"The model has {size} {side} tokens, the tokenizer has {len(tokens)}. They do not belong together")
    return list(tokens)


def make_spec(model: Transformer):
    """Fills CTranslate2's description of a Transformer with our weights."""
    common_spec, transformer_spec = import_specs()
    check_is_plain(model)
    config, parts = model.config, model.parts
    spec = transformer_spec.TransformerSpec.from_config(
        (config.num_encoder_layers, config.num_decoder_layers),
        config.encoder_num_heads,
        pre_norm=config.norm == "pre",
        activation=getattr(common_spec.Activation, ACTIVATIONS[config.activation]),
    )
    set_embedding(spec.encoder.embeddings[0], parts.source_embedding)
    set_embedding(spec.decoder.embeddings, parts.target_embedding)
    for side, positions in ((spec.encoder, parts.source_positions), (spec.decoder, parts.target_positions)):
        side.scale_embeddings = config.embedding_scale
        side.position_encodings.encodings = encodings(positions, config)
    for layer, block in zip(spec.encoder.layer, parts.encoder_blocks, strict=True):
        set_attention(layer.self_attention, block.self_attention, block.self_attention_norm, joined=(3, 1))
        set_feed_forward(layer.ffn, block)
    for layer, block in zip(spec.decoder.layer, parts.decoder_blocks, strict=True):
        set_attention(layer.self_attention, block.self_attention, block.self_attention_norm, joined=(3, 1))
        set_attention(layer.attention, block.cross_attention, block.cross_attention_norm, joined=(1, 2, 1))
        set_feed_forward(layer.ffn, block)
    if config.norm == "pre":
        set_norm(spec.encoder.layer_norm, parts.encoder_norm)
        set_norm(spec.decoder.layer_norm, parts.decoder_norm)
    set_logits(spec.decoder.projection, model)
    return spec


def import_specs():
    """Imports CTranslate2's specifications, or says how to get them."""
    try:
        from ctranslate2.specs import common_spec, transformer_spec
    except ImportError as error:
        raise ImportError('This needs CTranslate2: pip install "keras3-transformer[ctranslate2]"') from error
    return common_spec, transformer_spec


def check_is_plain(model: Transformer):
    """Raises a `ValueError` for models that CTranslate2 cannot compute."""
    config = model.config
    if config.activation not in ACTIVATIONS:
        raise ValueError(f"CTranslate2 knows the activations {sorted(ACTIVATIONS)}. Received: {config.activation!r}")
    if config.encoder_num_heads != config.decoder_num_heads:
        raise ValueError(
            "CTranslate2 needs the same number of heads in encoder and decoder. Received: "
            f"{config.encoder_num_heads} and {config.decoder_num_heads}"
        )
    if any(layer.quantization_mode is not None for layer in parts_of([model])):
        raise ValueError("Give CTranslate2 the model as it was before `quantize`, and ask for `quantization` here")
    for block in [*model.parts.encoder_blocks, *model.parts.decoder_blocks]:
        attentions = [getattr(block, name) for name in ("self_attention", "cross_attention") if hasattr(block, name)]
        if type(block) not in (EncoderBlock, DecoderBlock) or any(type(one) is not MultiHeadAttention for one in attentions):
            raise ValueError(f"CTranslate2 computes the paper's blocks only, and not {type(block).__name__} and its parts")


def numpy_of(x) -> np.ndarray:
    """Returns a variable as a float32 array."""
    return ops.convert_to_numpy(ops.cast(x, "float32"))


def set_embedding(spec, embedding):
    """Sets an embedding."""
    spec.weight = numpy_of(embedding.embeddings)


def encodings(positions, config) -> np.ndarray:
    """Returns what is added to the embeddings at each position, up to a length that is never reached."""
    length = max(config.max_length, 1024) if config.positions != "learned" else config.max_length
    return numpy_of(positions(ops.zeros((1, length, config.model_dim))))[0]


def set_norm(spec, norm):
    """Sets a layer normalization."""
    spec.gamma, spec.beta = numpy_of(norm.gamma), numpy_of(norm.beta)


def set_linear(spec, layers: list):
    """Sets a linear map, or several side by side in one."""
    spec.weight = np.concatenate([numpy_of(layer.kernel).T for layer in layers])
    if layers[0].use_bias:
        spec.bias = np.concatenate([numpy_of(layer.bias) for layer in layers])


def set_attention(spec, attention: MultiHeadAttention, norm, joined: tuple[int, ...]):
    """Sets an attention; `joined` says how many of query, key, value and output go into one linear map."""
    layers = [attention.query_dense, attention.key_dense, attention.value_dense, attention.output_dense]
    first = 0
    for linear, count in zip(spec.linear, joined, strict=True):
        set_linear(linear, layers[first : first + count])
        first += count
    set_norm(spec.layer_norm, norm)


def set_feed_forward(spec, block):
    """Sets a feed-forward network."""
    set_linear(spec.linear_0, [block.feed_forward.hidden_dense])
    set_linear(spec.linear_1, [block.feed_forward.output_dense])
    set_norm(spec.layer_norm, block.feed_forward_norm)


def set_logits(spec, model: Transformer):
    """Sets the output projection."""
    logits = model.parts.logits
    tied = model.config.tie != "none"
    spec.weight = numpy_of(model.parts.target_embedding.embeddings) if tied else numpy_of(logits.kernel).T
    if model.config.output_bias:
        spec.bias = numpy_of(logits.bias)
