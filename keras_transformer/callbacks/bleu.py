"""BLEU of real translations during training."""

import contextlib
import os
from collections.abc import Sequence

import keras

from keras_transformer.callbacks.local_models import alone, copy_weights, local_model
from keras_transformer.callbacks.processes import first_ones, num_processes
from keras_transformer.callbacks.training_state import final_weights
from keras_transformer.text.lines import read_lines
from keras_transformer.translator import Translator

Texts = str | os.PathLike | Sequence[str]
References = str | os.PathLike | Sequence[str] | Sequence[os.PathLike] | Sequence[Sequence[str]]


class BleuEvaluation(keras.callbacks.Callback):
    """Translates a validation set every few epochs and logs BLEU and chrF, as sacrebleu computes them.

    The numbers are in the logs as `val_bleu` and `val_chrf`. Callbacks that are to see them there, such as `EarlyStopping`,
    `CSVLogger` or `TensorBoard`, have to come after this one in the list. If the optimizer keeps a moving average of the
    weights (`use_ema=True`), it is the average that translates, for training will end with it. Of several processes that train
    together, each translates, so that none waits for another, and the numbers of the first one count.

    Args:
        source: The texts to translate, a list or a file.
        references: Their translations: a list or a file with one for each, a list of paths of several such files, or a list
            with a list of references for each source.
        tokenizer: What the model is trained with.
        every_epochs: Number of epochs between two evaluations.
        beam_size, length_penalty, batch_tokens: As for `Translator.translate`.
        num_samples: How many translations to show beside their references.
        max_sentences: How many of the first sentences to take; `None` takes all.
        lowercase: Whether BLEU and chrF ignore case.
        tokenize: How sacrebleu cuts texts into words.
        verbose: 0 shows nothing, 1 scores and samples.

    Attributes:
        history: A dictionary for each evaluation: `epoch` (from 0), `val_bleu`, `val_chrf`, `signature`, `chrf_signature`.
        signature: What sacrebleu says of how BLEU was computed.
        translations: Those of the last evaluation.

    Example:

        bleu = kt.callbacks.BleuEvaluation("validation.en", "validation.de", tokenizer, every_epochs=2)
        model.fit(train, epochs=20, callbacks=[bleu, kt.callbacks.EarlyStopping("val_bleu", patience=3)])
    """

    def __init__(
        self,
        source: Texts,
        references: References,
        tokenizer,
        every_epochs: int = 1,
        beam_size: int = 4,
        length_penalty: float = 0.6,
        num_samples: int = 3,
        max_sentences: int | None = None,
        batch_tokens: int = 2048,
        lowercase: bool = False,
        tokenize: str = "13a",
        verbose: int = 1,
    ):
        super().__init__()
        if every_epochs < 1:
            raise ValueError(f"`every_epochs` must be a positive integer. Received: every_epochs={every_epochs}")
        self.source, self.references = paired(read_texts(source), read_references(references), max_sentences)
        self.tokenizer, self.every_epochs, self.num_samples, self.verbose = tokenizer, every_epochs, num_samples, verbose
        self.options = {"beam_size": beam_size, "length_penalty": length_penalty, "batch_tokens": batch_tokens}
        self.bleu, self.chrf = make_metrics(lowercase, tokenize)
        self.history: list[dict] = []
        self.signature: str | None = None
        self.translations: list[str] = []
        self._translator: Translator | None = None

    def on_train_begin(self, logs=None):
        """Is called by Keras."""
        self.history = []
        if self._translator is None or num_processes() > 1 or self._translator.model is not self.model:
            self._translator = Translator(local_model(self.model), self.tokenizer)

    def on_epoch_end(self, epoch, logs=None):
        """Is called by Keras."""
        if (epoch + 1) % self.every_epochs == 0:
            entry = {"epoch": epoch, **self.evaluate()}
            self.history.append(entry)
            if logs is not None:
                logs.update({name: entry[name] for name in ("val_bleu", "val_chrf")})
            if self.verbose:
                print(self.describe(entry))

    def evaluate(self) -> dict:
        """Translates the sources with the weights that training would end with now.

        Returns:
            `val_bleu`, `val_chrf` and the signatures.
        """
        self.translations = self.translate()
        streams = reference_streams(self.references)
        scores = first_ones(metric.corpus_score(self.translations, streams).score for metric in (self.bleu, self.chrf))
        scores = dict(zip(("val_bleu", "val_chrf"), scores, strict=True))
        self.signature = str(self.bleu.get_signature())
        return {**scores, "signature": self.signature, "chrf_signature": str(self.chrf.get_signature())}

    def translate(self) -> list[str]:
        """Translates the sources with the weights that training would end with now."""
        with final_weights(self.model):
            copy_weights(self.model, self._translator.model)
            with alone() if num_processes() > 1 else contextlib.nullcontext():
                return self._translator.translate(self.source, progress=bool(self.verbose), **self.options)

    def describe(self, entry: dict) -> str:
        """Says in a few lines what an evaluation found, with samples spread over the set."""
        lines = [
            f"\nEpoch {entry['epoch'] + 1}: BLEU {entry['val_bleu']:.2f}, chrF {entry['val_chrf']:.2f} of "
            f"{len(self.source):,} sentences ({entry['signature']})"
        ]
        count = min(self.num_samples, len(self.source))
        for number in range(count):
            place = number * len(self.source) // count
            rows = {
                "source": self.source[place],
                "reference": self.references[place][0],
                "translation": self.translations[place],
            }
            lines += [f"  {name:<12} {text}" for name, text in rows.items()]
        return "\n".join(lines)

    def get_state(self) -> dict:
        """Returns what a checkpoint should keep."""
        return {"history": self.history, "signature": self.signature}

    def set_state(self, state: dict):
        """Restores what `get_state` returned."""
        self.history, self.signature = state["history"], state["signature"]


def make_metrics(lowercase: bool, tokenize: str):
    """Makes sacrebleu's BLEU and chrF."""
    import sacrebleu

    is_tokenized = tokenize == "none"  # Whoever says so need not be warned of it.
    return sacrebleu.BLEU(lowercase=lowercase, tokenize=tokenize, force=is_tokenized), sacrebleu.CHRF(lowercase=lowercase)


def read_texts(texts: Texts) -> list[str]:
    """Returns a list of texts, or the lines of a file."""
    return list(read_lines(texts) if isinstance(texts, str | os.PathLike) else texts)


def read_references(references: References) -> list[list[str]]:
    """Returns the references of each source."""
    if isinstance(references, str | os.PathLike):
        return [[line] for line in read_lines(references)]
    references = list(references)
    if references and all(isinstance(one, os.PathLike) for one in references):
        return lines_side_by_side(references)
    return [[one] if isinstance(one, str) else list(one) for one in references]


def lines_side_by_side(paths: Sequence[os.PathLike]) -> list[list[str]]:
    """Returns, line by line, what several files of the same length say."""
    columns = [list(read_lines(path)) for path in paths]
    if len({len(column) for column in columns}) > 1:
        counts = ", ".join(f"{path}: {len(column)}" for path, column in zip(paths, columns, strict=True))
        raise ValueError(f"Files of references must have as many lines as each other. Received: {counts}")
    return [list(row) for row in zip(*columns, strict=True)]


def paired(source: list[str], references: list[list[str]], count: int | None) -> tuple[list[str], list[list[str]]]:
    """Returns the first sources and their references, all of them if there is no count."""
    if len(source) != len(references) or not source:
        raise ValueError(
            f"Each source needs a reference, and there must be one at least. Received: {len(source)} sources and "
            f"references for {len(references)}"
        )
    if not all(references):
        raise ValueError(f"Source {references.index([]) + 1} has no reference")
    return source[:count], references[:count]


def reference_streams(references: list[list[str]]) -> list[list[str | None]]:
    """Turns the references of each source into what sacrebleu takes: the first of all, the second of all, ..."""
    most = max(map(len, references))
    return [[row[number] if number < len(row) else None for row in references] for number in range(most)]
