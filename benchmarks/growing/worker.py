"""A contender that trains on batches of any size: `python -m benchmarks.growing.worker MODULE MODE SHAPE`.

It answers each line of JSON on standard input with another: `{"batch": {"batch_size": 4, "length": 512}, "seconds": 1}` with
the `seconds` of every step that fitted. The first question about a batch builds and compiles, and is answered by a few steps.
"""

import dataclasses
import gc
import importlib
import json
import sys

from benchmarks.shapes import SHAPES
from benchmarks.worker import WARM_UP_STEPS, answer, take_over_standard_output


def main():
    """Imports the contender, says that it is ready, and serves until its input is closed."""
    answers = take_over_standard_output()
    module, mode, shape = sys.argv[1:]
    make_runner = importlib.import_module(module).make_runner
    answer(answers, {"ready": True})
    batch = runner = None
    for line in sys.stdin:
        question = json.loads(line)
        if question["batch"] != batch:
            batch, runner = question["batch"], None
            gc.collect()  # Two models would be more than the process may have.
            runner = make_runner(dataclasses.replace(SHAPES[shape], **batch), mode)
            runner.run(1)  # Compiles.
            seconds = runner.run(WARM_UP_STEPS)
        else:
            seconds = runner.run(max(1, round(question["seconds"] / min(seconds))))
        answer(answers, {"seconds": seconds})


if __name__ == "__main__":
    main()
