"""A contender in a process of its own: `python -m benchmarks.worker MODULE MODE SHAPE`.

It answers each line on standard input, a number of seconds, with a line of JSON: the seconds of every step that fitted.
"""

import importlib
import json
import os
import sys

from benchmarks.shapes import SHAPES

WARM_UP_STEPS = 2


def main():
    """Builds the contender, says that it is ready, and serves until its input is closed."""
    answers = take_over_standard_output()
    module, mode, shape = sys.argv[1:]
    runner = importlib.import_module(module).make_runner(SHAPES[shape], mode)
    runner.run(1)  # Compiles.
    step_seconds = min(runner.run(WARM_UP_STEPS))
    answer(answers, {"num_parameters": runner.num_parameters})
    for line in sys.stdin:
        seconds = runner.run(max(1, round(float(line) / step_seconds)))
        step_seconds = min(step_seconds, *seconds)
        answer(answers, {"seconds": seconds})


def take_over_standard_output():
    """Keeps standard output for the answers, and sends to standard error what libraries print."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def answer(answers, message: dict):
    """Writes one line of JSON."""
    print(json.dumps(message), file=answers, flush=True)


if __name__ == "__main__":
    main()
