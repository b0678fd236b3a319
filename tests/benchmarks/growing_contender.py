"""A contender whose steps cost nothing, and which cannot do every length."""

import time

from benchmarks.contenders.runner import Runner

TOO_LONG, TOO_SLOW = 400, 300


def make_runner(shape, mode):
    if shape.length == TOO_LONG and mode == "forgetful":
        raise MemoryError("no room for this length")
    if shape.length == TOO_SLOW and mode == "slow":
        time.sleep(60)
    seconds = {"quick": 0.5, "forgetful": 1.0, "slow": 2.0}[mode]
    return Runner(lambda steps: [seconds] * steps, num_parameters=0)
