"""Serving: exports for TensorFlow Serving, a client, a page and a server to try a model with, a runtime to check exports."""

import importlib

# Imported when they are first asked for: a client needs none of the rest.
HOMES = {
    "Client": "client",
    "export_saved_model": "export",
    "SavedModelSession": "runtime",
    "ServingError": "errors",
    "write_playground": "playground",
}

__all__ = ["Client", "SavedModelSession", "ServingError", "export_saved_model", "write_playground"]


def __getattr__(name: str):
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *HOMES})
