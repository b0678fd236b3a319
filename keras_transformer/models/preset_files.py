"""A model as a directory: `config.json` and `model.weights.h5`, no code and no pickle."""

import json
import os
from pathlib import Path

import keras

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
    """Writes a model's config and weights; each file replaces an older one only when it is complete."""
    directory = Path(directory)
    config = json.dumps(model.get_config(), indent=2)
    directory.mkdir(parents=True, exist_ok=True)
    new_weights = directory / f"new.{WEIGHTS_FILE}"
    new_config = directory / f"new.{CONFIG_FILE}"
    try:
        model.save_weights(new_weights, overwrite=True)
        new_config.write_text(config + "\n", encoding="utf8")
        os.replace(new_weights, directory / WEIGHTS_FILE)
        os.replace(new_config, directory / CONFIG_FILE)
    finally:
        new_weights.unlink(missing_ok=True)
        new_config.unlink(missing_ok=True)


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
