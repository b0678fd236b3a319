"""A contender in a process of its own: `python -m benchmarks.importing.worker MODULE MODE FOLDER`, FOLDER being a checkpoint.

It answers as `benchmarks.decoding.worker` does.
"""

import importlib
import json
import sys

from benchmarks.decoding.jobs import Job
from benchmarks.decoding.worker import first_run, timed_runs
from benchmarks.worker import answer, take_over_standard_output


def main():
    """Builds the contender, says that it is ready, and serves until its input is closed."""
    answers = take_over_standard_output()
    module, mode, folder = sys.argv[1:]
    decoder = importlib.import_module(module).make_decoder(folder, mode)
    answer(answers, {"ready": True})
    prepared = {}
    for line in sys.stdin:
        question = json.loads(line)
        job = Job(**question["job"])
        if job in prepared:
            answer(answers, {"seconds": timed_runs(prepared[job], question["seconds"])})
        else:
            prepared[job] = decoder.prepare(job)
            answer(answers, first_run(decoder, job, prepared[job]))


if __name__ == "__main__":
    main()
