"""Our models in CTranslate2: the same translations in float32."""

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.bridges.ctranslate2 import write_model
from keras_transformer.decoding import SearchOptions, compile_search
from tests.decoding.models import END, hypotheses_of, inputs_of, make_model, random_sources, randomize
from tests.decoding.test_beam import uncached_log_probabilities
from tests.user_blocks import rotary_transformer

ctranslate2 = pytest.importorskip("ctranslate2")

TOKENS = ["<pad>", "<s>", "</s>", "<unk>", *(f"w{number}" for number in range(4, 40))]


@pytest.mark.proof("CTranslate2 gives the translations of our search with the same weights, in float32")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "pre", "activation": "gelu"},
        {"activation": "swish", "positions": "sinusoidal_halves", "embedding_scale": False},
        {"positions": "learned", "max_length": 64, "tie": "all", "output_bias": False},
    ],
    ids=["paper", "pre-norm, gelu", "swish, halves", "learned, tied"],
)
def test_the_same_translations(options, tmp_path, size, seen):
    model = make_model(vocabulary_size=40, num_encoder_layers=2, **options)
    if model.config.output_bias:
        randomize(model, 2)
    write_model(model, TOKENS, TOKENS, tmp_path / "model")
    translator = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32")
    count = size(16, full=200)
    lengths = np.random.default_rng(0).integers(1, 12, count)
    rows, source_ids = random_sources(3, lengths, 40)
    sources = [[TOKENS[id] for id in row[:-1]] for row in rows]
    search = compile_search(model, SearchOptions(beam_size=1))
    ours = search(inputs_of(source_ids, 12))
    theirs = translator.translate_batch(sources, beam_size=1, max_decoding_length=12, return_scores=True)
    for number, result in enumerate(theirs):
        tokens = [id for id in hypotheses_of(ours, number)[0][2] if id != END]
        assert [TOKENS[id] for id in tokens] == result.hypotheses[0]

    # Any targets: each token has the same log-probability.
    targets, _ = random_sources(4, lengths, 40)
    scores = translator.score_batch(sources, [[TOKENS[id] for id in row[:-1]] for row in targets])
    differences = [
        abs(sum(score.log_probs) - uncached_log_probabilities(model, row, [(0, 0, tuple(target))])[0])
        for score, row, target in list(zip(scores, rows, targets, strict=True))[:8]
    ]
    seen(f"{count} greedy translations; log-probabilities of given targets within {max(differences):.1e}")
    assert max(differences) < 1e-3


def test_a_translator(tmp_path):
    tokenizer = kt.Tokenizer.train(iter(["eins zwei drei", "one two three"] * 9), vocabulary_size=285)
    translator = kt.Translator(kt.Transformer.from_preset("tiny", vocabulary_size=tokenizer.vocabulary_size), tokenizer)
    directory = kt.bridges.to_ctranslate2(translator, tmp_path / "model", quantization="int8")
    kt.bridges.to_ctranslate2(translator, tmp_path / "model", quantization="int8")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    theirs = ctranslate2.Translator(str(directory))
    result = theirs.translate_batch([tokenizer.tokens("eins zwei")], max_decoding_length=5)
    assert len(result[0].hypotheses[0]) <= 5


def test_only_a_model_of_ctranslate2_is_replaced(tmp_path):
    (tmp_path / "recipe.toml").write_text("of a run")
    with pytest.raises(ValueError, match=r"Only an empty folder, or one with a model.bin, is replaced"):
        write_model(make_model(vocabulary_size=40), TOKENS, TOKENS, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.toml"]


def test_what_ctranslate2_cannot_compute(tmp_path):
    with pytest.raises(ValueError, match="computes the paper's blocks only, and not RotaryEncoderBlock"):
        write_model(rotary_transformer(vocabulary_size=40), TOKENS, TOKENS, tmp_path / "model")
    with pytest.raises(ValueError, match="knows the activations"):
        write_model(make_model(vocabulary_size=40, activation="selu"), TOKENS, TOKENS, tmp_path / "model")
    model = make_model(vocabulary_size=40)
    model.parts.target_embedding.quantize("int8")
    with pytest.raises(ValueError, match="as it was before `quantize`"):
        write_model(model, TOKENS, TOKENS, tmp_path / "model")
    with pytest.raises(ValueError, match="The model has 40 source tokens, the tokenizer has 39"):
        write_model(make_model(vocabulary_size=40), TOKENS[:-1], TOKENS, tmp_path / "model")
    with pytest.raises(ValueError, match="`quantization` must be one of"):
        write_model(make_model(vocabulary_size=40), TOKENS, TOKENS, tmp_path / "model", "int3")
    assert not list(tmp_path.iterdir())
