"""A trained model served, beside CTranslate2 with the same weights: `python -m benchmarks.serve_trained RUN --source FILE`.

The sentences of a file are translated in requests of some sentences each, text in and text out. Both engines have the same
requests, as many at once as there are threads, and take turns.
"""

import argparse
import shlex
import sys
import tempfile
from pathlib import Path

from benchmarks.page import measured, write_section
from benchmarks.serving.engines import TITLES
from benchmarks.serving.process import Engine, prepare

NOTES = """\
All sentences of a test set in requests of 1, 8 or 32, in the order of the file, two requests at once. Text in, text out, as in
"Serving": our export for CPUs in TensorFlow's C runtime, CTranslate2 between SentencePiece's tokenizer and detokenizer. Both
search with the beams and the exponent of the recipe, and by CTranslate2's rules: the length penalty n^a, ends among the K best
continuations alone, and a stop at as many ends as there are beams; a translation has at most 50 tokens more than its source, in
CTranslate2, than the longest one. Speed is the best of the rounds. BLEU is sacrebleu's, cased
and detokenized; "same" is the share of translations that both engines agree on, letter for letter."""


def main():
    """Measures what the command line asks for, and prints or writes it."""
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), options.run, str(options.source))
        engines = [Engine(name, Path(folder), options.threads) for name in TITLES]
        try:
            for batch in options.batches:
                for _ in range(options.rounds):
                    for engine in engines:
                        engine.ask(batch=batch)
        finally:
            for engine in engines:
                engine.stop()
    text = table(engines, options.batches, options.reference and options.reference.read_text(encoding="utf8").splitlines())
    print(text)
    if options.write:
        words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]  # No folders of this machine.
        command = shlex.join(["python", "-m", "benchmarks.serve_trained", *words])
        end = measured(command, ["tensorflow", "ctranslate2", "sacrebleu"])
        write_section(options.write, "serve_trained", f"## A trained model, served\n\n{NOTES}\n\n{text}\n\n{end}")


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="folder of a finished run, or of a translator")
    parser.add_argument("--source", type=Path, required=True, metavar="FILE", help="sentences to translate, one a line")
    parser.add_argument("--reference", type=Path, metavar="FILE", help="their translations, to measure BLEU with")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32], help="how many sentences a request has")
    parser.add_argument("--rounds", type=int, default=3, help="how often each engine has a turn")
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine, and requests at once")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Markdown page whose section is to be replaced")
    return parser.parse_args()


def table(engines: list[Engine], batches: list[int], references: list[str] | None) -> str:
    """Makes a Markdown table."""
    peer = next(engine for engine in engines if engine.name == "ctranslate2")
    lines = [
        "| sentences a request | engine | sentences/s | times CTranslate2 | same | BLEU | peak, GiB |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for batch in batches:
        seconds, expected = fastest(peer, batch)
        for engine in engines:
            own_seconds, found = fastest(engine, batch)
            same = sum(one == other for one, other in zip(found, expected, strict=True)) / len(found)
            score = bleu(found, references) if references else "-"
            lines.append(
                f"| {batch} | {TITLES[engine.name]} | {len(found) / own_seconds:.1f} | {seconds / own_seconds:.2f} "
                f"| {same:.1%} | {score} | {engine.peak_gib:.2f} |"
            )
    return "\n".join(lines)


def fastest(engine: Engine, batch: int) -> tuple[float, list[str]]:
    """Returns the seconds of the fastest round with requests of a size, and its translations."""
    best = min(engine.answers_to(batch=batch), key=lambda answer: answer["seconds"])
    return best["seconds"], best["translations"]


def bleu(translations: list[str], references: list[str]) -> str:
    """Returns the BLEU of translations."""
    from sacrebleu import corpus_bleu

    return f"{corpus_bleu(translations, [references]).score:.2f}"


if __name__ == "__main__":
    main()
