"""Loads Keras before all else, and says in one line what to do if its backend cannot be loaded."""

import os

try:
    import keras  # noqa: F401
except (ImportError, ValueError) as error:
    chosen = os.environ.get("KERAS_BACKEND")
    raise ImportError(
        f"Keras cannot be loaded: {error}. Set KERAS_BACKEND to one of the backends tensorflow, jax and torch, and install it "
        'if it is missing: pip install "keras3-transformer[jax]", or "keras3-transformer[torch]"; tensorflow comes with the '
        "package. "
        f"Received: {f'KERAS_BACKEND={chosen}' if chosen else 'no KERAS_BACKEND, so that keras.json decides'}"
    ) from None
