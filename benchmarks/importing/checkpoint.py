"""A Marian checkpoint of a given shape, with random weights, written as the published ones are."""

import io
import json
from pathlib import Path

import numpy as np
import sentencepiece
from safetensors.numpy import save_file

from benchmarks.decoding.jobs import Job
from benchmarks.shapes import Shape
from keras_transformer.bridges.marian.architecture import read_architecture
from keras_transformer.bridges.marian.weights import BIAS, SHARED, block_shapes

OPUS_MT = Shape("opus-mt", 6, 512, 2048, 8, vocabulary_size=58101, batch_size=1, length=1)
SMALL = Shape("small", 1, 32, 64, 2, vocabulary_size=400, batch_size=1, length=1)
SHAPES = {shape.name: shape for shape in (OPUS_MT, SMALL)}

END_ID = 0
LOGITS = 2.0  # Standard deviation: far enough from each other that nobody confuses two tokens.


def write_checkpoint(folder: Path, shape: Shape) -> Path:
    """Writes a checkpoint whose pad, as usual, is the last token, starts translations and never occurs in them."""
    pad = shape.vocabulary_size - 1
    ids = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": END_ID, "forced_eos_token_id": END_ID}
    settings = {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "vocab_size": shape.vocabulary_size,
        "d_model": shape.model_dim,
        "activation_function": "swish",
        "scale_embedding": True,
        "max_position_embeddings": 512,
        **ids,
    }
    for side in ("encoder", "decoder"):
        settings |= {
            f"{side}_layers": shape.num_layers,
            f"{side}_attention_heads": shape.num_heads,
            f"{side}_ffn_dim": shape.feed_forward_dim,
        }
    search = {"num_beams": 4, "max_length": 512, "bad_words_ids": [[pad]], "renormalize_logits": True, **ids}
    write_json(folder / "config.json", settings)
    write_json(folder / "generation_config.json", search)
    write_vocabulary(folder, shape.vocabulary_size)
    save_file(random_tensors(read_architecture(settings, "config.json")), folder / "model.safetensors")
    return folder


def write_json(path: Path, content: dict):
    """Writes a file of JSON."""
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf8")


def write_vocabulary(folder: Path, size: int):
    """Writes a vocabulary of a few pieces and many words that no text is cut into; what is measured are ids."""
    content = io.BytesIO()
    lines = ["the animal did not cross the street because it was too tired"] * 20
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=content, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(content.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=content.getvalue())
    pieces = [processor.id_to_piece(id) for id in range(3, processor.vocab_size())]
    tokens = ["</s>", "<unk>", *pieces]
    tokens += [f"▁word{number}" for number in range(size - len(tokens) - 1)] + ["<pad>"]
    write_json(folder / "vocab.json", {token: id for id, token in enumerate(tokens)})


def random_tensors(config) -> dict[str, np.ndarray]:
    """Draws all weights under their names in a checkpoint."""
    random = np.random.default_rng(0)
    tensors = {SHARED: normal(random, (config.source_vocabulary_size, config.model_dim), LOGITS * config.model_dim**-0.5)}
    tensors[SHARED][config.pad_id] = 0
    tensors[BIAS] = normal(random, (1, config.target_vocabulary_size), 0.1)
    for name, shape in block_shapes(config).items():
        if len(shape) == 2:
            tensors[name] = normal(random, shape, shape[1] ** -0.5)
        else:
            tensors[name] = np.full(shape, 1.0 if name.endswith("norm.weight") else 0.0, "float32")
    return tensors


def normal(random, size: tuple[int, ...], deviation: float) -> np.ndarray:
    """Draws float32 numbers."""
    return random.standard_normal(size, "float32") * np.float32(deviation)


def source_rows(job: Job, vocabulary_size: int) -> list[list[list[int]]]:
    """Returns the batches of a job as ids of this vocabulary, each row with its end."""
    return [[[*row[:-1], END_ID] for row in rows] for rows in job.batches(vocabulary_size - 1)]  # Without the pad.
