"""An engine in a process of its own: `python -m benchmarks.serving.worker ENGINE FOLDER THREADS`.

It says how long it took to load, to give its first two answers, to warm up, and to give an answer then. Then it answers each
line of JSON. `{"clients": ..., "seconds": ...}` asks for the number of sentences translated for that many clients, and the
seconds that each of them waited; `{"batch": ...}` for the translations of all sentences, so many in a request, as many requests
at once as there are threads.
"""

import importlib
import itertools
import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.memory import peak_gib
from benchmarks.serving.batcher import Batcher
from benchmarks.serving.engines import ENGINES, LIBRARIES
from benchmarks.worker import answer, take_over_standard_output

MAX_BATCH_SIZE = 16


def main():
    """Loads the engine and serves until the input is closed."""
    answers = take_over_standard_output()
    engine, folder, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    sentences = json.loads((folder / "sentences.json").read_text(encoding="utf8"))
    importlib.import_module(LIBRARIES[engine])
    clock = [time.perf_counter()]
    translate, warm_up = ENGINES[engine](folder, threads)
    clock.append(time.perf_counter())
    for work in (
        lambda: translate(sentences[:1]),
        lambda: translate(sentences[:1]),
        warm_up,
        lambda: translate(sentences[1:2]),
    ):
        work()
        clock.append(time.perf_counter())
    names = ("load", "first_answer", "second_answer", "warm_up", "warm_answer")
    answer(answers, {name: end - start for name, (start, end) in zip(names, itertools.pairwise(clock), strict=True)})
    batcher = Batcher(translate, threads, MAX_BATCH_SIZE)
    for line in sys.stdin:
        question = json.loads(line)
        if "batch" in question:
            found = translate_all(sentences, question["batch"], translate, threads)
        else:
            found = {"waits": ask_for(question["seconds"], question["clients"], batcher, sentences)}
        answer(answers, {**found, "peak_gib": peak_gib()})
    batcher.close()


def translate_all(sentences: list[str], batch: int, translate: Callable, threads: int) -> dict:
    """Translates all sentences in requests of some, and returns the translations, and how long they took."""
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(translate, (sentences[first : first + batch] for first in range(0, len(sentences), batch))))
    return {"seconds": time.perf_counter() - started, "translations": list(itertools.chain.from_iterable(found))}


def ask_for(seconds: float, clients: int, batcher: Batcher, sentences: list[str]) -> dict:
    """Lets clients ask, each for the next sentence when it has the last; returns how long each sentence took."""
    waits, stop = [], time.perf_counter() + seconds

    def ask(number: int):
        while time.perf_counter() < stop:
            started = time.perf_counter()
            batcher.ask(sentences[number % len(sentences)])
            waits.append(time.perf_counter() - started)
            number += clients

    started = time.perf_counter()
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"seconds": time.perf_counter() - started, "each": waits}


if __name__ == "__main__":
    main()
