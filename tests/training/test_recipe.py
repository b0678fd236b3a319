"""Recipes: what they may say, and what is said to those who misspell it."""

import dataclasses
import itertools
import math
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keras_transformer as kt
from training.building import check_recipe
from training.recipe import FOLDER, TABLES, Recipe, difference, find_recipe, keys_of, read_recipe, read_value, to_toml
from training.recipe_tables import ModelTable

RECIPES = sorted(file.stem for file in FOLDER.glob("*.toml"))
SMALL = """
[data]
train_source = "train.en"
train_target = ["train.de"]

[model]
preset = "tiny"

[optimization]
epochs = 3
"""

CHARACTERS = "".join(map(chr, range(0x250))) + "\u2028\u2029\ufeff\ufffe\U0001f600\U0010ffff"
NUMBERS = (0, -1, 3, 10**400, 0.1, -0.0, 1e16, 1e-300, 5e-324, math.inf, -math.inf, math.nan)
STRINGS = (
    "",
    CHARACTERS,
    '"""',
    "'''",
    "\\",
    "a\r\nb",
    "\x7f.tsv",
    "none",
    "inf",
    "true",
    "2016-01-01",
    "[1]",
    "{a = 1}",
    "# c",
)
ODD = [*NUMBERS, *STRINGS, True, [3, 4], list(STRINGS)]
VALUES = st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([*NUMBERS, *STRINGS])


def same(found, expected) -> bool:
    """Compares with types, signs of zero and NaN; TOML knows lists only."""

    def as_lists(value):
        return [as_lists(one) for one in value] if isinstance(value, list | tuple) else value

    return repr(as_lists(found)) == repr(as_lists(expected))


@pytest.fixture
def write(tmp_path):
    """Writes a recipe and returns its path."""

    def write(text=SMALL, name="small.toml"):
        (tmp_path / name).write_text(text, encoding="utf8")
        return tmp_path / name

    return write


class TestShippedRecipes:
    def test_there_are_those_of_the_documents(self):
        assert {
            "pronouns",
            "multi30k-tiny",
            "multi30k-tiny-best",
            "multi30k-small",
            "wmt14-en-de-base",
            "wmt14-en-de-big",
        } <= set(RECIPES)

    @pytest.mark.parametrize("name", RECIPES)
    def test_is_valid_and_says_command_cost_and_result(self, name):
        check_recipe(read_recipe(name))
        head = (FOLDER / f"{name}.toml").read_text(encoding="utf8").split("\n[")[0]
        assert f"keras-transformer train {name}" in head
        for word in ("#   command   ", "#   cost      ", "#   result    "):
            assert word in head

    def test_the_paper_is_followed(self):
        base, big = read_recipe("wmt14-en-de-base"), read_recipe("wmt14-en-de-big")
        for recipe, updates, averaged in ((base, 100_000, 5), (big, 300_000, 20)):
            table = recipe.optimization
            assert (table.max_updates, table.average_checkpoints) == (updates, averaged)
            assert (table.warmup_updates, table.factor, table.schedule) == (4000, 1.0, "paper")
            assert table.label_smoothing == 0.1 and table.tokens_per_update == 25_000
            assert recipe.batches_per_update * recipe.data.batch_tokens == 25_000
            assert (recipe.evaluation.beam_size, recipe.evaluation.length_penalty) == (4, 0.6)
            assert recipe.tokenizer.vocabulary_size == 37_000

    def test_multi30k_is_measured_as_published(self):
        """The head of the recipe says how to train as published, too; these settings are read as they stand there."""
        head = find_recipe("multi30k-tiny").read_text(encoding="utf8").partition("[data]")[0]
        settings = re.findall(r"--set (\S+)", head.partition("As published")[2])
        recipe = read_recipe("multi30k-tiny", settings)
        assert recipe.batches_per_update * recipe.data.batch_tokens == 8192
        assert (recipe.optimization.peak_rate, recipe.optimization.warmup_updates) == (0.005, 2000)
        assert (recipe.model.norm, recipe.model.dropout, recipe.tokenizer.vocabulary_size) == ("post", 0.3, 10_000)
        recipe = read_recipe("multi30k-tiny")
        assert (recipe.evaluation.beam_size, recipe.evaluation.length_penalty, recipe.evaluation.penalty) == (5, 1, "power")


class TestReading:
    def test_defaults_fill_what_is_not_said(self, write):
        recipe = read_recipe(write())
        assert recipe.name == "small"
        assert recipe.optimization.epochs == 3 and recipe.optimization.label_smoothing == 0.1
        assert recipe.tokenizer.vocabulary_size == 8000 and recipe.data.num_shapes == 16

    def test_paths_are_relative_to_the_recipe(self, write, tmp_path):
        assert read_recipe(write()).data.files("train") == ((tmp_path / "train.en",), (tmp_path / "train.de",))

    def test_files_are_in_the_folder_if_there_is_one(self, write, tmp_path):
        recipe = read_recipe(write(SMALL.replace("[data]", '[data]\nfolder = "text"')))
        assert recipe.data.files("train")[0] == (tmp_path / "text" / "train.en",)
        recipe = read_recipe(write(), ["data.folder=/elsewhere"])
        assert recipe.data.files("train")[1] == (Path("/elsewhere/train.de"),)

    def test_a_recipe_is_found_by_name_or_path(self, write):
        assert find_recipe("pronouns") == FOLDER / "pronouns.toml"
        assert find_recipe(write()) == write()
        with pytest.raises(ValueError, match=r"no such recipe: pronoun. Did you mean `pronouns`"):
            find_recipe("pronoun")

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("epochs = 3", "epoch = 3", r"small.toml, table \[optimization\]: there is no key `epoch`. Did you mean `epochs`"),
            ("epochs = 3", "epochs = 0", "`epochs`: expected a positive integer"),
            ("epochs = 3", "epochs = 2.5", "`epochs`: expected an integer"),
            ("epochs = 3", "xla = true", "Say when training ends: `epochs`, `max_updates`, or both"),
            ("epochs = 3", "epochs = 3\nxla = 1", "`xla`: expected true or false. Received: xla = 1"),
            ("epochs = 3", "epochs = 3\nlabel_smoothing = 1.0", "expected a number from 0 to below 1"),
            ("epochs = 3", "epochs = 3\nseed = -1", "`seed`: expected an integer that is not negative"),
            ("epochs = 3", 'epochs = 3\nschedule = "inverse"', "`schedule`: expected one of .* Did you mean `inverse_sqrt`"),
            ("epochs = 3", 'epochs = 3\nschedule = "inverse_sqrt"', "needs a `peak_rate`"),
            ("epochs = 3", "epochs = 3\npeak_rate = 0.1", "scale it with `factor`"),
            ("epochs = 3", "epochs = 3\ncooldown_updates = 9", r"`cooldown_updates` are the last ones of `max_updates`"),
            ("epochs = 3", "epochs = 3\nr_drop = 0", "`r_drop`: expected a positive number"),
            ("epochs = 3", "epochs = 3\nema_momentum = 0.99", "Choose one average"),
            ("epochs = 3", 'epochs = 3\ndtype = "mixed_float8"', r"Did you mean `mixed_float16`\? Received: dtype"),
            ('preset = "tiny"', "num_heads = [4, 4, 4]", "a list of two"),
            ("[model]", "[modle]", r"there is no table \[modle\]. Did you mean `model`"),
            ("[model]", "[colour]", r"There are data, tokenizer, model"),
            ("[model]", "[evaluation]\npatience = 'x'\n[model]", "`patience`: expected an integer"),
            ('train_target = ["train.de"]', "", "`train_target` is missing"),
            ("epochs = 3", "epochs =", "not valid TOML"),
            pytest.param("epochs = 3", f"epochs = {'[' * 9999}", "not valid TOML", id="a deep list"),
            (
                'preset = "tiny"',
                "layer_norm_epsilon = inf",
                "`layer_norm_epsilon`: expected a finite number. Received: .* = inf",
            ),
            ('preset = "tiny"', "dropout = nan", "`dropout`: expected a finite number"),
            ("[model]", "[evaluation]\nlength_penalty = -inf\n[model]", "`length_penalty`: expected a finite number"),
            ("epochs = 3", "epochs = 3\nfactor = inf", "`factor`: expected a positive number"),
        ],
    )
    def test_what_is_wrong_is_said(self, write, old, new, message):
        with pytest.raises(ValueError, match=message):
            read_recipe(write(SMALL.replace(old, new)))

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('preset = "tiny"', "num_heads = 7", r"Table \[model\]: .*num_heads"),
            ('preset = "tiny"', 'norm = "both"', r"Table \[model\]: .*norm"),
            ("[model]", "[tokenizer]\nshared = false\n[model]", "cannot serve two vocabularies. Say `tie = .decoder.`"),
            ("[model]", "[evaluation]\ntokenize = 'words'\n[model]", r"Table \[evaluation\]: .*tokenize.*words"),
            ("[model]", "[evaluation]\nearly_stopping = 'speed'\n[model]", r"Table \[evaluation\]: .*speed"),
            # Without a validation set:
            (
                "[model]",
                "[evaluation]\nearly_stopping = 'val_bleu'\n[model]",
                "There are loss, token_accuracy, perplexity",
            ),
            (
                "[model]",
                "[evaluation]\nearly_stopping = 'accuracy'\n[model]",
                "Did you mean `token_accuracy`",
            ),
            ("[data]", "[data]\nbatch_tokens = 0", r"Table \[data\]: `batch_tokens`"),
        ],
    )
    def test_what_cannot_be_meant_is_said_before_any_work(self, write, old, new, message):
        recipe = read_recipe(write(SMALL.replace(old, new)))
        with pytest.raises(ValueError, match=message):
            check_recipe(recipe)

    @pytest.mark.parametrize(("name", "nearest"), [("bleu", "val_bleu"), ("BLEU", "val_bleu"), ("val_los", "val_loss")])
    def test_early_stopping_by_what_is_not_measured_is_said_before_any_work(self, name, nearest):
        with pytest.raises(ValueError, match=rf"`early_stopping`: .* Did you mean `{nearest}`\? Received: .*'{name}'"):
            check_recipe(read_recipe("pronouns", [f"early_stopping={name}"]))
        check_recipe(read_recipe("pronouns", [f"early_stopping={nearest}"]))

    @pytest.mark.parametrize("name", ["my recipe", "2026"])
    def test_a_name_that_no_server_takes_is_said_before_any_work(self, write, name):
        path = write(name=f"{name}.toml")
        check_recipe(read_recipe(path))
        with pytest.raises(ValueError, match=rf"Table \[export\]: .* name of the recipe's file .*Received: '{name}'"):
            check_recipe(read_recipe(path, ["saved_model=true"]))


class TestSettings:
    def test_the_last_word_is_theirs(self, write):
        recipe = read_recipe(write(), ["optimization.epochs=7", "model.dropout = 0.2", "num_shapes=none", "xla=true"])
        assert (recipe.optimization.epochs, recipe.model.dropout, recipe.data.num_shapes) == (7, 0.2, None)
        assert recipe.optimization.xla is True

    def test_what_is_no_toml_is_a_string(self, write, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert read_recipe(write(), ["data.folder=some where"]).data.folder == tmp_path / "some where"
        assert read_recipe(write(), ["data.folder=2016"]).data.folder == tmp_path / "2016"
        assert read_recipe(write(), ['tokenizer.model="unigram"']).tokenizer.model == "unigram"

    def test_lists(self, write):
        recipe = read_recipe(write(), ['train_source=["/a.en", "/b.en"]', "model.num_heads=[4, 2]"])
        assert recipe.data.train_source == (Path("/a.en"), Path("/b.en"))
        assert recipe.model.num_heads == (4, 2)

    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            ("epochs", "--set needs key=value"),
            ("epoch=3", r"--set epoch: there is no such key. Did you mean `epochs`"),
            ("data.epochs=3", "--set data.epochs: there is no such key"),
            ("batch_tokens=3", "several of this name. Say which: data.batch_tokens, evaluation.batch_tokens"),
            ("epochs=three", r"--set optimization.epochs: expected an integer, or \"none\". Received: epochs = 'three'"),
        ],
    )
    def test_what_is_wrong_is_said(self, write, setting, message):
        with pytest.raises(ValueError, match=message):
            read_recipe(write(), [setting])


class TestWriting:
    @pytest.mark.parametrize("name", RECIPES)
    def test_what_was_written_reads_the_same(self, name, write):
        recipe = read_recipe(name)
        again = read_recipe(write(recipe.to_toml(), f"{name}.toml"))
        assert again == recipe
        assert difference(recipe, again, "a", "b") == ""

    def test_odd_values_survive(self, write):
        settings = ['data.folder="/a \\"b\\"/ü"', "num_shapes=none", "model.num_heads=[4, 2]", "clip_norm=1e-5"]
        recipe = read_recipe(write(), settings)
        assert read_recipe(write(recipe.to_toml())) == recipe

    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(st.recursive(VALUES, lambda values: st.lists(values).map(tuple), max_leaves=8))
    def test_any_value_reads_the_same(self, value):
        assert same(tomllib.loads(f"value = {to_toml(value)}")["value"], value)

    def test_whatever_a_key_takes_it_takes_again(self):
        """A run writes its recipe when it begins and reads it when it goes on."""
        taken = 0
        for kind, value in itertools.product(TABLES.values(), ODD):
            for key in keys_of(kind):
                try:
                    read = read_value(kind, key, value)
                except ValueError:
                    continue
                again = tomllib.loads(f"value = {to_toml(read)}")["value"]
                assert same(read_value(kind, key, again), read), (key, value)
                taken += 1
        assert taken > 200

    def test_what_no_toml_can_hold_is_said(self, write):
        recipe = read_recipe(write(), ["data.folder=/not-\udcff-UTF-8"])
        with pytest.raises(ValueError, match=r"files are UTF-8, and this .* Received: '/not-\\udcff-UTF-8'"):
            recipe.to_toml()

    def test_the_difference_shows_what_changed_and_nothing_else(self, write):
        old, new = read_recipe(write()), read_recipe(write(), ["epochs=4", "clip_norm=1.0"])
        assert difference(old, new, "then", "now").splitlines() == [
            "--- then",
            "+++ now",
            "-epochs = 3",
            "+epochs = 4",
            "+clip_norm = 1.0",
        ]


def test_every_field_of_the_config_can_be_said():
    set_by_the_tokenizer = {"source_vocabulary_size", "target_vocabulary_size", "pad_id", "start_id", "end_id", "unknown_id"}
    fields = {field.name for field in dataclasses.fields(kt.TransformerConfig)} - set_by_the_tokenizer
    assert {field.name for field in dataclasses.fields(ModelTable)} == fields | {"preset", "start_from"}


@pytest.mark.parametrize(("wanted", "batch", "count"), [("none", 4096, 1), (4096, 4096, 1), (4097, 4096, 2), (25_000, 6250, 4)])
def test_batches_of_an_update(write, wanted, batch, count):
    recipe = read_recipe(write(), [f"tokens_per_update={wanted}", f"data.batch_tokens={batch}"])
    assert isinstance(recipe, Recipe) and recipe.batches_per_update == count
