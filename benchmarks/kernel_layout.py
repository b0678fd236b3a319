"""Products of few rows with kernels as they are and with unused columns: `python -m benchmarks.kernel_layout`.

TensorFlow multiplies rows by the kernels of the base shape with one thread, as a step of a search does. See
`keras_transformer.layers.spaced_kernel`.
"""

import argparse
import os
import shlex
import sys
import time
from pathlib import Path

from benchmarks.page import machine, write_section

KERNELS = ((512, 512), (512, 2048), (2048, 512))
ROWS = (4, 16, 64, 128, 1024)
PRODUCTS = 4  # In one run of a graph, so that starting it counts little.
NOTES = """\
Thousand million operations a second of one thread, in products of some rows with kernels of the base shape: as they are, and
with 16 unused columns, which are cut off the result. Best of many runs, the two in turns."""


def main():
    """Measures all sizes, and prints or writes a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each size")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Markdown page whose section is to be replaced")
    options = parser.parse_args()
    os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    text = table({(kernel, rows): speeds(kernel, rows, options.seconds) for kernel in KERNELS for rows in ROWS})
    print(text)
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.kernel_layout", *sys.argv[1:]])
        section = f"## Kernels with unused columns\n\n{NOTES}\n\n{text}\n\nMeasured on {machine()}, with\n\n    {command}"
        write_section(options.write, "kernel_layout", section)


def speeds(kernel: tuple[int, int], rows: int, seconds: float) -> list[float]:
    """Returns the operations a second of both layouts, the plain one first."""
    import keras
    import tensorflow as tf

    from keras_transformer.layers.spaced_kernel import spaced_dense

    dense = keras.layers.Dense(kernel[1])
    dense.build((None, kernel[0]))
    ways = [repeated(dense), repeated(spaced_dense(dense))]
    x, best, stop = tf.random.normal((rows, kernel[0])), [float("inf")] * 2, time.perf_counter() + seconds
    while time.perf_counter() < stop:
        for number, way in enumerate(ways):
            started = time.perf_counter()
            way(x)
            best[number] = min(best[number], time.perf_counter() - started)
    return [2 * rows * kernel[0] * kernel[1] * PRODUCTS / one for one in best]


def repeated(product):
    """Returns a graph of some products, of which nothing but a few numbers is kept."""
    import tensorflow as tf

    def run(x):
        return sum(product(x + number)[0, 0] for number in range(PRODUCTS))

    return tf.function(run, autograph=False)


def table(found: dict) -> str:
    """Makes a Markdown table."""
    lines = ["| kernel | rows | as it is | with unused columns | ratio |", "| --- | ---: | ---: | ---: | ---: |"]
    for (kernel, rows), (plain, spaced) in found.items():
        sizes = " x ".join(f"{size:,}" for size in kernel)
        lines.append(f"| {sizes} | {rows:,} | {plain / 1e9:.0f} | {spaced / 1e9:.0f} | {spaced / plain:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
