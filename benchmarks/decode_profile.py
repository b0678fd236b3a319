"""Shows where the time of a translation goes: `python -m benchmarks.decode_profile`.

One thread translates a batch in the graph of `benchmarks.decode`, with the base shape, beam 4 and 24 tokens, while TensorFlow
notes when each operation begins and ends.
"""

import argparse
import collections
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.page import machine, write_section

KINDS = {
    "products with weights": ("MatMul",),
    "products of attention": ("BatchMatMulV2",),
    "softmax, layer normalization, residuals": (
        *("Softmax", "LogSoftmax", "Mean", "SquaredDifference", "Rsqrt", "AddV2", "AddN", "Mul", "Sub", "RealDiv", "Sum"),
    ),
    "masks": ("SelectV2", "LogicalAnd", "LogicalOr", "LogicalNot", "Equal", "Less", "GreaterEqual", "Greater", "Any", "All"),
    "writing and gathering": ("InplaceUpdate", "GatherV2", "ConcatV2", "Pad", "PadV2", "TensorScatterUpdate", "Empty", "Fill"),
    "transposing": ("Transpose",),
    "choosing tokens": ("TopKV2", "ArgMax", "Max"),
}
OTHER = "everything else, the executor included"
WAITING = ("Run", "graph_run")  # The thread that asked for the translation.


def main():
    """Profiles what the command line asks for, and prints or writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32], help="batch sizes")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Markdown page whose section is to be replaced")
    options = parser.parse_args()
    # Set before TensorFlow is imported: with one thread, the times of operations add up to that of the whole.
    os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    shares = {batch_size: shares_of(profile(batch_size)) for batch_size in options.batches}
    text = table(shares)
    print(text)
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.decode_profile", *sys.argv[1:]])
        write_section(options.write, "decode_profile", section(text, command))


def profile(batch_size: int) -> dict[str, float]:
    """Returns the seconds that each kind of operation took."""
    import tensorflow as tf

    from benchmarks.decoding.jobs import Job
    from benchmarks.decoding.ours import make_decoder
    from benchmarks.shapes import SHAPES

    run = make_decoder(SHAPES["base"], "graph").prepare(Job("24", beam_size=4, batch_size=batch_size))
    run()
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder, tf.profiler.experimental.ProfilerOptions(host_tracer_level=2))
        run()
        tf.profiler.experimental.stop()
        return own_times(next(Path(folder).rglob("*.xplane.pb")))


def own_times(trace: Path) -> dict[str, float]:
    """Reads from a trace how long each kind of operation took, without those that ran within it."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(trace.read_bytes())
    seconds = collections.Counter()
    for plane in space.planes:
        if "CPU" in plane.name:
            for line in plane.lines:
                names = plane.event_metadata
                seconds.update(times_of_line((e.offset_ps, e.duration_ps, names[e.metadata_id].name) for e in line.events))
    return seconds


def times_of_line(events: Iterable[tuple[int, int, str]]) -> dict[str, float]:
    """Adds up the times of a thread's events, each a begin, a duration and a name; what is within another is taken from it."""
    seconds, around = collections.Counter(), []
    for begin, duration, name in sorted(events, key=lambda event: (event[0], -event[1])):
        while around and around[-1][0] <= begin:
            around.pop()
        if around:
            seconds[around[-1][1]] -= duration / 1e12
        kind = name.rpartition(":")[2]
        seconds[kind] += duration / 1e12
        around.append((begin + duration, kind))
    return seconds


def shares_of(seconds: dict[str, float]) -> dict[str, float]:
    """Returns the share of each group of operations."""
    groups = {kind: group for group, kinds in KINDS.items() for kind in kinds}
    shares = dict.fromkeys([*KINDS, OTHER], 0.0)
    seconds = {kind: time for kind, time in seconds.items() if kind not in WAITING}
    whole = sum(seconds.values())
    for kind, time in seconds.items():
        plain = re.sub("^_(Mkl)?(Native)?(Fused)?", "", kind)  # An operation of oneDNN, or several in one.
        shares[groups.get(plain, OTHER)] += time / whole
    return shares


def table(shares: dict[int, dict[str, float]]) -> str:
    """Makes a Markdown table: a row for each group of operations, a column for each batch size."""
    lines = ["| | " + " | ".join(f"batch {size}" for size in shares) + " |", "| --- |" + " ---: |" * len(shares)]
    for group in [*KINDS, OTHER]:
        lines.append(f"| {group} | " + " | ".join(f"{one[group]:.0%}" for one in shares.values()) + " |")
    return "\n".join(lines)


def section(text: str, command: str) -> str:
    """Returns the section of the page."""
    return f"""## Where the time of decoding goes

Shares of the time of one thread in our TensorFlow graph, base shape, beam 4, 24 tokens.

{text}

Measured on {machine()}, with

    {command}"""


if __name__ == "__main__":
    main()
