"""From a Marian checkpoint to a folder that TensorFlow Serving runs; see `keras_transformer.bridges.marian.arguments`."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from keras_transformer.bridges.marian.arguments import parse_arguments
from keras_transformer.bridges.marian.importing import from_marian
from keras_transformer.folders import check_replaceable

EXPORT = "keras_transformer.serving.export"


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what the command line asks for and returns its exit code: 2 if a user can mend what is wrong."""
    options, others = parse_arguments(arguments)
    with contextlib.ExitStack() as stack:
        try:
            if options.save is not None:
                check_replaceable(options.save, "translator.json")
            translator = from_marian(options.model, revision=options.revision)
            saved = options.save or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "translator"
            translator.save(saved)
        except (ValueError, OSError, ImportError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        return export(saved, options.out, others)


def export(saved: Path, out: Path, options: list[str]) -> int:
    """Runs the command that exports a saved translator, on TensorFlow."""
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-m", EXPORT, str(saved), str(out), *options], env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
