"""Small corpora of generated words, and a tokenizer for them."""

import numpy as np
import pytest

import keras_transformer as kt


def generated_lines(count: int, seed: int = 0, max_words: int = 20) -> tuple[list[str], list[str]]:
    """Makes lines of made-up words whose translations have similar lengths; each line says its number."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, max_words, count)
    syllables = [consonant + vowel for consonant in "bdk" for vowel in "aeiou"]

    def line(number, length):
        return f"{number} {' '.join(random.choice(syllables, length))}"

    sources = [line(number, length) for number, length in enumerate(lengths)]
    targets = [line(number, length + random.integers(0, 4)) for number, length in enumerate(lengths)]
    return sources, targets


@pytest.fixture(scope="session")
def tokenizer():
    sources, targets = generated_lines(500, seed=9)
    return kt.Tokenizer.train(iter(sources + targets), vocabulary_size=320)


@pytest.fixture
def files(tmp_path):
    """Two files of 300 lines."""
    sources, targets = generated_lines(300)
    paths = tmp_path / "train.en", tmp_path / "train.de"
    for path, lines in zip(paths, (sources, targets), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return paths


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_TRANSFORMER_CACHE", str(tmp_path / "cache"))
