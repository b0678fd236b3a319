"""Weights of a Transformer that ends its translations where the source says, and is random otherwise.

Speed is compared fairly only if everybody's translations end at the same, different, lengths, and random weights do not end
at all. So some dimensions of the model are set aside for a length, which random layers neither read nor write:

- Every source word carries one of the lengths, one-hot. All words of a sentence carry the same.
- Every target position carries all lengths that it has reached: 1 for those, -1 for the others.
- The cross-attention of the last decoder block, whatever it looks at, adds the former to the latter. A length that the source
  asks for and the position has reached stands out, the last feed-forward network tells it by a threshold, and raises a flag.
- The flag is what the end's logit is made of: far below all others, or far above.
"""

import numpy as np

from benchmarks.decoding.jobs import END_ID, NUM_LENGTHS, SHORTEST, length_classes
from benchmarks.random_batches import FIRST_WORD_ID
from benchmarks.shapes import Shape

NUM_POSITIONS = 512  # Of which most jobs use few.
CODE = slice(0, NUM_LENGTHS)
FLAG = NUM_LENGTHS
ZERO = NUM_LENGTHS + 1  # Carries nothing: what it shows is what normalizations have subtracted everywhere.
ONE = NUM_LENGTHS + 2  # Carries on every target position what a length carries that was reached, and fades as they do.
RESERVED = slice(0, NUM_LENGTHS + 3)

BRANCH = 0.5  # Of the sublayers' outputs; what is carried past them fades by less.
LOGITS = 2.0  # Standard deviation.
WORD_CODE = 5.0  # Length on a source word, against 1 on a position.
REACHED = 2.0
CODE_GAIN, THRESHOLD, SHARPNESS, FLAG_GAIN = 0.5, 1.75, 8.0, 3.0
END_GAIN = 20.0


def make_weights(shape: Shape) -> dict[str, np.ndarray]:
    """Returns all weights under the paths that they have in our model."""
    random = np.random.default_rng(0)
    weights = embeddings(random, shape)
    for number in range(shape.num_layers):
        for block, attentions in (("encoder", ["self"]), ("decoder", ["self", "cross"])):
            name = f"{block}_block_{number}"
            for attention in attentions:
                weights |= attention_weights(random, f"{name}/{attention}_attention", shape.model_dim)
            weights |= feed_forward_weights(random, f"{name}/feed_forward", shape)
    last = f"decoder_block_{shape.num_layers - 1}"
    carry_length(weights, f"{last}/cross_attention")
    raise_flag(weights, f"{last}/feed_forward")
    return weights


def embeddings(random, shape: Shape) -> dict[str, np.ndarray]:
    """Makes words and positions with their lengths, and the logits."""
    width, vocabulary_size = shape.model_dim, shape.vocabulary_size
    source, target = (normal(random, (vocabulary_size, width), width**-0.5) for _ in range(2))
    source[:, RESERVED] = target[:, RESERVED] = 0
    source[FIRST_WORD_ID:, CODE] = WORD_CODE * width**-0.5 * np.eye(NUM_LENGTHS)[length_classes(vocabulary_size)]
    positions = sinusoids(NUM_POSITIONS, width)
    positions[:, RESERVED] = 0
    reached = np.arange(NUM_POSITIONS)[:, None] >= SHORTEST - 1 + np.arange(NUM_LENGTHS)
    target_positions = positions.copy()
    target_positions[:, CODE] = REACHED * np.where(reached, 1, -1)
    target_positions[:, ONE] = REACHED
    logits = normal(random, (width, vocabulary_size), LOGITS * width**-0.5)
    logits[RESERVED] = logits[:, END_ID] = 0
    logits[FLAG, END_ID], logits[ZERO, END_ID] = END_GAIN, -END_GAIN
    return {
        "source_embedding/embeddings": source,
        "target_embedding/embeddings": target,
        "source_positions/embeddings": positions,
        "target_positions/embeddings": target_positions,
        "logits/kernel": logits,
    }


def attention_weights(random, name: str, width: int) -> dict[str, np.ndarray]:
    """Makes the four maps of an attention and its normalization."""
    weights = normalization(f"{name}_norm", width)
    for part in ("query", "key", "value", "output"):
        kernel = normal(random, (width, width), width**-0.5)
        if part == "output":
            kernel *= BRANCH
            kernel[:, RESERVED] = 0
        else:
            kernel[RESERVED] = 0
        weights |= {f"{name}/{part}/kernel": kernel, f"{name}/{part}/bias": np.zeros(width, "float32")}
    return weights


def feed_forward_weights(random, name: str, shape: Shape) -> dict[str, np.ndarray]:
    """Makes a feed-forward network and its normalization."""
    width, hidden_width = shape.model_dim, shape.feed_forward_dim
    hidden = normal(random, (width, hidden_width), width**-0.5)
    output = normal(random, (hidden_width, width), BRANCH * hidden_width**-0.5)
    hidden[RESERVED] = output[:, RESERVED] = 0
    return {
        f"{name}/hidden/kernel": hidden,
        f"{name}/hidden/bias": np.zeros(hidden_width, "float32"),
        f"{name}/output/kernel": output,
        f"{name}/output/bias": np.zeros(width, "float32"),
        **normalization(f"{name}_norm", width),
    }


def carry_length(weights: dict, name: str):
    """Lets a cross-attention add the length that the source asks for."""
    weights[f"{name}/query/kernel"] *= 0.25  # Looks at all words about equally: the end carries no length.
    value, output = weights[f"{name}/value/kernel"], weights[f"{name}/output/kernel"]
    value[:, CODE] = output[CODE] = 0
    value[CODE, CODE] = np.eye(NUM_LENGTHS)
    output[CODE, CODE] = CODE_GAIN * np.eye(NUM_LENGTHS)


def raise_flag(weights: dict, name: str):
    """Lets a feed-forward network raise the flag where a length is both asked for and reached."""
    hidden, output = weights[f"{name}/hidden/kernel"], weights[f"{name}/output/kernel"]
    hidden[:, CODE] = output[CODE] = 0
    hidden[CODE, CODE] = SHARPNESS * np.eye(NUM_LENGTHS)
    hidden[ONE, CODE] = -SHARPNESS * THRESHOLD
    hidden[ZERO, CODE] = SHARPNESS * (THRESHOLD - 1)
    output[CODE, FLAG] = FLAG_GAIN
    weights[f"{name}/output/bias"][FLAG] = -FLAG_GAIN


def normalization(name: str, width: int) -> dict[str, np.ndarray]:
    """Makes a layer normalization that only normalizes."""
    return {f"{name}/gamma": np.ones(width, "float32"), f"{name}/beta": np.zeros(width, "float32")}


def normal(random, size: tuple[int, ...], deviation: float) -> np.ndarray:
    """Draws float32 numbers."""
    return random.standard_normal(size, "float32") * np.float32(deviation)


def sinusoids(length: int, width: int) -> np.ndarray:
    """Returns the paper's positional encoding."""
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, width).astype("float32")
