"""Run in a fresh process, on any backend: loads the models of a folder and prints how far their logits are from those saved.

KERAS_BACKEND=jax python -m tests.load_saved FOLDER
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np

import keras_transformer as kt
import tests.user_blocks  # noqa: F401  (registers the user's classes)


def differences(folder: Path) -> dict:
    saved = np.load(folder / "expected.npz")
    inputs = {name: saved[name] for name in ("source_ids", "target_ids")}
    found = {}
    for path in sorted(folder.glob("*.keras")):
        model = keras.models.load_model(path)
        found[path.name] = difference(model, inputs, saved[path.stem])
    for path in sorted(folder.glob("*.preset")):
        model = kt.Transformer.from_preset(path)
        found[path.name] = difference(model, inputs, saved[path.stem])
    return found


def difference(model, inputs, expected):
    return float(np.abs(keras.ops.convert_to_numpy(model(inputs)) - expected).max())


if __name__ == "__main__":
    print(json.dumps({"backend": keras.backend.backend(), **differences(Path(sys.argv[1]))}))
