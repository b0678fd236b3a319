"""Small translators to export: their translations differ in words and length."""

import keras
import numpy as np

import keras_transformer as kt

WORDS = ["eins", "zwei", "drei", "vier", "fünf", "Haus", "Baum", "Straße", "müde", "breit", "the", "animal", "street", "tired"]


def make_translator(max_length=40, pair=False, feed_forward_dim=32, norm="post", **arguments):
    """Makes a translator with random weights; `arguments` are those of `Transformer`."""
    keras.utils.set_random_seed(5)
    tokenizer = make_tokenizer(0, 330)
    if pair:
        tokenizer = kt.TokenizerPair(tokenizer, make_tokenizer(1, 320))
    config = kt.TransformerConfig(
        source_vocabulary_size=tokenizer.source.vocabulary_size,
        target_vocabulary_size=tokenizer.target.vocabulary_size,
        tie="none",
        output_bias=True,
        model_dim=16,
        feed_forward_dim=feed_forward_dim,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        norm=norm,
        max_length=max_length,
    )
    model = kt.Transformer(config, **arguments)
    randomize(model, 7)
    return kt.Translator(model, tokenizer, kt.SearchOptions(beam_size=3, extra_length=6))


def make_tokenizer(seed, vocabulary_size):
    return kt.Tokenizer.train(iter(texts(200, seed)), vocabulary_size=vocabulary_size, progress=False)


def randomize(model, seed):
    """Gives a model weights with which tokens depend on the source, and ends come early or late."""
    random = np.random.default_rng(seed)
    for variable in model.weights:
        scale = 0.3 if variable.path.endswith(("beta", "bias")) else 1.5 / np.sqrt(variable.shape[0])
        offset = 1.0 if variable.path.endswith(("gamma", "gate")) else 0.0
        variable.assign(offset + scale * random.normal(size=variable.shape))
    bias = next(variable for variable in model.weights if variable.path.endswith("logits/bias"))
    values = keras.ops.convert_to_numpy(bias).copy()
    values[model.config.end_id] += 3.0
    bias.assign(values)


def texts(count, seed=2, longest=9):
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(1, longest))) for _ in range(count)]
