"""A recipe for text files of one's own, and pairs that are held out of them."""

import random

import pytest

import keras_transformer as kt
from training import new, train
from training.building import check_recipe
from training.corpora import find_splits, make_dataset, make_tokenizer
from training.held_out import choose_held_out
from training.new import PLANS, Size, recipe_for
from training.recipe import read_recipe


@pytest.fixture
def text(tmp_path, monkeypatch):
    """Files of 600 pairs, every fourth of them twice, in the folder that the test works in."""
    corpus = kt.data.reverse(num_pairs=650)
    pairs = [*corpus.train][:480]
    pairs += pairs[::4]
    random.Random(0).shuffle(pairs)
    (tmp_path / "a.txt").write_text("".join(f"{source}\n" for source, _ in pairs), encoding="utf8")
    (tmp_path / "b.txt").write_text("".join(f"{target}\n" for _, target in pairs), encoding="utf8")
    (tmp_path / "both.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_TRANSFORMER_CACHE", str(tmp_path / "cache"))
    return pairs


def written(capsys, *words):
    assert new.main(list(words)) == 0
    with open("mine.toml", "w", encoding="utf8") as file:
        file.write(capsys.readouterr().out)
    return read_recipe("mine.toml")


def complaint(capsys, command, *words):
    capsys.readouterr()
    assert command.main(list(words)) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize("files", [["a.txt", "b.txt"], ["both.tsv"]])
def test_a_recipe_that_trains(text, capsys, files):
    recipe = written(capsys, *files)
    check_recipe(recipe)
    assert recipe.data.hold_out == 50
    splits = find_splits(recipe.data)
    assert len(splits.validation.pairs()) == len(splits.tests["test"].pairs()) == 50
    words = ["--output", "run", "--set", "max_updates=2", "--set", "cooldown_updates=1", "--set", "model_dim=16"]
    assert train.main(["mine.toml", *words, "--set", "max_sentences=2"]) == 0
    assert len(kt.Translator.load("run").translate(["3 1 4"], max_length=3)) == 1


def test_no_sentence_that_is_held_out_is_trained_on(text, capsys):
    splits = find_splits(written(capsys, "a.txt", "b.txt").data)
    held_out = {source for part in (splits.validation, splits.tests["test"]) for source in part.side("source")}
    assert len(held_out) == 100
    left = list(splits.train)
    assert not held_out & {source for source, _ in left}
    assert sorted([*left, *(pair for pair in text if pair[0] in held_out)]) == sorted(text)
    recipe = read_recipe("mine.toml")
    dataset = make_dataset(splits.train, make_tokenizer(splits.train, recipe.tokenizer), recipe.data)
    assert dataset.statistics.kept == len(left)
    assert dataset.statistics.dropped["without"] == len(text) - len(left)


def test_what_is_held_out_depends_on_the_sentences_alone(text):
    mixed = [*text, *text]
    random.Random(1).shuffle(mixed)
    assert [*choose_held_out(text, 40)] == [*choose_held_out(mixed, 40)]
    assert len(choose_held_out([("", "x"), ("x", " "), ("y", "z")], 3)) == 1


def test_files_to_validate_and_to_test_with(text, capsys):
    recipe = written(capsys, "a.txt", "b.txt", "--validation", "a.txt", "b.txt", "--test", "both.tsv")
    assert recipe.data.hold_out is None
    assert [path.name for path in recipe.data.test_source] == ["both.tsv"]
    recipe = written(capsys, "a.txt", "b.txt", "--test", "both.tsv")
    assert len(find_splits(recipe.data).validation.pairs()) == recipe.data.hold_out


@pytest.mark.parametrize("has_gpu", [False, True])
def test_recipes_for_all_sizes_are_sound(tmp_path, has_gpu):
    sizes = []
    for pairs in (500, 2_000, 29_000, 200_000, 1_000_000, 100_000_000):
        text = recipe_for({"train": ('a"b.en', "a.de")}, Size(pairs, 12.0 * pairs), 50, has_gpu)
        (tmp_path / "mine.toml").write_text(text, encoding="utf8")
        recipe = read_recipe(tmp_path / "mine.toml")
        check_recipe(recipe)
        assert recipe.optimization.warmup_updates * 2 < recipe.optimization.max_updates
        assert recipe.data.train_source == (tmp_path / 'a"b.en',)
        sizes.append(recipe.tokenizer.vocabulary_size)
    assert sizes == sorted(sizes)
    assert len(PLANS) == 5 and {plan.preset for plan in PLANS} == {"tiny", "small", "base", "big"}


def test_mistakes_are_one_line(text, capsys):
    for words, message in {
        ("a.txt",): "Expected two text files of train pairs",
        ("a.txt", "both.tsv"): "Expected two text files",
        ("a.txt", "nothing.txt"): "There is no such file",
        ("a.txt", "b.txt", "--test", "a.txt"): "Expected two text files of test pairs",
    }.items():
        assert message in complaint(capsys, new, *words)
    for name in ("a.txt", "b.txt"):
        with open(name, encoding="utf8") as file:
            few = file.readlines()[:100]
        with open(f"few.{name}", "w", encoding="utf8") as file:
            file.writelines(few)
    assert "100 pairs are too few" in complaint(capsys, new, "few.a.txt", "few.b.txt")


def test_train_says_how_to_make_a_recipe_for_files(text, capsys):
    for words in (("a.txt", "b.txt"), ("both.tsv",)):
        message = complaint(capsys, train, *words)
        assert f"python -m training.new {' '.join(words)} > mine.toml" in message


def test_hold_out_wants_files_and_enough_of_them(text, capsys):
    written(capsys, "a.txt", "b.txt")
    with pytest.raises(ValueError, match="has 480 different sentences to hold out"):
        find_splits(read_recipe("mine.toml", ["hold_out=300"]).data)
    with pytest.raises(ValueError, match="`hold_out` belongs to files"):
        read_recipe("pronouns", ["hold_out=300"])
    sides = (("source", "a.txt"), ("target", "b.txt"))
    splits = [f"data.{split}_{side}={name}" for split in ("validation", "test") for side, name in sides]
    with pytest.raises(ValueError, match="there is nothing to hold out"):
        find_splits(read_recipe("mine.toml", splits).data)
