"""TensorFlow's C runtime in processes of its own, also that of other versions of TensorFlow."""

import shutil
import subprocess
import sys
from pathlib import Path

from keras_transformer.serving import runtime


def alone(folder, *arguments, code=None, requests=""):
    """Runs a copy of the file by itself, in a folder where nothing else of ours is."""
    script = folder / "runtime.py"
    shutil.copy(runtime.__file__, script)
    command = [sys.executable, "-I", *(["-c", code] if code else [script]), *map(str, arguments)]
    return subprocess.run(command, input=requests, capture_output=True, text=True, cwd=folder, timeout=300, check=False)


def other_tensorflow(version: str) -> Path:
    """Installs another TensorFlow, without what only its Python part needs, and keeps it for the next time."""
    folder = Path.home() / ".cache" / "keras_transformer" / "runtimes" / version
    if not (folder / "complete").exists():
        packages = [f"tensorflow=={version}.*", f"tensorflow-text=={version}.*"]
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-compile",
            "--target",
            folder,
            *packages,
        ]
        subprocess.run(command, check=True, timeout=1800)
        (folder / "complete").touch()
    return folder
