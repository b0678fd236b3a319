"""Text in, text out: a model, its tokenizer and a search."""

import dataclasses
import functools
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, Unpack, overload

import keras
import numpy as np
from rich.console import Console
from rich.progress import Progress

from keras_transformer.attention import Attention, attention_scores, token_names
from keras_transformer.checks import refusal, whole
from keras_transformer.decoding import SearchOptions, compile_scoring, compile_search
from keras_transformer.decoding.batches import batches_of, in_closed_shapes, padded
from keras_transformer.decoding.limits import check_bans
from keras_transformer.folders import complete_folder
from keras_transformer.models import Transformer
from keras_transformer.text import as_tokenizer, load_tokenizer
from keras_transformer.text.cutting import cut_text, most_bytes
from keras_transformer.text.strings import as_texts, clean_texts, is_single
from keras_transformer.translator_files import SETTINGS, folder_of, read_settings, write_settings

WIDE_BEAM = 16  # From twice this on, what hypotheses see of each other takes most memory: the square of their number.
PROGRESS_FROM = 200  # Number of texts from which on progress is shown.


@dataclass(frozen=True)
class Translation:
    """A translation and what the model thinks of it.

    Attributes:
        text: The text.
        score: What translations were compared by: the log-probability divided by the length penalty.
        log_probability: Sum over all tokens, the end included.
        tokens: The pieces of the text, the end included.
        token_log_probabilities: The log-probability of each of them.
        truncated: Whether the source was longer than the model takes, and was cut.
    """

    text: str
    score: float
    log_probability: float
    tokens: list[str]
    token_log_probabilities: list[float]
    truncated: bool = False


class TranslateOptions(TypedDict, total=False):
    """The arguments of `Translator.translate` that do not decide what kind of value it returns, for type checkers."""

    beam_size: int | None
    length_penalty: float | None
    max_length: int | None
    min_length: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None
    prefix: str | Sequence[str] | None
    stopping: str | None
    batch_tokens: int
    progress: bool


class Translator:
    """Translates text.

    Args:
        model: A `Transformer`.
        tokenizer: What the model was trained with: a `Tokenizer`, a `TokenizerPair`, or a tokenizer of keras-hub.
        options: `SearchOptions` that `translate` uses unless it is told otherwise. Defaults to the paper's: 4 beams and a
            length penalty of 0.6.

    Example:

    >>> import keras_transformer as kt
    >>> tokenizer = kt.Tokenizer.train(iter(["a house", "ein Haus"] * 9), vocabulary_size=275)
    >>> model = kt.Transformer.from_preset("tiny", vocabulary_size=tokenizer.vocabulary_size)
    >>> translator = kt.Translator(model, tokenizer)
    >>> len(translator.translate(["a house", "a tree"], max_length=5))
    2
    """

    def __init__(self, model: Transformer, tokenizer, options: SearchOptions | None = None):
        self.model = model
        self.tokenizer = as_tokenizer(tokenizer)
        self.options = SearchOptions() if options is None else options
        if not isinstance(self.options, SearchOptions):
            raise refusal("options", options, "`SearchOptions`, or `None` for the defaults")
        check_fit(model.config, self.tokenizer)
        check_bans(self.searchable(self.options), model.config.target_vocabulary_size, model.config.end_id)
        self._search = functools.lru_cache(16)(lambda options: compile_search(model, options))
        self._most_bytes = functools.cache(lambda side, limit: most_bytes(getattr(self.tokenizer, side), limit))
        self._scoring = functools.cache(lambda: compile_scoring(model))

    @overload
    def translate(
        self,
        texts: str,
        *,
        num_hypotheses: Literal[1] | None = None,
        return_scores: Literal[False] = False,
        **options: Unpack[TranslateOptions],
    ) -> str: ...

    @overload
    def translate(
        self,
        texts: Sequence[str],
        *,
        num_hypotheses: Literal[1] | None = None,
        return_scores: Literal[False] = False,
        **options: Unpack[TranslateOptions],
    ) -> list[str]: ...

    @overload
    def translate(
        self,
        texts: str,
        *,
        num_hypotheses: Literal[1] | None = None,
        return_scores: Literal[True],
        **options: Unpack[TranslateOptions],
    ) -> Translation: ...

    @overload
    def translate(
        self,
        texts: Sequence[str],
        *,
        num_hypotheses: Literal[1] | None = None,
        return_scores: Literal[True],
        **options: Unpack[TranslateOptions],
    ) -> list[Translation]: ...

    @overload
    def translate(
        self, texts: str, *, num_hypotheses: int, return_scores: Literal[False] = False, **options: Unpack[TranslateOptions]
    ) -> list[str]: ...

    @overload
    def translate(
        self,
        texts: Sequence[str],
        *,
        num_hypotheses: int,
        return_scores: Literal[False] = False,
        **options: Unpack[TranslateOptions],
    ) -> list[list[str]]: ...

    @overload
    def translate(
        self, texts: str, *, num_hypotheses: int, return_scores: Literal[True], **options: Unpack[TranslateOptions]
    ) -> list[Translation]: ...

    @overload
    def translate(
        self, texts: Sequence[str], *, num_hypotheses: int, return_scores: Literal[True], **options: Unpack[TranslateOptions]
    ) -> list[list[Translation]]: ...

    @overload
    def translate(
        self,
        texts: str | Sequence[str],
        *,
        num_hypotheses: int | None = None,
        return_scores: bool = False,
        **options: Unpack[TranslateOptions],
    ) -> str | Translation | list: ...

    def translate(
        self,
        texts: str | Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        num_hypotheses: int | None = None,
        max_length: int | None = None,
        min_length: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        prefix: str | Sequence[str] | None = None,
        stopping: str | None = None,
        batch_tokens: int = 2048,
        return_scores: bool = False,
        progress: bool = True,
    ) -> str | Translation | list:
        """Translates a text or a list of texts.

        Every text gets the same translation alone and in any list. Blank texts give empty ones. Sources longer than the model
        takes are cut, with a warning.

        Args:
            texts: A text, or a list of them.
            beam_size, length_penalty, num_hypotheses, max_length, min_length, temperature, top_k, top_p, stopping: See
                `SearchOptions`; `None` leaves the translator's default.
            seed: Decides what is drawn with a `temperature`: the same seed, an integer from 0 on, gives the same texts.
            prefix: What the translation begins with; one for all texts, or one for each.
            batch_tokens: Number of source tokens, padding included, that are translated at once; fewer for 32 beams and more.
            return_scores: Whether to return `Translation`s instead of strings.
            progress: Whether to show progress over a long list if the standard error stream is a terminal.

        Returns:
            A string or a `Translation` for each text, or a list of `num_hypotheses` of them, best first, if more than one is
            asked for. For a single text, what there would be in the list of one.
        """
        changes = {
            "beam_size": beam_size,
            "length_penalty": length_penalty,
            "num_hypotheses": num_hypotheses,
            "max_length": max_length,
            "min_length": min_length,
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "stopping": stopping,
        }
        options = self.options.override(**{name: value for name, value in changes.items() if value is not None})
        batch_tokens = check_batch_tokens(batch_tokens)
        sources, truncated = self._encode_sources(as_texts(texts, "texts"))
        prefixes = self._encode_prefixes(prefix, len(sources))
        found = self._translate_ids(sources, prefixes, options, as_seed(seed), batch_tokens, progress)
        translations = [
            [dataclasses.replace(one, truncated=cut) for one in hypotheses]
            for hypotheses, cut in zip(found, truncated, strict=True)
        ]
        results = translations if return_scores else [[one.text for one in hypotheses] for hypotheses in translations]
        results = results if options.num_hypotheses > 1 else [hypotheses[0] for hypotheses in results]
        return results[0] if is_single(texts) else results

    @overload
    def score(self, sources: str, targets: str, batch_tokens: int = 2048) -> float: ...

    @overload
    def score(self, sources: Sequence[str], targets: Sequence[str], batch_tokens: int = 2048) -> list[float]: ...

    def score(
        self, sources: str | Sequence[str], targets: str | Sequence[str], batch_tokens: int = 2048
    ) -> float | list[float]:
        """Returns the log-probability of given translations: the sum over their tokens, the end included.

        Args:
            sources: A text, or a list of them.
            targets: Its translation, or theirs.
            batch_tokens: Number of tokens, padding included, that are scored at once.

        Returns:
            A number, or a list of them.
        """
        if is_single(sources) or is_single(targets):
            return self.score([sources], [targets], batch_tokens)[0]
        sources, targets = as_texts(sources, "sources"), as_texts(targets, "targets")
        if len(sources) != len(targets):
            raise ValueError(f"Each source needs one target. Received: {len(sources)} sources and {len(targets)} targets")
        source_rows, _ = self._encode_sources(sources)
        target_rows = self._encode_targets(targets)
        return self.score_ids([row or [self.model.config.end_id] for row in source_rows], target_rows, batch_tokens)

    def score_ids(self, source_rows: list[list[int]], target_rows: list[list[int]], batch_tokens: int = 2048) -> list[float]:
        """Returns the log-probability of target ids (without start and end), given source ids (with their end)."""
        config = self.model.config
        totals = [0.0] * len(source_rows)
        lengths = [max(len(source), len(target) + 1) for source, target in zip(source_rows, target_rows, strict=True)]
        for numbers in batches_of(lengths, check_batch_tokens(batch_tokens)):
            inputs = {
                "source_ids": padded([source_rows[number] for number in numbers], config.pad_id),
                "target_ids": padded([[config.start_id, *target_rows[number]] for number in numbers], config.pad_id),
                "labels": padded([[*target_rows[number], config.end_id] for number in numbers], config.pad_id),
            }
            for number, row in zip(numbers, self._scoring()(inputs)["log_probs"], strict=False):
                totals[number] = float(row.sum())
        return totals

    def attend(
        self, source: str, target: str | None = None, *, prefix: str | None = None, seed: int | None = 0, **search_options
    ) -> Attention:
        """Returns where every head of every layer looks while a translation is written.

        Args:
            source: A text.
            target: Its translation. Without it, the one that the search finds.
            prefix, seed: As in `translate`.
            **search_options: Fields of `SearchOptions` to change for the search, such as `beam_size`.

        Returns:
            An `Attention`: to plot, to save, or to look at with `save_html`.
        """
        if not is_single(source) or not (target is None or is_single(target)):
            raise ValueError(f"`attend` takes one text, and one translation of it. Received: {source!r:.100}, {target!r:.100}")
        config, sides, options = self.model.config, self.tokenizer, self.options.override(**search_options)
        (row,), _ = self._encode_sources([source])
        if target is not None:
            (ids,) = self._encode_targets([target])
        else:
            ids = self._best_ids(row, prefix, options, as_seed(seed)) if row else []
        row, read, written = row or [config.end_id], [config.start_id, *ids], [*ids, config.end_id]
        scores = attention_scores(self.model, [row], [read])
        names = token_names(sides.source, row), token_names(sides.target, read), token_names(sides.target, written)
        return Attention(*names, **{kind: weights[0] for kind, weights in scores.items()})

    # From text to ids.

    def _encode_side(self, side: str, texts: Sequence[str], limit: int) -> tuple[list[list[int]], list[bool]]:
        """Returns at most so many ids of each text, and which of them were cut."""
        if not texts:
            return [], []
        most = self._most_bytes(side, limit)
        texts, are_cut = zip(*(cut_text(text, most) for text in clean_texts(texts)), strict=True)
        rows = getattr(self.tokenizer, side).encode(list(texts))
        truncated = [is_cut or len(row) > limit for is_cut, row in zip(are_cut, rows, strict=True)]
        return [row[:limit] for row in rows], truncated

    def _encode_sources(self, texts: Sequence[str]) -> tuple[list[list[int]], list[bool]]:
        """Returns ids with their end, empty for blank texts, and which of them were cut."""
        limit = self.model.config.max_length - 1
        rows, truncated = self._encode_side("source", texts, limit)
        warn_of_long(truncated, limit, "texts")
        return [[*row, self.model.config.end_id] if row else [] for row in rows], truncated

    def _encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the ids of given translations, cut where a translation of the longest source would be."""
        config, options = self.model.config, self.options
        limit = config.max_length - 1
        if config.positions != "learned":
            limit = max(limit + options.extra_length, options.max_length or 0)
        rows, truncated = self._encode_side("target", texts, limit)
        warn_of_long(truncated, limit, "translations")
        return rows

    def _encode_prefixes(self, prefix: str | Sequence[str] | None, count: int) -> list[list[int]] | None:
        if prefix is None:
            return None
        prefixes = [prefix] * count if is_single(prefix) else as_texts(prefix, "prefix")
        if len(prefixes) != count:
            raise ValueError(f"`prefix` must be one text, or one for each of the {count} sources. Received: {len(prefixes)}")
        return self.tokenizer.target.encode(clean_texts(prefixes)) if prefixes else []

    # The search.

    def searchable(self, options: SearchOptions) -> SearchOptions:
        """Returns the options of a search for sentences that come with their lengths.

        Ids that the model has beyond the tokenizer's vocabulary are banned, for no text stands for them.
        """
        beyond = range(self.tokenizer.target.vocabulary_size, self.model.config.target_vocabulary_size)
        return options.override(max_length=None, extra_length=0, banned_ids=(*options.banned_ids, *beyond))

    def _translate_ids(self, sources, prefixes, options: SearchOptions, seed, batch_tokens: int, progress: bool) -> list[list]:
        """Translates in batches of similar length and returns hypotheses in the caller's order."""
        results = [[Translation("", 0.0, 0.0, [], [])] * options.num_hypotheses for _ in sources]
        full = [number for number, row in enumerate(sources) if row]
        copies = options.num_hypotheses if options.is_sampling else 1
        share = batch_tokens // (copies if options.is_sampling else max(1, options.beam_size // WIDE_BEAM) ** 2)
        search = self._search(self.searchable(options))
        with search_progress(progress, len(full)) as display:
            task = display.add_task("Translating", total=len(full))
            for places in batches_of([len(sources[number]) for number in full], max(1, share)):
                numbers = [full[place] for place in places]
                jobs = [(number, copy) for number in numbers for copy in range(copies)]
                inputs = self._inputs(jobs, sources, prefixes, options, seed)
                found = search(inputs)
                for place, number in enumerate(numbers):
                    results[number] = self._hypotheses(found, place, copies)
                display.advance(task, len(numbers))
        return results

    def _best_ids(self, source: list[int], prefix: str | None, options: SearchOptions, seed: int) -> list[int]:
        """Returns the ids of the best translation of one source, without its end."""
        search = self._search(self.searchable(options))
        found = search(self._inputs([(0, 0)], [source], self._encode_prefixes(prefix, 1), options, seed))
        return found["tokens"][0, 0, : found["lengths"][0, 0] - 1].tolist()

    def _inputs(self, jobs: list[tuple[int, int]], sources, prefixes, options: SearchOptions, seed: int) -> dict:
        """Makes the inputs of a search for some sentences, each perhaps several times."""
        config = self.model.config
        lengths = [len(sources[number]) - 1 for number, _ in jobs]
        limits = [options.max_length if options.max_length is not None else n + options.extra_length for n in lengths]
        limits = [max(limit, options.min_length) for limit in limits]
        if config.positions == "learned":
            limits = [min(limit, config.max_length - 1) for limit in limits]
        inputs = {
            "source_ids": padded([sources[number] for number, _ in jobs], config.pad_id),
            "max_lengths": np.array(limits, "int32"),
        }
        if prefixes is not None:
            rows = [prefixes[number][:limit] for (number, _), limit in zip(jobs, limits, strict=True)]
            inputs["prefix_ids"] = padded(rows, config.pad_id)
            inputs["prefix_lengths"] = np.array([len(row) for row in rows], "int32")
        if options.is_sampling:
            steps = max(limits) + 1
            inputs["chances"] = np.array([np.random.default_rng([seed, *job]).random(steps, "float32") for job in jobs])
        return in_closed_shapes(inputs, config) if keras.backend.backend() == "jax" else inputs

    def _hypotheses(self, found: dict, place: int, copies: int) -> list[Translation]:
        """Reads the hypotheses of one sentence from a result."""
        if copies > 1:
            return [self._translation(found, place * copies + copy, 0) for copy in range(copies)]
        return [self._translation(found, place, rank) for rank in range(found["scores"].shape[1])]

    def _translation(self, found: dict, row: int, rank: int) -> Translation:
        length = int(found["lengths"][row, rank])
        ids = found["tokens"][row, rank, :length]
        target = self.tokenizer.target
        return Translation(
            text=target.decode(ids),
            score=float(found["scores"][row, rank]),
            log_probability=float(found["log_probs"][row, rank]),
            tokens=target.tokens(ids) if hasattr(target, "tokens") else [str(id) for id in ids],
            token_log_probabilities=found["token_log_probs"][row, rank, :length].tolist(),
        )

    # Files.

    def save(self, directory: str | os.PathLike):
        """Writes model, tokenizer and defaults to a folder, which appears or is replaced when it is complete.

        Args:
            directory: The folder.
        """
        with complete_folder(directory, mark=SETTINGS) as folder:
            self.model.save_to_preset(folder / "model")
            self.tokenizer.save(folder / "tokenizer.model")
            write_settings(folder, self.options)

    @classmethod
    def load(cls, directory: str | os.PathLike) -> "Translator":
        """Loads what `save` wrote. Nothing in the folder is executed; a model's own block classes must be imported before.

        Args:
            directory: The folder, or that of a finished run, which has the translator inside.

        Returns:
            The translator.
        """
        directory = folder_of(Path(directory))
        options = read_settings(directory)
        return cls(Transformer.from_preset(directory / "model"), load_tokenizer(directory / "tokenizer.model"), options)


def check_fit(config, tokenizer):
    """Raises a `ValueError` if a model and a tokenizer do not belong together."""
    for side in ("source", "target"):
        size, own = getattr(config, f"{side}_vocabulary_size"), getattr(tokenizer, side).vocabulary_size
        if size < own:
            raise ValueError(
                f"The model has {size} {side} tokens, the tokenizer {own}. Make the model with "
                f"`vocabulary_size=tokenizer.vocabulary_size`, and use the tokenizer it was trained with"
            )
        for name in ("pad_id", "end_id") if side == "source" else ("pad_id", "start_id", "end_id"):
            if getattr(config, name) != getattr(getattr(tokenizer, side), name):
                raise ValueError(
                    f"`{name}` is {getattr(config, name)} in the model and {getattr(getattr(tokenizer, side), name)} in the "
                    f"{side} tokenizer. Give the model the tokenizer's: `TransformerConfig({name}=...)`"
                )


def as_seed(seed: int | None) -> int:
    """Returns a seed, a random one for `None`."""
    return np.random.SeedSequence().entropy % 2**32 if seed is None else whole(0, 2**64 - 1)("seed", seed)


def check_batch_tokens(batch_tokens: int) -> int:
    """Returns the number of tokens of a batch, or raises a `ValueError` if it is none."""
    return whole(1, 2**63 - 1)("batch_tokens", batch_tokens)


def warn_of_long(truncated: list[bool], limit: int, what: str):
    """Warns if some of the texts had to be cut."""
    count = sum(truncated)
    if count:
        warnings.warn(
            f"{count} of {len(truncated)} {what} have more than {limit} tokens, the most this model takes, and were cut. Go "
            "sentence by sentence, or give the model a larger `max_length`.",
            stacklevel=4,
        )


def search_progress(wanted: bool, count: int) -> Progress:
    """Makes the progress bar of a long list."""
    console = Console(file=sys.stderr)
    return Progress(console=console, disable=not (wanted and console.is_terminal and count >= PROGRESS_FROM))
