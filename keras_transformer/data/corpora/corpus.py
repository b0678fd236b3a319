"""What every corpus is made of: aligned pairs of sentences, in named splits."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Pairs:
    """Sentences and their translations, side by side.

    Args:
        source: Sentences of the source language.
        target: Their translations, in the same order.

    Example:

    >>> pairs = Pairs(["one", "two", "three"], ["eins", "zwei", "drei"])
    >>> len(pairs), pairs[0], list(pairs[1:])
    (3, ('one', 'eins'), [('two', 'zwei'), ('three', 'drei')])
    """

    source: list[str]
    target: list[str]

    def __post_init__(self):
        if len(self.source) != len(self.target):
            raise ValueError(
                "Each source sentence needs one target sentence in the same place. Look for a missing or an extra line. "
                f"Received: {len(self.source)} source and {len(self.target)} target sentences"
            )

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.source, self.target, strict=True)

    def __getitem__(self, index: int | slice) -> "tuple[str, str] | Pairs":
        if isinstance(index, slice):
            return Pairs(self.source[index], self.target[index])
        return self.source[index], self.target[index]


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus in splits.

    A split is reached by name, `corpus["validation"]`; the usual three are attributes as well. A corpus with several test
    splits (`test_2016_flickr`, ...) has the first of them as `test`.

    Args:
        name: Name of the corpus.
        source_language: Code of the source language, such as `"en"`.
        target_language: Code of the target language, such as `"de"`.
        splits: From the names of the splits to their pairs.

    Example:

    >>> corpus = Corpus("numbers", "en", "de", {"train": Pairs(["one", "two"], ["eins", "zwei"])})
    >>> corpus.train.target
    ['eins', 'zwei']
    """

    name: str
    source_language: str
    target_language: str
    splits: dict[str, Pairs] = field(repr=False)

    @property
    def train(self) -> Pairs:
        """The pairs to train on."""
        return self["train"]

    @property
    def validation(self) -> Pairs:
        """The pairs to watch training with."""
        return self["validation"]

    @property
    def test(self) -> Pairs:
        """The pairs for the final measurement."""
        tests = [name for name in self.splits if name.startswith("test")]
        return self[tests[0] if tests and "test" not in tests else "test"]

    def __getitem__(self, split: str) -> Pairs:
        if split not in self.splits:
            names = ", ".join(f'"{name}"' for name in self.splits)
            raise ValueError(f"The corpus {self.name!r} has no such split; it has {names}. Received: {split!r}")
        return self.splits[split]

    def write(self, directory: str | os.PathLike) -> list[Path]:
        """Writes each split as two text files of a sentence a line, such as `train.en` and `train.de`.

        Args:
            directory: Where to write; made if it does not exist.

        Returns:
            The paths of the files, source before target, split by split.
        """
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, pairs in self.splits.items():
            paths.append(write_lines(directory / f"{name}.{self.source_language}", pairs.source))
            paths.append(write_lines(directory / f"{name}.{self.target_language}", pairs.target))
        return paths


def write_lines(path: Path, lines: list[str]) -> Path:
    """Writes sentences to a UTF-8 file, a line each, and returns its path."""
    for number, line in enumerate(lines, start=1):
        if "\n" in line or "\r" in line:
            raise ValueError(
                f"A sentence must not contain line breaks to be a line of {path}. Received: {line!r}, number {number}"
            )
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8", newline="\n")
    return path
