"""All that training changes in a model, in groups of variables, and the random numbers outside of it."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import keras
import numpy as np

from keras_transformer.callbacks.arrays import named_arrays, names_of, to_array
from keras_transformer.callbacks.non_finite import ADVICE

BEFORE_FIT = ("weights", "seeds", "optimizer")


def state_variables(model: keras.Model) -> dict[str, list]:
    """Returns the variables that training changes.

    Args:
        model: A compiled model.

    Returns:
        The groups `weights`, `seeds` (what dropout draws from), `optimizer` (moments, number of steps, accumulated gradients,
        averages) and `metrics`.
    """
    weights = model.weights
    own = {id(variable) for variable in weights}
    return {
        "weights": weights,
        "seeds": [variable for variable in model.variables if id(variable) not in own],
        "optimizer": model.optimizer.variables,
        "metrics": model.metrics_variables,
    }


def prepare(model: keras.Model):
    """Makes the variables of a model's optimizer, which Keras would make at the first step."""
    if not model.built or not getattr(model, "optimizer", None):
        raise ValueError(
            "The state of a training can be restored only into a model that has weights and an optimizer: give it an input "
            f"shape, and call `compile`. Received: {model.name}, built={model.built}, compiled={model.compiled}"
        )
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


def layout(variables: list) -> list[list]:
    """Returns paths and shapes, for JSON."""
    return [[variable.path, list(variable.shape)] for variable in variables]


def check_layout(group: str, saved: list[list], variables: list, where: Path):
    """Raises a `ValueError` if arrays of these paths and shapes do not fit the variables of a model."""
    advice = (
        "Make the model, its optimizer and its metrics as they were when the checkpoint was written, or begin a new run in "
        "another directory"
    )
    for (path, shape), variable in zip(saved, variables, strict=False):
        if list(variable.shape) != list(shape):
            raise ValueError(
                f"The checkpoint {where} does not fit this model: in its {group}, {path} has the shape {tuple(shape)}, and "
                f"here {variable.path} has {tuple(variable.shape)}. {advice}"
            )
    if len(saved) != len(variables):
        raise ValueError(
            f"The checkpoint {where} does not fit this model: it has {len(saved)} variables among its {group}, and here "
            f"there are {len(variables)}. {advice}"
        )


def all_arrays(groups: dict[str, list]) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the arrays of a checkpoint."""
    for group, variables in groups.items():
        yield from named_arrays(group, variables)
    for name, state in random_states().items():
        yield f"random/{name}", state


def finite(arrays: Iterable[tuple[str, np.ndarray]], when: str) -> Iterator[tuple[str, np.ndarray]]:
    """Passes arrays on; raises a `FloatingPointError` for weights or moments that are no numbers."""
    for name, array in arrays:
        if name.startswith(("weights/", "optimizer/")) and not np.isfinite(array).all():
            raise FloatingPointError(
                f"{name.split('/', 2)[-1]} is not finite {when}: nothing is written, and training ends here. {ADVICE}"
            )
        yield name, array


def assign_group(archive: np.lib.npyio.NpzFile, group: str, variables: list):
    """Puts saved arrays into variables, one at a time."""
    for name, variable in zip(names_of(archive, group), variables, strict=True):
        variable.assign(archive[name])


def keeps_average(optimizer) -> bool:
    """Tells whether an optimizer keeps a moving average of the weights (`use_ema=True`)."""
    return bool(getattr(getattr(optimizer, "inner_optimizer", optimizer), "use_ema", False))


@contextlib.contextmanager
def final_weights(model: keras.Model) -> Iterator[None]:
    """Lets a model have, for a while, the weights that `fit` would end with now: the moving average, if there is one."""
    if not keeps_average(model.optimizer):
        yield
        return
    own = copies(model.trainable_variables)
    model.optimizer.finalize_variable_values(model.trainable_variables)
    try:
        yield
    finally:
        put_back(model.trainable_variables, own)


def copies(variables: list) -> list[np.ndarray]:
    """Copies the values of variables."""
    return [np.array(to_array(variable)) for variable in variables]


def put_back(variables: list, values: list[np.ndarray]):
    """Gives variables the values that `copies` returned."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def random_states() -> dict[str, np.ndarray]:
    """Returns the states of random numbers that are not a model's own: torch draws dropout from its global generators."""
    if keras.backend.backend() != "torch":
        return {}
    import torch  # noqa: TID251

    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda{number}": state for number, state in enumerate(torch.cuda.get_rng_state_all())}
    return {name: state.numpy() for name, state in states.items()}


def set_random_states(states: dict[str, np.ndarray]):
    """Restores what `random_states` returned; of another backend's there is nothing to restore."""
    if keras.backend.backend() != "torch" or not states:
        return
    import torch  # noqa: TID251

    torch.set_rng_state(torch.from_numpy(states["cpu"]))
    for number in range(torch.cuda.device_count()):
        if f"cuda{number}" in states:
            torch.cuda.set_rng_state(torch.from_numpy(states[f"cuda{number}"]), number)
