"""Text in, text out: lists, options, any text at all, files."""

import inspect
import json
import random
import shutil
import typing
import warnings
from collections.abc import Sequence

import keras
import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer import folders
from keras_transformer.decoding.options import CHECKS
from keras_transformer.translator import TranslateOptions
from tests.decoding.test_options import ANYTHING
from tests.dying import full_disk, killed

WORDS = ["eins", "zwei", "drei", "vier", "fünf", "Haus", "Baum", "Straße", "müde", "breit"]


@pytest.fixture(scope="module")
def translator():
    keras.utils.set_random_seed(3)
    random = np.random.default_rng(0)
    lines = [" ".join(random.choice(WORDS, random.integers(1, 8))) for _ in range(200)]
    tokenizer = kt.Tokenizer.train(iter(lines), vocabulary_size=320)
    config = kt.TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        model_dim=16,
        feed_forward_dim=32,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_length=40,
    )
    model = kt.Transformer(config)
    for variable in model.weights:  # Larger weights than at first, so that translations differ.
        variable.assign(variable * 2.5 if variable.path.endswith("kernel") else variable)
    return kt.Translator(model, tokenizer, kt.SearchOptions(extra_length=6))


def test_a_text_and_a_list(translator):
    texts = ["eins zwei", "Haus", "müde drei Straße vier"]
    together = translator.translate(texts)
    assert [type(text) for text in together] == [str] * 3
    assert together == [translator.translate(text) for text in texts]
    assert translator.translate(texts[::-1], batch_tokens=1) == together[::-1]
    assert translator.translate([]) == []


def test_hypotheses_and_scores(translator):
    found = translator.translate("eins zwei drei", num_hypotheses=3, return_scores=True)
    assert len(found) == 3
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for one in found:
        assert sum(one.token_log_probabilities) == pytest.approx(one.log_probability, abs=1e-4)
        assert one.score == pytest.approx(one.log_probability / ((5 + len(one.tokens)) / 6) ** 0.6, abs=1e-4)
        assert len(one.tokens) == len(one.token_log_probabilities)
    assert translator.translate(["Haus"], num_hypotheses=3)[0][0] == translator.translate("Haus")


def is_of(value, kind) -> bool:
    """Tells whether a value is what an annotation says, as far as those of `Translator` need it."""
    if typing.get_origin(kind) is list:
        (item,) = typing.get_args(kind)
        return isinstance(value, list) and all(is_of(one, item) for one in value)
    return isinstance(value, kind)


def overloads(method):
    return [typing.get_type_hints(one) for one in typing.get_overloads(method)]


def test_type_checkers_know_what_translate_returns(translator):
    *exact, anything = overloads(kt.Translator.translate)
    seen = set()
    for hints in exact:
        texts = {str: "eins", Sequence[str]: ["eins", "zwei"]}[hints["texts"]]
        (with_scores,) = typing.get_args(hints["return_scores"])
        count = 2 if hints["num_hypotheses"] is int else None
        found = translator.translate(texts, num_hypotheses=count, return_scores=with_scores, beam_size=2)
        assert is_of(found, hints["return"]), hints
        seen.add(str(hints["return"]))
    assert len(exact) == 8 and len(seen) == 6  # A list of one text each, or of hypotheses of one text.
    assert anything["texts"] == str | Sequence[str] and anything["return_scores"] is bool


def test_type_checkers_know_every_argument_of_translate():
    hints = typing.get_type_hints(kt.Translator.translate)
    own = {"texts", "num_hypotheses", "return_scores", "return"}
    assert {name: kind for name, kind in hints.items() if name not in own} == typing.get_type_hints(TranslateOptions)


def test_type_checkers_know_what_score_returns(translator):
    for hints in overloads(kt.Translator.score):
        texts = {str: "eins", Sequence[str]: ["eins", "zwei"]}[hints["sources"]]
        assert hints["sources"] == hints["targets"] and is_of(translator.score(texts, texts), hints["return"])


@pytest.mark.proof("`score` of the ids that `translate` found is their log-probability")
def test_score_agrees_with_translate(translator, size, seen):
    random = np.random.default_rng(1)
    texts = [" ".join(random.choice(WORDS, random.integers(1, 8))) for _ in range(size(8, full=100))]
    found = translator.translate(texts, return_scores=True)
    tokenizer = translator.tokenizer
    sources = [[*tokenizer.encode(text), tokenizer.end_id] for text in texts]
    pieces = {piece: id for id, piece in enumerate(tokenizer.tokens(np.arange(tokenizer.vocabulary_size)))}
    targets = [[pieces[token] for token in one.tokens[:-1]] for one in found]
    scores = translator.score_ids(sources, targets)
    differences = np.abs(np.array(scores) - [one.log_probability for one in found])
    seen(f"{len(texts)} sentences, largest difference {differences.max():.1e}")
    assert differences.max() < 1e-4


def test_score_of_texts(translator):
    one = translator.score("eins zwei", "Haus Baum")
    assert one < 0
    assert translator.score(["eins zwei", "Haus"], ["Haus Baum", ""])[0] == pytest.approx(one, abs=1e-4)
    with pytest.raises(ValueError, match=r"2 sources and 1 targets"):
        translator.score(["a", "b"], ["c"])


def test_sampling_depends_on_its_seed_alone(translator):
    texts = ["eins zwei drei", "Haus Baum", "müde"]
    drawn = translator.translate(texts, temperature=1.5, seed=5)
    assert drawn == translator.translate(texts, temperature=1.5, seed=5, batch_tokens=1)
    assert drawn != translator.translate(texts, temperature=1.5, seed=6)
    several = translator.translate("eins zwei drei", temperature=1.5, seed=5, num_hypotheses=5)
    assert len(several) == 5
    assert several[0] == drawn[0]
    assert len(set(several)) > 1


def test_a_prefix(translator):
    texts = ["eins zwei", "drei"]
    assert all(text.startswith("Haus Baum") for text in translator.translate(texts, prefix="Haus Baum"))
    first, second = translator.translate(texts, prefix=["Haus", "Straße müde"])
    assert first.startswith("Haus") and second.startswith("Straße müde")
    with pytest.raises(ValueError, match=r"one for each of the 2 sources. Received: 3"):
        translator.translate(texts, prefix=["a", "b", "c"])


def test_lengths(translator):
    found = translator.translate("eins zwei", max_length=3, return_scores=True)
    assert len(found.tokens) <= 4
    assert len(translator.translate("eins zwei", max_length=0, return_scores=True).tokens) == 1


@pytest.mark.proof("Any text at all has a defined translation: no exception, valid UTF-8, empty for empty")
def test_any_text(translator, seen):
    blank = ["", " ", "\t\n", "\u200b"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert translator.translate(blank) == [""] * len(blank)
        texts = ["x", "漢字かな", "🙂🙂", "\x00\x07", "a\u0301" * 3, "\ud800 broken", b"caf\xe9", "<unk> </s> <pad>", "▁▁"]
        translations = translator.translate(texts)
    assert all(isinstance(text, str) for text in translations)
    for text in translations:
        text.encode("utf-8")
    seen(f"{len(blank)} blank and {len(texts)} unusual texts")


def test_a_long_text_is_cut_with_a_warning(translator):
    with pytest.warns(UserWarning, match=r"1 of 2 texts have more than 39 tokens, the most this model takes, and were cut"):
        found = translator.translate(["eins " * 10_000, "zwei"], return_scores=True, max_length=5)
    assert [one.truncated for one in found] == [True, False]
    assert found[1].text == translator.translate("zwei", max_length=5)


def test_a_long_text_is_cut_before_it_is_read(translator):
    far = " " * 1_000_000 + "eins"
    with pytest.warns(UserWarning, match="1 of 2 texts"):
        found = translator.translate([far, "eins"], return_scores=True, max_length=5)
    assert [one.truncated for one in found] == [True, False]
    assert found[0].text == ""
    with pytest.warns(UserWarning, match="1 of 1 translations"):
        assert translator.score(["eins"], [far]) == translator.score(["eins"], [""])


def test_save_and_load(translator, tmp_path):
    translator.save(tmp_path / "translator")
    loaded = kt.Translator.load(tmp_path / "translator")
    texts = ["eins zwei drei", "Haus"]
    assert loaded.options == translator.options
    assert loaded.translate(texts) == translator.translate(texts)
    translator.save(tmp_path / "translator")  # In the place of the old one.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["translator"]
    assert {path.name for path in (tmp_path / "translator").iterdir()} == {"model", "tokenizer.model", "translator.json"}


@pytest.mark.proof("A full disk ends `Translator.save` with an error that names the folder, and leaves the old translator")
def test_a_full_disk_leaves_the_old_one(translator, tmp_path, size, seen):
    translator.save(tmp_path / "translator")
    before = contents(tmp_path)
    largest = max(len(content) for content in before.values())
    rooms = [largest * part // size(3, full=20) for part in range(size(3, full=20))]
    for room in rooms:
        with full_disk(room), pytest.raises(OSError, match=r"untouched. Make room, or choose another place: .*/translator'"):
            translator.save(tmp_path / "translator")
        assert contents(tmp_path) == before
    kt.Translator.load(tmp_path / "translator")
    seen(f"{len(rooms)} sizes from 0 to {rooms[-1]:,} bytes of {largest:,}")


def contents(folder) -> dict:
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.proof("Killed at any moment, a process that saves a translator over another leaves one of them, whole")
def test_a_killed_save_leaves_one_whole_translator(translator, tmp_path, monkeypatch, size, seen):
    sides = translator.model, translator.tokenizer
    two = {beams: kt.Translator(*sides, kt.SearchOptions(beams)) for beams in (2, 3)}
    kernel = next(variable for variable in translator.model.weights if variable.path.endswith("output/kernel"))
    value = keras.ops.convert_to_numpy(kernel).copy()

    def save(beam_size):
        kernel.assign(value * beam_size)
        two[beam_size].save(tmp_path / "translator")

    save(2)
    moments, last, found, leftovers = random.Random(1), 100, [], 0
    while len(found) < size(6, full=100):
        if len(found) == size(3, full=50):
            monkeypatch.setattr(folders, "exchange", lambda *_: False)  # Not every file system can do it.
        moment = moments.randint(1, last)
        if not killed(moment, lambda: save(3)):
            last = moment - 1
            save(2)
            continue
        leftovers += len(list(tmp_path.iterdir())) > 1
        loaded = kt.Translator.load(tmp_path / "translator")
        found.append(loaded.options.beam_size)
        same = next(variable for variable in loaded.model.weights if variable.path == kernel.path)
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(same), value * np.float32(found[-1]))
        save(2)
        assert [path.name for path in tmp_path.iterdir()] == ["translator"]
    kernel.assign(value)
    seen(f"{len(found)} kills: {found.count(2)} times the old one, {found.count(3)} times the new one; {leftovers} leftovers")
    assert set(found) == {2, 3} and leftovers


def damaged(path, damage):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content if damage == "changed" else content[:-9])
    if damage == "removed":
        path.unlink()


@pytest.mark.parametrize("name", ["model/model.weights.h5", "model/config.json", "tokenizer.model"])
def test_damaged_files_are_refused(translator, tmp_path, name):
    translator.save(tmp_path / "whole")
    for damage in ("changed", "cut", "removed"):
        shutil.copytree(tmp_path / "whole", tmp_path / damage)
        damaged(tmp_path / damage / name, damage)
        with pytest.raises(ValueError, match=rf"{damage}/{name} is missing, or not what was written"):
            kt.Translator.load(tmp_path / damage)


def test_older_ones_without_checksums_are_loaded_and_newer_formats_refused(translator, tmp_path):
    translator.save(tmp_path / "translator")
    path = tmp_path / "translator" / "translator.json"
    settings = json.loads(path.read_text())
    assert sorted(settings["sha256"]) == ["model/config.json", "model/model.weights.h5", "tokenizer.model"]
    path.write_text(json.dumps({"format": 1, "options": settings["options"]}))
    assert kt.Translator.load(tmp_path / "translator").options == translator.options
    path.write_text(json.dumps(settings | {"format": 99, "options": {"unheard of": 1}}))
    with pytest.raises(ValueError, match=r"by a newer version.*update the package. Received: format 99; known: up to 1"):
        kt.Translator.load(tmp_path / "translator")


def test_only_a_translator_is_replaced(translator, tmp_path):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"Only an empty folder, or one with a translator.json, is replaced"):
        translator.save(tmp_path / "run")
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "checkpoints"]


def test_the_folder_of_a_run_will_do(translator, tmp_path):
    translator.save(tmp_path / "run" / "translator")
    assert kt.Translator.load(tmp_path / "run").options == translator.options


def test_folders_that_are_no_translators(translator, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no translator in .*nothing"):
        kt.Translator.load(tmp_path / "nothing")
    translator.save(tmp_path / "translator")
    path = tmp_path / "translator" / "translator.json"
    for content in ('{"format": 1, "options": {"beam": 3}}', "{", "[]", '{"format": "1"}', "[" * 100_000):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"translator.json is damaged, or was written by another version"):
            kt.Translator.load(tmp_path / "translator")


def test_a_tokenizer_that_does_not_fit(translator):
    small = kt.Transformer.from_preset("tiny", vocabulary_size=300)
    with pytest.raises(ValueError, match=r"The model has 300 source tokens, the tokenizer 3"):
        kt.Translator(small, translator.tokenizer)


def test_new_weights_are_used_at_once(translator):
    before = translator.translate("eins zwei drei", return_scores=True)
    kernel = next(variable for variable in translator.model.weights if variable.path.endswith("output/kernel"))
    value = keras.ops.convert_to_numpy(kernel).copy()
    kernel.assign(value * 1.5)
    after = translator.translate("eins zwei drei", return_scores=True)
    kernel.assign(value)
    assert before.log_probability != after.log_probability


def test_a_pair_of_vocabularies(translator):
    target = kt.Tokenizer.train(iter(["one two three four five house"] * 9), vocabulary_size=280)
    pair = kt.TokenizerPair(translator.tokenizer, target)
    config = kt.TransformerConfig(
        source_vocabulary_size=pair.source.vocabulary_size,
        target_vocabulary_size=target.vocabulary_size,
        model_dim=8,
        feed_forward_dim=16,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        tie="decoder",
    )
    both = kt.Translator(kt.Transformer(config), pair)
    assert isinstance(both.translate("eins zwei", max_length=4), str)


def test_a_long_translation_is_cut_with_a_warning(translator):
    with pytest.warns(UserWarning, match=r"1 of 2 translations have more than 45 tokens"):
        long, short = translator.score(["eins", "zwei"], ["drei " * 10_000, "drei"])
    assert long < short < 0
    with pytest.warns(UserWarning, match=r"1 of 1 translations have more than 45 tokens"):
        attention = translator.attend("eins", "drei " * 10_000)
    assert attention.cross.shape[-2] == 46  # With the end.


def small_model(tokenizer, **options):
    sizes = {"model_dim": 8, "feed_forward_dim": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    return kt.Transformer(kt.TransformerConfig(**{"vocabulary_size": tokenizer.vocabulary_size, **sizes, **options}))


def test_learned_positions_reach_to_the_last(translator):
    learned = kt.Translator(small_model(translator.tokenizer, positions="learned", max_length=21), translator.tokenizer)
    texts = [" ".join(["eins"] * count) for count in (9, 20, 30)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        together = learned.translate(texts, beam_size=2, max_length=3)
        assert together[1] == learned.translate(texts[1], beam_size=2, max_length=3)
        assert np.isfinite(learned.score(texts, texts)).all()


def test_ids_that_no_text_stands_for_are_never_written(translator):
    tokenizer = translator.tokenizer
    size = tokenizer.vocabulary_size
    model = small_model(tokenizer, vocabulary_size=size + 8, output_bias=True)
    bias = next(variable for variable in model.weights if variable.path.endswith("logits/bias"))
    bias.assign(np.where(np.arange(size + 8) < size, 0.0, 50.0))
    wide = kt.Translator(model, tokenizer)
    for options in ({"beam_size": 1}, {"beam_size": 3}, {"temperature": 1.0, "seed": 1}):
        found = wide.translate("eins zwei", max_length=4, return_scores=True, **options)
        assert found.log_probability < -40 and len(found.tokens) == len(found.token_log_probabilities)


def test_a_tokenizer_with_another_start(translator):
    with pytest.raises(ValueError, match=r"`start_id` is 5 in the model and 1 in the target tokenizer"):
        kt.Translator(small_model(translator.tokenizer, start_id=5), translator.tokenizer)


# Arguments of every kind.


def reason_for_refusal(call, *arguments, **options) -> str:
    """Returns the reason for which a call is refused; an empty text if it is not."""
    try:
        call(*arguments, **options)
    except (ValueError, TypeError) as error:
        return str(error)
    return ""


def test_every_option_with_every_kind_of_value(translator):
    """Each is refused by name, or has an answer."""
    drawn = {name: {"temperature": 1.0} for name in ("seed", "top_k", "top_p", "num_hypotheses")}
    own = [name for name in CHECKS if name in inspect.signature(translator.translate).parameters]
    calls = [
        (translator.translate, ["Haus"], [*own, "seed", "prefix", "batch_tokens"]),
        (translator.attend, ["Haus"], [*CHECKS, "seed", "prefix"]),
        (translator.score, ["Haus", "Baum"], ["batch_tokens"]),
    ]
    for call, texts, names in calls:
        for name in names:
            usual = {} if call == translator.score else {"max_length": 2, **drawn.get(name, {})}
            for value in ANYTHING:
                reason = reason_for_refusal(call, *texts, **{**usual, name: value})
                assert not reason or ("must be" in reason and "Received: " in reason), (call, name, value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda it: it.translate("a", beam_size=10**9), "`beam_size` must be an integer from 1 to 1024"),
        (lambda it: it.translate("a", temperature=1.0, num_hypotheses=10**9), "`num_hypotheses` must be an integer from 1 to"),
        (lambda it: it.translate("a", temperature=1.0, max_length=10**12), "`max_length` must be `None`, or an integer from"),
        (lambda it: it.translate("a", temperature=1.0, seed=-1), "`seed` must be an integer from 0 to .*seed=-1"),
        (lambda it: it.translate("a", batch_tokens=0), "`batch_tokens` must be an integer from 1 to"),
        (lambda it: it.translate(5), "`texts` must be a text, or a list of them. Received: 5 of type int"),
        (lambda it: it.translate(None), "`texts` must be a text, or a list of them. Received: None"),
        (lambda it: it.translate([None]), "Text must be a string, or bytes in UTF-8. Received: None"),
        (lambda it: it.translate("a", prefix=5), "`prefix` must be a text, or a list of them. Received: 5"),
        (lambda it: it.score(5, ["a"]), "`sources` must be a text, or a list of them. Received: 5"),
        (lambda it: it.score(["a"], None), "`targets` must be a text, or a list of them. Received: None"),
        (lambda it: it.score("a", ["b"]), "Text must be a string, or bytes in UTF-8. Received: .'b'."),
        (lambda it: it.attend(5), "`attend` takes one text"),
        (lambda it: it.attend("a", banned_ids=[10**6]), "`banned_ids` must be ids of the vocabulary that the model writes"),
    ],
)
def test_arguments_that_cannot_be_meant(translator, call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(translator)


def test_texts_from_iterators(translator):
    assert translator.score(iter(["eins"]), iter(["Haus"])) == translator.score(["eins"], ["Haus"])
    assert translator.translate(iter(["eins"])) == translator.translate(["eins"])


def test_default_options_of_another_kind(translator):
    with pytest.raises(ValueError, match=r"`options` must be `SearchOptions`.*Received: options={'beam_size': 3}"):
        kt.Translator(translator.model, translator.tokenizer, {"beam_size": 3})


def test_default_bans_that_cannot_be_kept(translator):
    size = translator.tokenizer.vocabulary_size
    model = small_model(translator.tokenizer, vocabulary_size=size + 8)
    with pytest.raises(ValueError, match="The end of translations cannot be banned"):
        kt.Translator(model, translator.tokenizer, kt.SearchOptions(banned_ids=range(size)))
    with pytest.raises(ValueError, match=f"from 0 to {size + 7}"):
        kt.Translator(model, translator.tokenizer, kt.SearchOptions(banned_ids=[size + 8]))
    but_the_end = [id for id in range(size) if id != model.config.end_id]
    banned = kt.Translator(model, translator.tokenizer, kt.SearchOptions(banned_ids=but_the_end))
    assert banned.translate(["eins", "zwei"]) == banned.translate(["eins", "zwei"], temperature=1.0) == ["", ""]


def test_a_wide_beam_for_many_texts(translator):
    texts = ["eins zwei", "Haus", "müde drei"] * 3
    assert translator.translate(texts, beam_size=200, max_length=2) == [
        translator.translate(text, beam_size=200, max_length=2) for text in texts
    ]
