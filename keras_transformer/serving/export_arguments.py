"""From a translator to a folder that TensorFlow Serving runs: `keras-transformer export RUN OUT`.

RUN is the folder of a run of `keras-transformer train`, or one that `Translator.save` wrote, whichever backend it was trained
on. OUT is the folder of the model, such as saved_models/en-de; the export becomes its next version when it has been written,
loaded in another process and compared with the translator.
"""

# Imports nothing of this package, so that `keras-transformer export --help` need not wait for Keras.
import argparse
from collections.abc import Sequence
from pathlib import Path

DTYPES = {None: None, "float32": "float32", "float16": "mixed_float16", "bfloat16": "mixed_bfloat16"}
DEVICES = ("cpu", "gpu")


def parse_arguments(argv: Sequence[str] | None, prog: str = "python -m keras_transformer.serving.export") -> argparse.Namespace:
    """Reads the command line of the export, under the name by which it was called."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a run, or of a saved translator")
    parser.add_argument("out", type=Path, help="the folder of the model, such as saved_models/en-de")
    parser.add_argument("--version", type=int, help="number of the version, larger than those there are (default: the next)")
    parser.add_argument("--max-source-tokens", type=int, help="where sources are cut (default: what the model takes)")
    parser.add_argument("--max-target-tokens", type=int, help="the most tokens of a translation")
    parser.add_argument("--max-beam-size", type=int, help="the widest beam that a request may ask for")
    parser.add_argument("--num-hypotheses", type=int, help="how many translations `nbest` returns")
    parser.add_argument("--dtype", choices=[name for name in DTYPES if name], help="compute in this precision")
    parser.add_argument("--device", choices=DEVICES, default="gpu", help="what the server computes on (default: gpu)")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=argparse.SUPPRESS, help="sizes the server may batch to")
    parser.add_argument("--samples", nargs="+", help="texts to compare and warm up with (default: of the run's test)")
    parser.add_argument("--languages", nargs=2, metavar="CODE", help="such as en de (default: the run's, where they are known)")
    parser.add_argument("--keep", type=int, help="how many versions to keep (default: all)")
    parser.add_argument(
        "--import", dest="imports", action="append", default=[], metavar="MODULE", help="a module with blocks of your own"
    )
    parser.add_argument("--settings", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(argv)
