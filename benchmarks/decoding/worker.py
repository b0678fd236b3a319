"""A contender in a process of its own: `python -m benchmarks.decoding.worker MODULE MODE SHAPE`.

It answers each line of JSON on standard input with another. `{"job": ..., "seconds": 0}` is the first question about a job:
the answer has the `ids` of all translations, the `steps` of each batch and the `peak_gib` of memory up to now, and the
`seconds` of that first run. Any later question about it is answered by the seconds of as many runs as fit.
"""

import importlib
import json
import sys
import time

from benchmarks.decoding.decoder import Decoder
from benchmarks.decoding.jobs import Job
from benchmarks.memory import peak_gib
from benchmarks.shapes import SHAPES
from benchmarks.worker import answer, take_over_standard_output


def main():
    """Builds the contender, says that it is ready, and serves until its input is closed."""
    answers = take_over_standard_output()
    module, mode, shape = sys.argv[1:]
    decoder = importlib.import_module(module).make_decoder(SHAPES[shape], mode)
    answer(answers, {"ready": True})
    prepared = {}
    for line in sys.stdin:
        question = json.loads(line)
        job = Job(**question["job"])
        if job not in prepared:
            prepared[job] = decoder.prepare(job)
            answer(answers, first_run(decoder, job, prepared[job]))
        else:
            answer(answers, {"seconds": timed_runs(prepared[job], question["seconds"])})


def first_run(decoder: Decoder, job: Job, translate) -> dict:
    """Shows what is found, and what it takes."""
    started = time.perf_counter()
    found = translate()
    seconds = time.perf_counter() - started
    ids, steps = decoder.read(job, found)
    return {"seconds": [seconds], "ids": ids, "steps": steps, "peak_gib": peak_gib()}


def timed_runs(translate, seconds: float) -> list[float]:
    """Runs for about this long, at least once, and returns the seconds of each run."""
    results, stop = [], time.perf_counter() + seconds
    while not results or time.perf_counter() + min(results) / 2 < stop:
        started = time.perf_counter()
        translate()
        results.append(time.perf_counter() - started)
    return results


if __name__ == "__main__":
    main()
