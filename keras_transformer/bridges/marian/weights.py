"""The weights of a checkpoint, in the places that our model has for them."""

import numpy as np
from keras import ops

from keras_transformer.bridges.marian.tensors import Tensors
from keras_transformer.models import Transformer, TransformerConfig

SHARED, SOURCE, TARGET, OUTPUT = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
BIAS = "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
POSITION_TOLERANCE = 2e-3  # Of sinusoids that were stored in half precision.

# Our names of a block's layers, and theirs.
LAYERS = {
    "self_attention/query": "self_attn.q_proj",
    "self_attention/key": "self_attn.k_proj",
    "self_attention/value": "self_attn.v_proj",
    "self_attention/output": "self_attn.out_proj",
    "self_attention_norm": "self_attn_layer_norm",
    "cross_attention/query": "encoder_attn.q_proj",
    "cross_attention/key": "encoder_attn.k_proj",
    "cross_attention/value": "encoder_attn.v_proj",
    "cross_attention/output": "encoder_attn.out_proj",
    "cross_attention_norm": "encoder_attn_layer_norm",
    "feed_forward/hidden": "fc1",
    "feed_forward/output": "fc2",
    "feed_forward_norm": "final_layer_norm",
}
KINDS = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}


def check_tensors(tensors: Tensors, config: TransformerConfig):
    """Raises a `ValueError` if tensors are missing, unknown, of other shapes than in config.json, or contradict each other."""
    deepest = max(config.num_encoder_layers, config.num_decoder_layers)
    if deepest > len(tensors.shapes):  # Which is not even one for each layer.
        raise ValueError(f"{tensors.origin} has {len(tensors.shapes)} tensors; config.json asks for {deepest} layers")
    needed = block_shapes(config)
    optional = {**embedding_shapes(config), **position_shapes(config), BIAS: (1, config.target_vocabulary_size)}
    missing = sorted(set(needed) - set(tensors.shapes)) + missing_embeddings(tensors, config)
    unknown = sorted(set(tensors.shapes) - set(needed) - set(optional))
    wrong = [
        f"{name} is {tensors.shapes[name]} instead of {shape}"
        for name, shape in {**needed, **optional}.items()
        if tensors.shapes.get(name, shape) != shape
    ]
    for complaint, found in {
        "is without": missing,
        "has unknown tensors:": unknown,
        "does not fit config.json:": wrong,
    }.items():
        if found:
            raise ValueError(f"{tensors.origin} {complaint} {listed(found)}. Is it damaged, or of another model?")
    check_tied(tensors, config)
    check_positions(tensors)


def listed(found: list[str], most: int = 5) -> str:
    """Lists some of many."""
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")


def block_shapes(config: TransformerConfig) -> dict[str, tuple[int, ...]]:
    """Returns the names and shapes of the tensors of all blocks."""
    shapes = {}
    for side, count in (("encoder", config.num_encoder_layers), ("decoder", config.num_decoder_layers)):
        for number in range(count):
            for ours, theirs in LAYERS.items():
                if side == "encoder" and ours.startswith("cross"):
                    continue
                name = f"model.{side}.layers.{number}.{theirs}"
                weight = layer_shape(ours, config.model_dim, getattr(config, f"{side}_feed_forward_dim"))
                shapes |= {f"{name}.weight": weight, f"{name}.bias": weight[:1]}
    return shapes


def layer_shape(layer: str, width: int, hidden_width: int) -> tuple[int, ...]:
    """Returns the shape of a layer's weight: outputs first."""
    if layer.endswith("norm"):
        return (width,)
    return {"feed_forward/hidden": (hidden_width, width), "feed_forward/output": (width, hidden_width)}.get(
        layer, (width, width)
    )


def embedding_shapes(config: TransformerConfig) -> dict[str, tuple[int, ...]]:
    """Returns the names and shapes that embeddings and the output projection can have."""
    source = (config.source_vocabulary_size, config.model_dim)
    target = (config.target_vocabulary_size, config.model_dim)
    return {SHARED: source, SOURCE: source, TARGET: target, OUTPUT: target}


def position_shapes(config: TransformerConfig) -> dict[str, tuple[int, ...]]:
    """Returns the names and shapes of the sinusoids, which some files have in them."""
    return dict.fromkeys(POSITIONS, (config.max_length, config.model_dim))


def embedding_names(config: TransformerConfig) -> dict[str, tuple[str, ...]]:
    """Returns under which names a file can have each of our matrices, the first that is there being the one."""
    if config.tie == "all":
        return {"token_embedding/embeddings": (SHARED, TARGET, SOURCE, OUTPUT)}
    if config.tie == "decoder":
        return {"source_embedding/embeddings": (SOURCE,), "target_embedding/embeddings": (TARGET, OUTPUT)}
    return {
        "source_embedding/embeddings": (SOURCE, SHARED),
        "target_embedding/embeddings": (TARGET, SHARED),
        "logits/kernel": (OUTPUT,),
    }


def missing_embeddings(tensors: Tensors, config: TransformerConfig) -> list[str]:
    """Lists the matrices that a file has under none of their names."""
    return [names[0] for names in embedding_names(config).values() if not any(name in tensors.shapes for name in names)]


def check_tied(tensors: Tensors, config: TransformerConfig):
    """Raises a `ValueError` if matrices differ that are to be one."""
    if config.tie == "none":
        return
    for names in embedding_names(config).values():
        present = [name for name in names if name in tensors.shapes]
        for other in present[1:]:
            if not np.array_equal(tensors.read(present[0]), tensors.read(other)):
                raise ValueError(
                    f"{tensors.origin}: {present[0]} and {other} differ, but config.json says that they are one matrix "
                    "(`tie_word_embeddings`, `share_encoder_decoder_embeddings`)"
                )


def check_positions(tensors: Tensors):
    """Raises a `ValueError` if stored positions are not the sinusoids that our model computes."""
    for name in POSITIONS:
        if name in tensors.shapes:
            difference = np.abs(tensors.read(name) - sinusoids(*tensors.shapes[name])).max()
            if not difference < POSITION_TOLERANCE:
                raise ValueError(f"{tensors.origin}: {name} are not sinusoids, all sines first, which is not supported")


def sinusoids(length: int, width: int) -> np.ndarray:
    """Returns positional encodings with all sines first."""
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    return np.concatenate([np.sin(angles), np.cos(angles)[:, : width // 2]], axis=1)


def has_output_bias(tensors: Tensors) -> bool:
    """Tells whether there is a bias of the logits that does something."""
    return BIAS in tensors.shapes and bool(tensors.read(BIAS).any())


def set_weights(model: Transformer, tensors: Tensors):
    """Gives a model the weights of a file."""
    embeddings = embedding_names(model.config)
    for variable in model.weights:
        if variable.path in embeddings:
            name = next(name for name in embeddings[variable.path] if name in tensors.shapes)
        else:
            name = BIAS if variable.path == "logits/bias" else block_name(variable.path)
        value = tensors.read(name)
        value = value.T if variable.path.endswith("kernel") else value
        variable.assign(ops.convert_to_tensor(value.reshape(variable.shape), variable.dtype))


def block_name(path: str) -> str:
    """Returns the name that a variable of a block has in a checkpoint."""
    block, _, rest = path.partition("/")  # "encoder_block_0", "self_attention/query/kernel"
    side, _, number = block.split("_")
    layer, _, kind = rest.rpartition("/")
    return f"model.{side}.layers.{number}.{LAYERS[layer]}.{KINDS[kind]}"
