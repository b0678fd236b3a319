import keras
import numpy as np
import pytest

import keras_transformer as kt
from tests.gradients import numpy_of
from tests.user_blocks import rotary_transformer, small_config

VARIANTS = {
    "paper": {},
    "pre": {"norm": "pre", "activation": "gelu"},
    "learned": {"positions": "learned", "max_length": 20, "tie": "decoder", "output_bias": True},
    "separate": {"tie": "none", "output_bias": True, "use_bias": False, "embedding_scale": False},
    "unequal": {"num_heads": (4, 2), "feed_forward_dim": (24, 32), "num_decoder_layers": 1, "positions": "sinusoidal_halves"},
    "two_vocabularies": {"vocabulary_size": None, "source_vocabulary_size": 30, "target_vocabulary_size": 37, "tie": "decoder"},
    "pad_starts": {"start_id": 0, "attention_dropout": 0.1},
}


def batch(random, sources=(7, 4, 1), targets=(6, 2, 5), vocabulary=30):
    """Sentences of given lengths, padded with 0."""
    source = np.zeros((len(sources), max(sources)), "int32")
    target = np.zeros((len(targets), max(targets)), "int32")
    for row, length in enumerate(sources):
        source[row, :length] = random.integers(4, vocabulary, length)
    for row, length in enumerate(targets):
        target[row, :length] = [1, *random.integers(4, vocabulary, length - 1)]
    return {"source_ids": source, "target_ids": target}


def decode_by_steps(model, inputs, length):
    encoded = model.encode(inputs["source_ids"])
    cache = model.make_cache(encoded, inputs["source_ids"] != model.config.pad_id, length)
    steps = []
    for t in range(inputs["target_ids"].shape[1]):
        logits, cache = model.decode_step(inputs["target_ids"][:, t : t + 1], np.array([t]), cache)
        steps.append(numpy_of(logits))
    return np.concatenate(steps, axis=1)


def test_inputs_and_outputs_have_the_promised_names_and_types(policy):
    model = kt.Transformer(small_config())
    assert isinstance(model, keras.Model) and set(model.input) == {"source_ids", "target_ids"}
    assert model.output.shape == (None, None, 37)
    assert model.output.dtype == "float32"
    assert model.get_layer("logits").output is model.output
    logits = model({"source_ids": np.array([[5, 6]]), "target_ids": np.array([[1, 7, 8]])})
    assert tuple(logits.shape) == (1, 3, 37)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"


def test_a_seeded_initializer_gives_every_block_weights_of_its_own():
    options = {"kernel_initializer": keras.initializers.GlorotUniform(seed=3)}
    models = [kt.Transformer(small_config(), encoder_block_options=options, decoder_block_options=options) for _ in range(2)]
    kernels = [[numpy_of(v).ravel()[:8] for v in model.weights if v.path.endswith("kernel")] for model in models]
    assert len({tuple(kernel) for kernel in kernels[0]}) == len(kernels[0])
    np.testing.assert_array_equal(*kernels)


def test_variable_paths_are_readable_and_unique():
    paths = [v.path for v in kt.Transformer(small_config(tie="none")).weights]
    assert len(set(paths)) == len(paths)
    for path in (
        "source_embedding/embeddings",
        "encoder_block_0/self_attention/query/kernel",
        "decoder_block_1/cross_attention/output/bias",
        "decoder_block_1/feed_forward/hidden/kernel",
        "logits/kernel",
    ):
        assert path in paths


@pytest.mark.proof("Body parameters are exactly 44,138,496 (base) and 176,357,376 (big)")
@pytest.mark.parametrize("preset, body", [("base", 44_138_496), ("big", 176_357_376)])
def test_body_parameters(preset, body, size, seen):
    if preset == "big" and keras.backend.backend() != "torch" and size(True, full=False):
        pytest.skip("runs in `make prove`; torch runs it always")
    # The body does not depend on the vocabulary; a small one keeps the sample quick.
    vocabulary = size(100, full=37_000)
    model = kt.Transformer.from_preset(preset, vocabulary_size=vocabulary)
    seen(f"{preset}: {model.count_params():,} in all with V = {vocabulary:,}")
    assert model.count_params() - vocabulary * model.config.model_dim == body


# Rows of table 3: what differs from base, options of the blocks, millions of parameters in the paper (base: 65).
TABLE_3 = {
    "B, d_k 16": ({}, {"key_dim": 16}, 58),
    "B, d_k 32": ({}, {"key_dim": 32}, 60),
    "C, N 2": ({"num_encoder_layers": 2, "num_decoder_layers": 2}, {}, 36),
    "C, N 4": ({"num_encoder_layers": 4, "num_decoder_layers": 4}, {}, 50),
    "C, N 8": ({"num_encoder_layers": 8, "num_decoder_layers": 8}, {}, 80),
    "C, d_model 256": ({"model_dim": 256}, {}, 28),
    "C, d_model 1024": ({"model_dim": 1024}, {}, 168),
    "C, d_ff 1024": ({"feed_forward_dim": 1024}, {}, 53),
    "C, d_ff 4096": ({"feed_forward_dim": 4096}, {}, 90),
}


@pytest.mark.proof("The differences between the rows of the paper's table 3 are ours too, to its rounding")
@pytest.mark.parametrize("row", TABLE_3)
def test_table_3(row, size, seen):
    if row not in size(["B, d_k 16", "C, N 2"], full=list(TABLE_3)):
        pytest.skip("runs in `make prove`")
    fields, options, millions = TABLE_3[row]
    vocabulary = 37_000
    model = kt.Transformer(
        kt.TransformerConfig(vocabulary_size=vocabulary, **fields), encoder_block_options=options, decoder_block_options=options
    )
    ours = (model.count_params() - 44_138_496 - vocabulary * 512) / 1e6
    seen(f"{row}: {ours:+.1f}M, the paper {millions - 65:+d}M")
    # Both the row and base are rounded to whole millions. Where the width changes, so does the vocabulary's share, and the
    # paper's vocabulary may be up to 4,000 entries larger than ours (its 65M need about 41,000).
    slack = 1.0 + abs(model.config.model_dim - 512) * 4_000 / 1e6
    assert abs(ours - (millions - 65)) <= slack


@pytest.mark.proof("A full pass equals step-by-step cached decoding, within 1e-5")
@pytest.mark.parametrize("variant", VARIANTS)
def test_cached_steps_equal_a_full_pass(variant, random, seen):
    model = kt.Transformer(small_config(**VARIANTS[variant]))
    inputs = batch(random)
    difference = np.abs(decode_by_steps(model, inputs, length=9) - numpy_of(model(inputs))).max()
    seen(f"{variant}: {difference:.1e}")
    assert difference < 1e-5


@pytest.mark.proof("A full pass equals step-by-step cached decoding, within 1e-5")
def test_cached_steps_of_a_users_model(random, seen):
    model = rotary_transformer()
    inputs = batch(random)
    difference = np.abs(decode_by_steps(model, inputs, length=9) - numpy_of(model(inputs))).max()
    seen(f"rotary attention of a user: {difference:.1e}")
    assert difference < 1e-5


@pytest.mark.proof("A full pass equals step-by-step cached decoding, within 1e-5")
def test_cached_steps_of_the_base_model(random, size, seen):
    layers = size(1, full=6)
    model = kt.Transformer.from_preset(
        "base", vocabulary_size=size(100, full=8000), num_encoder_layers=layers, num_decoder_layers=layers
    )
    inputs = batch(random, sources=(20, 9), targets=(12, 7), vocabulary=100)
    difference = np.abs(decode_by_steps(model, inputs, length=16) - numpy_of(model(inputs))).max()
    seen(f"base: {difference:.1e}")
    assert difference < 1e-5


def test_padding_of_a_batch_changes_nothing(random):
    model = kt.Transformer(small_config())
    inputs = batch(random)
    together = numpy_of(model(inputs))
    for row, (source, target) in enumerate(zip((7, 4, 1), (6, 2, 5), strict=True)):
        alone = {
            "source_ids": inputs["source_ids"][row : row + 1, :source],
            "target_ids": inputs["target_ids"][row : row + 1, :target],
        }
        np.testing.assert_allclose(numpy_of(model(alone))[0], together[row, :target], atol=1e-5)


def test_later_targets_change_nothing_before_them(random):
    model = kt.Transformer(small_config())
    inputs = batch(random)
    other = {**inputs, "target_ids": inputs["target_ids"].copy()}
    other["target_ids"][:, 3:] = 29
    assert np.array_equal(numpy_of(model(inputs))[:, :3], numpy_of(model(other))[:, :3])


def test_an_empty_source_gives_finite_logits():
    model = kt.Transformer(small_config())
    logits = model({"source_ids": np.zeros((2, 3), "int32"), "target_ids": np.array([[1, 5], [1, 6]])})
    assert np.isfinite(numpy_of(logits)).all()


@pytest.mark.proof("`fit` learns with and without jit_compile")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_fit_learns_with_and_without_compilation(random, jit_compile, size):
    if jit_compile and keras.backend.backend() == "torch" and size(True, full=False):
        pytest.skip("torch.compile takes minutes: runs in `make prove`")
    if not jit_compile and keras.backend.backend() == "jax" and size(True, full=False):
        pytest.skip("operation by operation JAX takes a minute: runs in `make prove`")
    model = kt.Transformer(small_config(num_encoder_layers=1, num_decoder_layers=1, dropout=0.0))
    source = random.integers(4, 30, (64, 5)).astype("int32")
    target = np.concatenate([np.ones((64, 1), "int32"), source], axis=1)
    labels = np.concatenate([source, np.full((64, 1), 2, "int32")], axis=1)
    model.compile(
        optimizer=keras.optimizers.Adam(0.01),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    history = model.fit({"source_ids": source, "target_ids": target}, labels, epochs=10, batch_size=16, verbose=0)
    assert history.history["loss"][-1] < 0.8 * history.history["loss"][0]


def test_the_model_rejects_input_past_its_learned_positions():
    model = kt.Transformer(small_config(positions="learned", max_length=4))
    with pytest.raises(ValueError, match="only 4 were learned"):
        model({"source_ids": np.ones((1, 5), "int32"), "target_ids": np.ones((1, 2), "int32")})


def test_quantize_reaches_every_projection(random):
    model = kt.Transformer(small_config(tie="none", num_encoder_layers=1, num_decoder_layers=1))
    inputs = batch(random)
    before = numpy_of(model(inputs))
    model.quantize("int8")
    kernels = [v for v in model.weights if v.path.endswith("kernel")]
    assert len(kernels) == (4 + 2) + (8 + 2) + 1
    assert {keras.backend.standardize_dtype(v.dtype) for v in kernels} == {"int8"}
    after = numpy_of(model(inputs))
    assert 0 < np.abs(after - before).max() < 0.1 * np.abs(before).max()


def test_lora_trains_only_the_low_rank_updates(random):
    model = kt.Transformer(small_config())
    inputs = batch(random)
    before = numpy_of(model(inputs))
    model.enable_lora(rank=2)
    assert len(model.trainable_variables) == 2 * 2 * (2 + 4)
    assert all("lora" in v.path for v in model.trainable_variables)
    np.testing.assert_allclose(numpy_of(model(inputs)), before, atol=1e-6)
    model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    frozen = numpy_of(model.get_layer("token_embedding").embeddings).copy()
    model.fit(inputs, inputs["target_ids"], verbose=0)
    assert np.array_equal(numpy_of(model.get_layer("token_embedding").embeddings), frozen)
    assert np.abs(numpy_of(model(inputs)) - before).max() > 0


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_float_ids_and_positions_are_not_rounded(positions, policy):
    model = kt.Transformer(
        small_config(
            vocabulary_size=4000, positions=positions, max_length=300, num_encoder_layers=1, num_decoder_layers=1, pad_id=3328
        )
    )
    inputs = {"source_ids": np.array([[257, 1001, 3333]]), "target_ids": np.array([[1, 2049, 3333]])}
    floats = {name: ids.astype("float32") for name, ids in inputs.items()}
    np.testing.assert_array_equal(numpy_of(model(floats)), numpy_of(model(inputs)))
    encoded = model.encode(inputs["source_ids"])
    assert not numpy_of(keras.ops.cast(model.encode(floats["source_ids"]) - encoded, "float32")).any()
    cache = model.make_cache(encoded, np.ones((1, 3), "bool"), length=260)
    step, _ = model.decode_step(inputs["target_ids"][:, 2:], np.array([257]), cache)
    same, _ = model.decode_step(floats["target_ids"][:, 2:], np.array([257.0]), cache)
    np.testing.assert_array_equal(numpy_of(same), numpy_of(step))


def test_summary_names_every_block(capsys):
    model = kt.Transformer(small_config())
    lines = []
    model.summary(print_fn=lines.append, line_length=120)
    text = "\n".join(lines)
    for name in ("source_ids", "source_mask", "token_embedding", "encoder_block_1", "decoder_block_1", "logits"):
        assert name in text


def test_a_mixed_precision_model_scales_its_loss():
    model = kt.Transformer(small_config(), dtype="mixed_float16")
    assert model.get_layer("encoder_block_0").compute_dtype == "float16"
    model.compile(optimizer="adam", loss="mse")
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
