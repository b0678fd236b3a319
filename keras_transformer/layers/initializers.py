"""Initializers for the parts of a layer."""

import zlib

import keras


def initializer_for(initializer, part: str):
    """Returns an initializer of its own for one part of a layer.

    Handing the same initializer object to several parts would give them identical weights. A clone without a seed draws a fresh
    one; a clone of a seeded initializer gets a seed derived from the part's name, so that a model stays reproducible.
    A function is used as it is.

    Args:
        initializer: What `keras.initializers.get` takes.
        part: The name of the part, e.g. `"query"`.
    """
    initializer = keras.initializers.get(initializer)
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    if isinstance(config.get("seed"), int):
        config["seed"] = (config["seed"] + zlib.crc32(part.encode())) % 2**31
    return type(initializer).from_config(config)
