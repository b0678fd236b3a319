"""The shape of a model: from config.json to a `TransformerConfig`."""

from keras_transformer.models import TransformerConfig

# What Marian has where config.json says nothing.
DEFAULTS = {
    "vocab_size": 58101,
    "d_model": 1024,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "max_position_embeddings": 1024,
    "activation_function": "gelu",
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "scale_embedding": False,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "pad_token_id": 58100,
    "eos_token_id": 0,
    "decoder_start_token_id": 58100,
}
# What makes another model than a Marian one, unless it is this.
FIXED = {
    "model_type": "marian",
    "architectures": ["MarianMTModel"],
    "is_encoder_decoder": True,
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_encoder_decoder": False,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
    "static_position_embeddings": True,
    "pruned_heads": {},
    "quantization_config": None,
}
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu", "tanh": "tanh", "sigmoid": "sigmoid"}
LAYER_NORM_EPSILON = 1e-5


def read_architecture(settings: dict, origin: str) -> TransformerConfig:
    """Turns config.json into the shape of a model.

    Args:
        settings: The content of config.json.
        origin: The file, for error messages.

    Returns:
        The shape, without what only the other files tell: the bias of the logits and the id of the unknown.
    """
    check_fixed(settings, origin)
    read = {name: settings[name] if settings.get(name) is not None else default for name, default in DEFAULTS.items()}
    check_types(read, origin)
    if read["activation_function"] not in ACTIVATIONS:
        raise ValueError(
            f"{origin}: `activation_function` must be one of {sorted(ACTIVATIONS)}. Received: {read['activation_function']!r}"
        )
    is_shared, is_tied = read["share_encoder_decoder_embeddings"], read["tie_word_embeddings"]
    try:
        return TransformerConfig(
            source_vocabulary_size=read["vocab_size"],
            target_vocabulary_size=target_size(settings, read),
            model_dim=read["d_model"],
            feed_forward_dim=(read["encoder_ffn_dim"], read["decoder_ffn_dim"]),
            num_heads=(read["encoder_attention_heads"], read["decoder_attention_heads"]),
            num_encoder_layers=read["encoder_layers"],
            num_decoder_layers=read["decoder_layers"],
            positions="sinusoidal_halves",
            max_length=read["max_position_embeddings"],
            activation=ACTIVATIONS[read["activation_function"]],
            tie=("all" if is_shared else "decoder") if is_tied else "none",
            embedding_scale=read["scale_embedding"],
            layer_norm_epsilon=LAYER_NORM_EPSILON,
            dropout=read["dropout"],
            attention_dropout=read["attention_dropout"],
            activation_dropout=read["activation_dropout"],
            pad_id=read["pad_token_id"],
            start_id=read["decoder_start_token_id"],
            end_id=read["eos_token_id"],
            unknown_id=read["eos_token_id"],
        )
    except ValueError as error:
        raise ValueError(f"{origin} does not describe a model: {error}") from error


def target_size(settings: dict, read: dict) -> int:
    """Returns the number of target tokens, which shared embeddings have in common with the source."""
    own = settings.get("decoder_vocab_size")
    if own is None or read["share_encoder_decoder_embeddings"]:
        return read["vocab_size"]
    return own


def check_fixed(settings: dict, origin: str):
    """Raises a `ValueError` that names all fields which make a model of another kind."""
    wrong = [
        f"{name}={settings[name]!r} (only {value!r})"
        for name, value in FIXED.items()
        if settings.get(name) is not None and settings[name] != value and (settings[name] or value)
    ]
    if wrong:
        raise ValueError(
            f"{origin} describes a model that is not supported, for it would compute otherwise: {', '.join(wrong)}"
        )


def check_types(read: dict, origin: str):
    """Raises a `ValueError` for a field of the wrong kind."""
    for name, default in DEFAULTS.items():
        value = read[name]
        kinds = (int, float) if isinstance(default, float) else (type(default),)
        if not isinstance(value, kinds) or (isinstance(value, bool) and not isinstance(default, bool)):
            raise ValueError(f"{origin}: `{name}` must be of the kind of {default!r}. Received: {name}={value!r}")
