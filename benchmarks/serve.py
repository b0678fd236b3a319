"""An exported model under load, beside CTranslate2 with the same weights: `python -m benchmarks.serve`.

Clients ask for one sentence after the other; requests that wait are put together. Both engines have the same requests, the same
batching and the same number of threads, and take turns.
"""

import argparse
import shlex
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.page import measured, write_section
from benchmarks.serving.engines import TITLES
from benchmarks.serving.process import Engine, prepare
from benchmarks.shapes import SHAPES

NOTES = """\
The base shape with random weights; sources of 10 to 40 tokens, translations of 24 tokens with 4 beams. Text in,
text out: CTranslate2 has SentencePiece before and behind it, the SavedModel has it inside. Both have one thread for a batch.
Our engine is what a server runs, TensorFlow's C runtime through ctypes; it is not TensorFlow Serving, and there is no network
between. Clients ask for a sentence
and wait for it; up to 16 sentences that wait are translated together, by as many batches at once as there are threads. (With
larger batches, all of 32 clients may end up in one, and a thread has nothing to do until it is done.) Speed is the best of the
rounds; latencies are those of the same round. The export is one for CPUs (`device="cpu"`). Loading is that of a process that
has its libraries. TensorFlow prepares a graph with its first answer, here as `session.config` of the export says. A server
answers the export's warm-up requests (all signatures, the default one with all batch sizes and several lengths) as part of
loading; "warm" is the first answer after that, which is the first that a client of a server waits for."""


def main():
    """Measures what the command line asks for, and prints or writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="base", help="model to serve")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 8, 16, 32], help="how many ask at once")
    parser.add_argument("--rounds", type=int, default=3, help="how often each engine has a turn")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a turn")
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Markdown page whose section is to be replaced")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        prepare(folder, options.shape)
        engines = [Engine(name, folder, options.threads) for name in TITLES]
        try:
            for clients in options.clients:
                for _ in range(options.rounds):
                    for engine in engines:
                        engine.ask(clients=clients, seconds=options.seconds)
        finally:
            for engine in engines:
                engine.stop()
        sizes = {"ours": size_of(folder / "export" / "1"), "ctranslate2": size_of(folder / "ctranslate2")}
    text = tables(engines, options.clients, sizes)
    print(text)
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.serve", *sys.argv[1:]])
        end = measured(command, ["tensorflow", "ctranslate2"])
        write_section(options.write, "serve", f"## Serving\n\n{NOTES}\n\n{text}\n\n{end}")


def size_of(folder: Path) -> float:
    """Returns the size of all files in a folder, in MiB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def best_round(engine: Engine, clients: int) -> dict:
    """Returns sentences a second and latencies of the best round with so many clients."""
    rounds = [one["waits"] for one in engine.answers_to(clients=clients)]
    best = max(rounds, key=lambda one: len(one["each"]) / one["seconds"])
    waits = sorted(best["each"])
    return {
        "sentences": len(waits) / best["seconds"],
        "p50": statistics.median(waits),
        "p95": waits[min(len(waits) - 1, int(0.95 * len(waits)))],
    }


def tables(engines: list[Engine], clients: list[int], sizes: dict[str, float]) -> str:
    """Makes two Markdown tables: under load, and at rest."""
    peer = next(engine for engine in engines if engine.name == "ctranslate2")
    lines = [
        "| clients | engine | sentences/s | times CTranslate2 | p50, s | p95, s |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for count in clients:
        for engine in engines:
            best = best_round(engine, count)
            ratio = best["sentences"] / best_round(peer, count)["sentences"]
            figures = (best["sentences"], ratio, best["p50"], best["p95"])
            lines.append(" | ".join([f"| {count}", TITLES[engine.name], *(f"{figure:.2f}" for figure in figures)]) + " |")
    lines += [
        "",
        "| engine | loading, s | first answer, s | second answer, s | warm-up, s | warm, s | size, MiB | peak, GiB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for engine in engines:
        times = " | ".join(f"{seconds:.2f}" for seconds in engine.start.values())
        lines.append(f"| {TITLES[engine.name]} | {times} | {sizes[engine.name]:.0f} | {engine.peak_gib:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
