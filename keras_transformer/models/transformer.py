"""The Transformer (section 3 and figure 1 of the paper)."""

import functools
import inspect
import os

import keras

from keras_transformer.layers import DecoderBlock, EncoderBlock
from keras_transformer.layers.changes import LowRankUpdates, apply_changes, changes_of
from keras_transformer.models.config import TransformerConfig
from keras_transformer.models.parts import make_parts
from keras_transformer.models.preset_files import (
    load_preset_weights,
    read_preset_config,
    registered_class,
    registered_name,
    write_preset,
)
from keras_transformer.models.presets import PRESETS

CONSTRUCTOR_ARGUMENTS = (
    "encoder_block",
    "encoder_block_options",
    "decoder_block",
    "decoder_block_options",
    "dtype",
    "name",
)


@keras.saving.register_keras_serializable(package="keras_transformer")
class Transformer(keras.Model):
    """The encoder-decoder Transformer as a functional Keras model.

    Its inputs are `{"source_ids": (B, S), "target_ids": (B, T)}`, integers; its output is the float32 logits `(B, T, V)` of a
    layer named `logits`. `target_ids` is the start id and the sentence, the labels are the sentence and the end id.

    Args:
        config: The `TransformerConfig` to build.
        encoder_block: Class of the encoder blocks: `EncoderBlock` or one of your own with its constructor and call arguments.
            For saving, register it with `keras.saving.register_keras_serializable`.
        encoder_block_options: Further constructor arguments of the encoder blocks, a dictionary.
        decoder_block: Class of the decoder blocks: `DecoderBlock` or one of your own.
        decoder_block_options: Further constructor arguments of the decoder blocks, a dictionary.
        dtype: Dtype policy of all layers, e.g. `"mixed_bfloat16"`. Defaults to the global policy.
        name: Name of the model.

    Example:

    >>> config = TransformerConfig(vocabulary_size=8000, model_dim=64, feed_forward_dim=128, num_heads=4)
    >>> model = Transformer(config)
    >>> ids = keras.ops.ones((2, 5), dtype="int32")
    >>> model({"source_ids": ids, "target_ids": ids}).shape
    (2, 5, 8000)
    """

    def __init__(
        self,
        config: TransformerConfig,
        encoder_block: type | None = None,
        encoder_block_options: dict | None = None,
        decoder_block: type | None = None,
        decoder_block_options: dict | None = None,
        dtype=None,
        name: str = "transformer",
    ):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        encoder_block = encoder_block or EncoderBlock
        decoder_block = decoder_block or DecoderBlock

        # === Layers ===
        parts = make_parts(config, policy, encoder_block, encoder_block_options, decoder_block, decoder_block_options)

        # === Functional model ===
        source_ids = keras.Input((None,), dtype="int32", name="source_ids")
        target_ids = keras.Input((None,), dtype="int32", name="target_ids")
        source_mask = parts.source_mask(source_ids)
        encoded = parts.encode(source_ids, source_mask)
        logits = parts.decode(target_ids, encoded, source_mask)
        super().__init__(inputs={"source_ids": source_ids, "target_ids": target_ids}, outputs=logits, name=name)
        self.parts = parts

        # === Config ===
        self.config = config
        self.encoder_block = encoder_block
        self.encoder_block_options = dict(encoder_block_options or {})
        self.decoder_block = decoder_block
        self.decoder_block_options = dict(decoder_block_options or {})
        self.dtype_policy = policy

    @functools.wraps(keras.Model.fit)
    def fit(self, *args, **kwargs):
        return super().fit(**in_own_order(inspect.signature(super().fit).bind(*args, **kwargs).arguments))

    def train_step(self, *args):
        """Is called by `fit`. See `keras_transformer.parallel_sentences` for the parts that a step can have on TensorFlow."""
        if keras.backend.backend() == "tensorflow":
            from keras_transformer.models.divided_step import divided_train_step, parts_of_step

            if (count := parts_of_step(self)) > 1:
                return divided_train_step(self, *args, count)
        return super().train_step(*args)

    @functools.wraps(keras.Model.evaluate)
    def evaluate(self, *args, **kwargs):
        arguments = inspect.signature(super().evaluate).bind(*args, **kwargs).arguments
        return super().evaluate(**in_own_order(arguments, fitting=False))

    def encode(self, source_ids, source_mask=None, training=None):
        """Runs the encoder.

        Args:
            source_ids: Integer tensor `(B, S)`.
            source_mask: Boolean tensor `(B, S)`, True at real tokens. Defaults to all that are not padding.
            training: Whether dropout is at work.

        Returns:
            A float tensor `(B, S, M)`.
        """
        if source_mask is None:
            source_mask = self.parts.source_mask(source_ids)
        return self.parts.encode(source_ids, source_mask, training=training)

    def make_cache(self, encoded, source_mask, length: int) -> dict:
        """Makes the cache for decoding up to `length` tokens step by step.

        Args:
            encoded: What `encode` returned, `(B, S, M)`.
            source_mask: Boolean tensor `(B, S)`, True at the real tokens of the source.
            length: Number of target positions to make room for.

        Returns:
            A dictionary of dictionaries of tensors of fixed shape, batch first.
        """
        caches = {block.name: block.make_cache(encoded, length) for block in self.parts.decoder_blocks}
        return {"source_mask": source_mask, **caches}

    def decode_step(self, target_ids, positions, cache: dict):
        """Runs the decoder on the next tokens only; what came before is in the cache.

        Args:
            target_ids: Integer tensor `(B, T)`, usually with T = 1.
            positions: Integer tensor `(T,)` or `(B, T)`, where these tokens stand in the target, from 0.
            cache: What `make_cache` or the step before returned.

        Returns:
            A tuple: float32 logits `(B, T, V)`, and the cache with these tokens written into it.

        Example:

        >>> model = Transformer.from_preset("tiny", vocabulary_size=100)
        >>> source_ids = keras.ops.array([[5, 6, 7, 2]])
        >>> encoded = model.encode(source_ids)
        >>> cache = model.make_cache(encoded, source_ids != 0, length=20)
        >>> start = keras.ops.array([[model.config.start_id]])
        >>> logits, cache = model.decode_step(start, keras.ops.array([0]), cache)
        >>> logits.shape
        (1, 1, 100)
        """
        return self.parts.decode_step(target_ids, positions, cache)

    def enable_lora(self, rank: int, alpha: float | None = None, parts: tuple[str, ...] = ("query", "value")):
        """Freezes the model and adds trainable low-rank updates to projections of every attention layer.

        Call it before `compile`; files keep it. `parts` names the projections: `"query"`, `"key"`, `"value"`, `"output"`.
        """
        for variable in self.trainable_variables:
            variable.trainable = False
        for block in [*self.parts.encoder_blocks, *self.parts.decoder_blocks]:
            attentions = [getattr(block, name, None) for name in ("self_attention", "cross_attention")]
            for attention in filter(None, attentions):
                for part in parts:
                    getattr(attention, f"{part}_dense").enable_lora(rank, lora_alpha=alpha)

    @property
    def low_rank_updates(self) -> LowRankUpdates | None:
        """What files keep of `enable_lora`; Keras finds it among the attributes."""
        adapted = [part for part in self._flatten_layers() if getattr(part, "lora_enabled", False)]
        return LowRankUpdates(adapted) if adapted else None

    def get_config(self):
        changes = changes_of(self)
        return {
            "config": self.config.to_dict(),
            "encoder_block": registered_name(self.encoder_block),
            "encoder_block_options": keras.saving.serialize_keras_object(self.encoder_block_options),
            "decoder_block": registered_name(self.decoder_block),
            "decoder_block_options": keras.saving.serialize_keras_object(self.decoder_block_options),
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "name": self.name,
            **({"changes": changes} if changes else {}),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        model = cls(**arguments_from_config(config, custom_objects))
        apply_changes(model, config.get("changes", {}))
        return model

    @classmethod
    def from_preset(cls, preset: str | os.PathLike, **overrides) -> "Transformer":
        """Builds a model of a named shape with fresh weights, or loads one that `save_to_preset` wrote.

        Args:
            preset: `"base"`, `"big"`, `"small"`, `"tiny"`, or a directory.
            **overrides: Fields of `TransformerConfig` to change, and arguments of the constructor such as `dtype`. A named
                shape needs at least `vocabulary_size`.

        Example:

        >>> model = Transformer.from_preset("tiny", vocabulary_size=8000, norm="pre")
        >>> model.config.num_heads
        4
        """
        arguments = {name: overrides.pop(name) for name in CONSTRUCTOR_ARGUMENTS if name in overrides}
        if str(preset) in PRESETS:
            return cls(TransformerConfig.from_dict({**PRESETS[str(preset)], **overrides}), **arguments)
        saved = read_preset_config(preset)
        given = {name: value for name, value in saved.items() if name not in arguments}
        try:
            arguments = arguments_from_config(given) | arguments
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = error if isinstance(error, ValueError) else repr(error)
            raise ValueError(f"The config.json in {preset} does not describe a model that can be made: {reason}") from error
        model = cls(**{**arguments, "config": arguments["config"].replace(**overrides)})
        apply_changes(model, saved.get("changes", {}))
        load_preset_weights(preset, model)
        return model

    def save_to_preset(self, directory: str | os.PathLike):
        """Writes the model into a directory, from which `from_preset` loads it on any backend."""
        write_preset(directory, self)


def arguments_from_config(config: dict, custom_objects: dict | None = None) -> dict:
    """Turns what `Transformer.get_config` returned, or a part of it, back into arguments of the constructor."""
    arguments = {name: value for name, value in config.items() if name != "changes"}
    arguments["config"] = TransformerConfig.from_dict(config["config"])
    for name in ("encoder_block", "decoder_block"):
        if name in config:
            arguments[name] = registered_class(config[name], custom_objects)
    for name in ("encoder_block_options", "decoder_block_options"):
        if name in config:
            arguments[name] = keras.saving.deserialize_keras_object(config[name])
    if "dtype" in config:
        arguments["dtype"] = keras.dtype_policies.deserialize(config["dtype"])
    return arguments


def in_own_order(arguments: dict, fitting: bool = True) -> dict:
    """Lets a dataset that has an order of its own, such as a `ParallelDataset`, say how Keras is to take it.

    Args:
        arguments: Arguments of `fit` or `evaluate`, by name.
        fitting: Whether they are those of `fit`.

    Returns:
        The arguments to use.
    """
    arguments = {**arguments.pop("kwargs", {}), **arguments}
    if fitting and hasattr(arguments.get("x"), "fit_arguments"):
        arguments = arguments["x"].fit_arguments(arguments)
    for name in ("x", "validation_data"):
        if hasattr(arguments.get(name), "fit_input"):
            arguments[name] = arguments[name].fit_input()
    return arguments
