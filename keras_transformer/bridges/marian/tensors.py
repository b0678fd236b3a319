"""The tensors of a checkpoint, by name: data alone, whatever the file holds."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keras_transformer.bridges.marian.files import CheckpointFolder

SAFETENSORS, PICKLED = "model.safetensors", "pytorch_model.bin"
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


@dataclass(frozen=True)
class Tensors:
    """Tensors of a file.

    Attributes:
        origin: The file, for error messages.
        shapes: The shape of each tensor.
        load: Returns a tensor of this name as a float32 array.
    """

    origin: str
    shapes: dict[str, tuple[int, ...]]
    load: Callable[[str], np.ndarray]

    def read(self, name: str) -> np.ndarray:
        """Returns a tensor as a float32 array of finite numbers."""
        array = self.load(name)
        if not np.isfinite(array).all():
            raise ValueError(f"{self.origin}: {name} has values that are not finite numbers. The file is damaged")
        return array


def open_tensors(folder: CheckpointFolder) -> Tensors:
    """Opens the weights of a checkpoint."""
    for name, opener in {SAFETENSORS: open_safetensors, PICKLED: open_pickled}.items():
        path = folder.find(name)
        if path is not None:
            return opener(path, folder.origin(name))
    raise FileNotFoundError(
        f"There are no weights in {folder.directory}: {SAFETENSORS} or {PICKLED} is wanted, as one file. Weights of other "
        "kinds, and those in several parts, are not read"
    )


def open_safetensors(path, origin: str) -> Tensors:
    """Opens a file of safetensors."""
    try:
        import safetensors
    except ImportError as error:
        raise ImportError(f'{SAFETENSORS} needs safetensors: pip install "keras3-transformer[marian]"') from error
    try:
        entries = dict(safetensors.deserialize(path.read_bytes()))
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{origin} is not a whole file of safetensors ({error}). Was it cut off while it was copied?"
        ) from error
    shapes = {name: tuple(entry["shape"]) for name, entry in entries.items()}
    return Tensors(origin, shapes, lambda name: as_float32(entries[name], f"{origin}: {name}"))


def as_float32(entry: dict, origin: str) -> np.ndarray:
    """Makes an array of an entry of safetensors."""
    if entry["dtype"] == "BF16":  # The upper half of a float32.
        array = (np.frombuffer(entry["data"], "<u2").astype(np.uint32) << 16).view(np.float32)
    elif entry["dtype"] in TYPES:
        array = np.frombuffer(entry["data"], TYPES[entry["dtype"]]).astype(np.float32)
    else:
        raise ValueError(f"{origin} must hold floating-point numbers. Received: {entry['dtype']}")
    return array.reshape(entry["shape"])


def open_pickled(path, origin: str) -> Tensors:
    """Opens a file of `torch.save` with the loader that makes tensors only, and runs nothing."""
    try:
        import torch  # noqa: TID251
    except ImportError as error:
        raise ImportError(
            f'{PICKLED} needs torch: pip install "keras3-transformer[torch]". Or take a checkpoint that has {SAFETENSORS}'
        ) from error
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # A damaged file may raise anything here.
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{origin} holds more than tensors, or is damaged; nothing of it was executed ({type(error).__name__}: {reason})"
        ) from error
    if not isinstance(state, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in state.values()):
        raise ValueError(f"{origin} must hold tensors by name. Received: {type(state).__name__} of other things")
    wrong = [name for name, tensor in state.items() if not tensor.is_floating_point()]
    if wrong:
        raise ValueError(f"{origin}: {wrong[0]} must hold floating-point numbers. Received: {state[wrong[0]].dtype}")
    shapes = {str(name): tuple(tensor.shape) for name, tensor in state.items()}
    return Tensors(origin, shapes, lambda name: state[name].detach().to(torch.float32).numpy())
