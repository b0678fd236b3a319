"""A model as a directory: `config.json` and `model.weights.h5`, no code and no pickle."""

import io
import json
import os
from pathlib import Path

import keras

from keras_transformer.folders import write_files
from keras_transformer.json_files import read_json
from keras_transformer.models.presets import PRESETS

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.weights.h5"


def registered_name(cls: type) -> str:
    """Returns the name under which a block class can be found again when a saved model is loaded."""
    name = keras.saving.get_registered_name(cls)
    if keras.saving.get_registered_object(name) is not cls:
        raise ValueError(
            f"A model can be saved only if its block classes are registered. Put "
            f'`@keras.saving.register_keras_serializable(package="...")` above the class. Received: {cls.__name__}'
        )
    return name


def registered_class(name: str, custom_objects: dict | None = None) -> type:
    """Returns the block class that was registered under a name."""
    cls = keras.saving.get_registered_object(name, custom_objects)
    if cls is None:
        raise ValueError(
            "The saved model uses a block class that is not registered here. Import the module that defines it before "
            "loading. "
            f"Received: {name!r}"
        )
    return cls


def write_preset(directory: str | os.PathLike, model: keras.Model):
    """Writes a model's config and weights, which replace older ones only when both are complete."""
    config = json.dumps(model.get_config(), indent=2)
    weights = WeightsInMemory()
    model.save_weights(weights)
    write_files(directory, {WEIGHTS_FILE: weights.getbuffer(), CONFIG_FILE: f"{config}\n".encode()})


class WeightsInMemory(io.BytesIO):
    """What Keras takes for a file of weights: HDF5 ends the process, without a message, when a disk is full."""

    def __str__(self) -> str:
        return WEIGHTS_FILE


def read_preset_config(directory: str | os.PathLike) -> dict:
    """Reads what `write_preset` wrote into `config.json`."""
    path = Path(directory) / CONFIG_FILE
    if not path.is_file():
        names = ", ".join(f'"{name}"' for name in PRESETS)
        raise ValueError(
            f"A preset is one of {names}, or a directory that `save_to_preset` wrote. Received: {str(directory)!r}, where "
            f"there is no file {CONFIG_FILE}"
        )
    return read_json(path)


def load_preset_weights(directory: str | os.PathLike, model: keras.Model):
    """Loads what `write_preset` wrote into `model.weights.h5`."""
    path = Path(directory) / WEIGHTS_FILE
    if not path.is_file():
        raise ValueError(f"The preset is incomplete: {path} is missing. Save it again, or copy the whole directory.")
    try:
        model.load_weights(path)
    except (ValueError, OSError) as error:
        raise ValueError(
            f"The weights in {path} do not fit the model. If you changed its shape with overrides, leave those away; "
            "otherwise the file is damaged. "
            f"Keras says: {error}"
        ) from error
    for variable in model.weights:
        if keras.backend.is_float_dtype(variable.dtype) and not keras.ops.all(keras.ops.isfinite(variable)):
            raise ValueError(
                f"The weights in {path} are of no use: {variable.path} has values that are NaN or infinite. Take an earlier "
                "checkpoint of the training."
            )
