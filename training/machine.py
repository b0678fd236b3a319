"""What a run ran on: for its report."""

import importlib.metadata
import os
import platform
from pathlib import Path

import keras

import keras_transformer as kt

PACKAGES = ("keras", "numpy", "sentencepiece", "sacrebleu")


def processor_name() -> str:
    """Returns the processor's name as the system knows it."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine() -> str:
    """Names the processor, its cores, and the devices that the backend computes on."""
    return f"{processor_name()}, {os.cpu_count()} cores; computed on {', '.join(devices())}"


def devices() -> list[str]:
    """Returns the devices of the backend."""
    if keras.backend.backend() == "torch":
        import torch  # noqa: TID251

        return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())] or ["cpu:0"]
    return keras.distribution.list_devices()


def versions() -> dict[str, str]:
    """Returns the versions of all that had a part in the result."""
    found = {"python": platform.python_version(), "keras_transformer": kt.__version__}
    for package in (*PACKAGES, keras.backend.backend()):
        found[package] = importlib.metadata.version(package)
    return found
