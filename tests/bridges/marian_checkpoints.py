"""Marian checkpoints as Hugging Face publishes them, made with transformers: small, and with random weights."""

import functools
import io
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import sentencepiece

from tests.text.samples import sentences

CODES = [">>deu<<", ">>fra<<", ">>zho_Hans<<"]
END, UNKNOWN, PAD = "</s>", "<unk>", "<pad>"
RISING = 5  # A dimension of 32 whose sine rises over the first 28 positions.


@dataclass(frozen=True)
class Shape:
    """A checkpoint to make: fields of `MarianConfig` and of `GenerationConfig`, and how it is written."""

    name: str
    config: dict
    generation: dict = field(default_factory=dict)
    separate_vocabularies: bool = False
    has_bias: bool = True
    bans_pad: bool = True
    is_older: bool = False  # The settings of the search in config.json, and the weights in pytorch_model.bin.


SHAPES = [
    Shape(
        "2+2, relu, as published",
        {"encoder_layers": 2, "decoder_layers": 2, "activation_function": "relu", "scale_embedding": True},
        {"renormalize_logits": True},
    ),
    Shape(
        "6+6, swish, with banned words",
        {"encoder_layers": 6, "decoder_layers": 6, "activation_function": "swish", "scale_embedding": True},
        {"bad_words_ids": [[5], [11]], "length_penalty": 0.7, "min_length": 4},
    ),
    Shape(
        "3+2, gelu, separate vocabularies, no bias, no bans",
        {"encoder_layers": 3, "decoder_layers": 2, "activation_function": "gelu", "share_encoder_decoder_embeddings": False},
        {"early_stopping": True},
        separate_vocabularies=True,
        has_bias=False,
        bans_pad=False,
    ),
    Shape(
        "2+4, swish, unequal heads and widths",
        {
            "encoder_layers": 2,
            "decoder_layers": 4,
            "activation_function": "swish",
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 48,
            "scale_embedding": True,
        },
        {"early_stopping": True, "renormalize_logits": True, "suppress_tokens": [7, 8]},
    ),
    Shape(
        "4+1, relu, separate vocabularies, nothing tied",
        {
            "encoder_layers": 4,
            "decoder_layers": 1,
            "activation_function": "relu",
            "share_encoder_decoder_embeddings": False,
            "tie_word_embeddings": False,
        },
        {"early_stopping": "never", "length_penalty": 0.0},
        separate_vocabularies=True,
    ),
    Shape(
        "5+3, gelu, older files",
        {"encoder_layers": 5, "decoder_layers": 3, "activation_function": "gelu", "scale_embedding": True},
        has_bias=False,
        is_older=True,
    ),
]


# === Vocabularies ===


@functools.cache
def piece_model(side: str) -> bytes:
    """Trains a SentencePiece model without pieces for bytes, as OPUS-MT's are; each side has pieces the other does not have."""
    lines = sentences(300, seed={"source": 1, "target": 2}[side])
    lines = [line.replace("ß", "ss") for line in lines] if side == "source" else [line.replace("w", "v") for line in lines]
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=content, vocab_size=150, hard_vocab_limit=False, minloglevel=2
    )
    return content.getvalue()


def vocabulary(sides: tuple[str, ...], codes: bool = True) -> dict[str, int]:
    """Numbers the pieces of one side or of both as OPUS-MT does: the end first, the padding last."""
    processors = [sentencepiece.SentencePieceProcessor(model_proto=piece_model(side)) for side in sides]
    pieces = [processor.id_to_piece(id) for processor in processors for id in range(3, processor.vocab_size())]
    tokens = [END, UNKNOWN, *(CODES if codes else ()), *sorted(set(pieces)), PAD]
    return {token: id for id, token in enumerate(tokens)}


def write_vocabularies(folder: Path, is_separate: bool, size: int | None = None) -> tuple[int, int]:
    """Writes what a tokenizer needs and returns the sizes of both vocabularies."""
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(piece_model(side))
    settings = {"source_lang": "en", "target_lang": "de", "tokenizer_class": "MarianTokenizer"}
    if is_separate:
        # Both pad with the same id, so the shorter one is filled up.
        tables = [vocabulary((side,), codes=False) for side in ("source", "target")]
        size = size or max(map(len, tables))
        names = ("vocab.json", "target_vocab.json")
        settings["separate_vocabs"] = True
    else:
        tables, names = [vocabulary(("source", "target"))], ("vocab.json",)
        size = size or len(tables[0])
    for table, name in zip(tables, names, strict=True):
        tokens = [*list(table)[:-1], *(f"▁filler{number}" for number in range(size - len(table))), PAD]
        text = json.dumps({token: id for id, token in enumerate(tokens)}, ensure_ascii=False)
        (folder / name).write_text(text, encoding="utf8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf8")
    return size, size


# === Checkpoints ===


def write_checkpoint(folder: Path, shape: Shape, seed: int = 3) -> Path:
    """Writes a checkpoint with random weights, whose translations end early or late or at the limit."""
    from transformers import GenerationConfig, MarianConfig, MarianMTModel

    folder.mkdir(parents=True, exist_ok=True)
    source_size, target_size = write_vocabularies(folder, shape.separate_vocabularies)
    pad = source_size - 1
    sizes = {
        "d_model": 32,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
    }
    config = MarianConfig(
        **{
            **sizes,
            "vocab_size": source_size,
            "decoder_vocab_size": target_size,
            "max_position_embeddings": 64,
            "pad_token_id": pad,
            "decoder_start_token_id": pad,
            "eos_token_id": 0,
            "forced_eos_token_id": 0,
            **shape.config,
        }
    )
    model = MarianMTModel(config)
    randomize(model, seed, shape.has_bias)
    bans = ([[pad]] if shape.bans_pad else []) + shape.generation.get("bad_words_ids", [])
    settings = {"num_beams": 4, "max_length": 28, **shape.generation, **({"bad_words_ids": bans} if bans else {})}
    ids = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "bos_token_id": 0, "forced_eos_token_id": 0}
    model.generation_config = GenerationConfig(**ids, **settings)
    model.save_pretrained(folder)
    if shape.is_older:
        make_older(folder, model, settings)
    return folder


def randomize(model, seed: int, has_bias: bool):
    """Gives a model weights with which translations depend on the source, hardly repeat themselves, and end.

    The last normalization turns some signs, or the likeliest token would be the one before it, whose embedding it shares. One
    dimension, which layers do not write to, holds a slow sine of the position; the end becomes likelier with it.
    """
    import torch

    random = np.random.default_rng(seed)
    last_norm = f"model.decoder.layers.{model.config.decoder_layers - 1}.final_layer_norm.weight"
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                continue
            value = random_weight(random, name, tuple(parameter.shape))
            if name == last_norm:
                value *= np.where(np.arange(len(value)) == RISING, 1, random.choice([-1, 1], len(value)))
            parameter.copy_(torch.from_numpy(value))
        gain = 2.5 * (2.5 if model.config.scale_embedding else 1) * (1 if model.config.tie_word_embeddings else 2)
        model.lm_head.weight[0, RISING] = gain
        if has_bias:
            bias = 0.5 * random.normal(size=tuple(model.final_logits_bias.shape))
            bias[0, 0] = -1.0
            model.final_logits_bias.copy_(torch.from_numpy(bias))


def random_weight(random, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Draws a weight; in the dimension that tells the position, it leaves things as they are."""
    is_norm = name.endswith("norm.weight")
    scale = 0.2 if len(shape) == 1 else (0.8 if "layers" in name else 1.5) / np.sqrt(shape[-1])
    value = float(is_norm) + scale * random.normal(size=shape)
    if name.endswith(("out_proj.weight", "fc2.weight", "out_proj.bias", "fc2.bias")):
        value[RISING] = 0.0
    if "layers" not in name:
        value[:, RISING] = 0.0
    if "decoder" in name and "norm" in name:
        value[RISING] = 1.5 if is_norm else 0.0
    return value


def make_older(folder: Path, model, settings: dict):
    """Writes the settings and weights of a checkpoint as older ones have them, sinusoids included."""
    import torch

    (folder / "generation_config.json").unlink()
    (folder / "model.safetensors").unlink()
    config = json.loads((folder / "config.json").read_text())
    legacy = {"static_position_embeddings": True, "normalize_before": False, "add_final_layer_norm": False, "_num_labels": 3}
    (folder / "config.json").write_text(json.dumps({**config, **settings, **legacy}))
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
