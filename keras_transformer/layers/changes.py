"""What happens to a layer after it was made: frozen weights, quantization and low-rank updates (LoRA).

The config of a layer says how to make it anew, and its parts with it. What was then done to one of these parts is said here,
in a dictionary that JSON can hold, so that it can be done again to a layer that is made from the config.
"""

import gc
from collections.abc import Iterator

import keras


def changes_of(layer: keras.layers.Layer) -> dict:
    """Returns what was changed in a layer and in its parts, for `apply_changes`.

    Args:
        layer: A layer that has been built.

    Returns:
        A dictionary, empty if nothing was changed: `trainable`, the flags of parts that differ from what they are parts of, and
        of weights that differ from their layers; `quantized`, how which parts are; `low_rank`, ranks and alphas of parts.
    """
    parts = named_parts(layer)
    changes = {
        "trainable": flags_of(parts),
        "quantized": quantization_of(parts),
        "low_rank": {
            name: {"rank": part.lora_rank, "alpha": part.lora_alpha}
            for name, part in parts.items()
            if getattr(part, "lora_enabled", False)
        },
    }
    return {kind: found for kind, found in changes.items() if found}


def apply_changes(layer: keras.layers.Layer, changes: dict):
    """Changes a new layer, and its parts, as another one of its config had been changed; weights are loaded afterwards.

    Args:
        layer: A layer that has been built.
        changes: What `changes_of` returned.
    """
    parts = named_parts(layer)
    flags = changes.get("trainable", {})
    for name in filter(parts.__contains__, flags):
        parts[name].trainable = flags[name]
    for group in changes.get("quantized", []):
        config = keras.saving.deserialize_keras_object(group["config"])
        quantize(layer, [part_of(parts, name) for name in group["parts"]], group["mode"], config)
    for name, update in changes.get("low_rank", {}).items():
        part_of(parts, name).enable_lora(update["rank"], lora_alpha=update["alpha"])
    weights = dict(named_weights(parts))
    for name in flags.keys() - parts.keys():
        part_of(weights, name).trainable = flags[name]


def named_parts(layer: keras.layers.Layer) -> dict[str, keras.layers.Layer]:
    """Returns a layer and all that it is made of by names such as `encoder_block_0/self_attention/query`; its own is `""`."""
    found, seen = {}, set()

    def visit(name, part):
        if id(part) not in seen:
            seen.add(id(part))
            found[name] = part
            for child in part._flatten_layers(include_self=False, recursive=False):
                visit(f"{name}/{child.name}".lstrip("/"), child)

    visit("", layer)
    return found


def named_weights(parts: dict[str, keras.layers.Layer]) -> Iterator[tuple[str, keras.Variable]]:
    """Yields the weights of parts that are none of their parts' own, by names such as `encoder_norm/gamma`."""
    for name, part in parts.items():
        inner = {id(weight) for child in part._flatten_layers(include_self=False) for weight in child.weights}
        for weight in part.weights:
            if id(weight) not in inner:
                yield f"{name}/{weight.name}".lstrip("/"), weight


def part_of(named: dict, name: str):
    """Returns a part or a weight by its name."""
    if name not in named:
        raise ValueError(
            "The saved model was changed in a part that this one does not have. Load it without overrides of its shape and "
            f"blocks. Received: {name!r}"
        )
    return named[name]


def flags_of(parts: dict[str, keras.layers.Layer]) -> dict[str, bool]:
    """Returns which parts and weights are frozen or trainable other than what they belong to, outer parts first."""
    flags, outer = {}, {name: part.trainable for name, part in parts.items()}
    for name, part in parts.items():
        if part.trainable != (outer[name.rpartition("/")[0]] if name else True):
            flags[name] = part.trainable
    for name, weight in named_weights(parts):
        owner = parts[name.rpartition("/")[0]]
        is_made_so = owner.quantization_mode is not None and weight.name != "bias"
        if weight.trainable != owner.trainable and keras.backend.is_float_dtype(weight.dtype) and not is_made_so:
            flags[name] = weight.trainable
    return flags


def quantization_of(parts: dict[str, keras.layers.Layer]) -> list[dict]:
    """Returns the quantized parts in groups: `mode`, the `config` of Keras' `quantize`, and the names of the `parts`."""
    groups = []
    for name, part in parts.items():
        if part.quantization_mode is not None:
            config = keras.saving.serialize_keras_object(getattr(part, "quantization_config", None))
            alike = [group for group in groups if (group["mode"], group["config"]) == (part.quantization_mode, config)]
            if not alike:
                groups.append({"mode": part.quantization_mode, "config": config, "parts": []})
            (alike or groups)[-1]["parts"].append(name)
    return groups


def quantize(layer: keras.layers.Layer, parts: list[keras.layers.Layer], mode: str, config):
    """Quantizes parts of a layer that are not quantized yet."""
    gc.freeze()  # Keras collects garbage after each layer: a third of a second, unless what was there before is left out.
    try:
        for part in parts:
            if part.quantization_mode is None:
                part.quantize(mode, type_check=False, config=config)
    finally:
        gc.unfreeze()
    if keras.backend.backend() == "torch":
        for part in layer._flatten_layers():
            part._track_variables()  # As `keras.Model.quantize` does, to let go of the old weights.


class QuantizedParts:
    """Lets files of functional models say which parts are quantized: a base class of layers that make their own parts."""

    def get_build_config(self):
        config, groups = super().get_build_config(), quantization_of(named_parts(self))
        return {**config, "quantized": groups} if config and groups else config

    def build_from_config(self, config):
        super().build_from_config(config)
        apply_changes(self, {"quantized": config.get("quantized", [])})


class LowRankUpdates(keras.layers.Layer):
    """What files keep of low-rank updates, apart from each other and from what they are added to.

    Keras' layers write their kernels with the updates added, and read them back as such, beside updates of zero. Neither of
    their two factors has a gradient then.

    Args:
        adapted: The layers with low-rank updates.
    """

    def __init__(self, adapted: list[keras.layers.Layer]):
        super().__init__()
        self.adapted = adapted

    def own_variables(self) -> list[keras.Variable]:
        """Returns the weights of the layers, in an order that does not depend on how they came about."""
        return [weight for layer in self.adapted for weight in sorted(layer.weights, key=lambda weight: weight.name)]

    def save_own_variables(self, store):
        for number, variable in enumerate(self.own_variables()):
            store[str(number)] = variable

    def load_own_variables(self, store):
        if not store.keys():  # A file of a model without updates: they begin anew.
            for variable in self.own_variables():
                if variable.name.startswith("lora") and variable.name.endswith("_a"):
                    variable.assign(keras.initializers.HeUniform()(variable.shape, variable.dtype))
        for number, variable in enumerate(self.own_variables() if store.keys() else []):
            variable.assign(store[str(number)])
