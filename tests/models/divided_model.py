"""Trains a small model on one device and on a 2x2 mesh, and prints how much they differ.

`python -m tests.models.divided_model` is a process of its own, for JAX wants to know the number of devices before it begins.
"""

import contextlib
import json

import keras
import numpy as np

import keras_transformer as kt

UPDATES = 20


def main():
    random = np.random.default_rng(0)
    inputs = {name: random.integers(4, 40, (8, 6)).astype("int32") for name in ("source_ids", "target_ids")}
    labels = random.integers(4, 40, (8, 6)).astype("int32")
    mesh = keras.distribution.DeviceMesh((2, 2), ("batch", "model"))
    parallel = keras.distribution.ModelParallel(layout_map=kt.models.layout_map(mesh))
    one = trained(contextlib.nullcontext(), inputs, labels)
    four = trained(parallel.scope(), inputs, labels)
    split = [variable for variable in four["model"].weights if is_split(variable)]
    moments = [variable for variable in four["model"].optimizer.variables if is_split(variable)]
    print(
        json.dumps(
            {
                "logits": float(np.abs(one["logits"] - four["logits"]).max()),
                "weights": largest_difference(one["model"].weights, four["model"].weights),
                "moments": largest_difference(one["model"].optimizer.variables, four["model"].optimizer.variables),
                "shares": shares(split),
                "moment_shares": shares(moments),
                "whole": max(shares(four["model"].weights)),
            }
        )
    )


def trained(scope, inputs: dict, labels: np.ndarray) -> dict:
    """Makes a model, notes its logits, and trains it."""
    with scope:
        keras.utils.set_random_seed(0)
        sizes = {"model_dim": 32, "feed_forward_dim": 64, "num_heads": 4, "num_encoder_layers": 1, "num_decoder_layers": 1}
        model = kt.Transformer(kt.TransformerConfig(vocabulary_size=40, dropout=0.0, use_bias=False, **sizes))
        model.compile(optimizer=kt.optimizers.FusedAdam(1e-3), loss=kt.losses.SmoothedCrossEntropy(0.1))
        logits = model.predict_on_batch(inputs)
        for _ in range(UPDATES):
            model.train_on_batch(inputs, labels)
    return {"model": model, "logits": logits}


def is_split(variable) -> bool:
    return not variable.value.is_fully_replicated


def shares(variables: list) -> list[float]:
    """Returns which share of variables each device holds."""
    held, total = {}, sum(variable.value.nbytes for variable in variables)
    for variable in variables:
        for shard in variable.value.addressable_shards:
            held[shard.device.id] = held.get(shard.device.id, 0) + shard.data.nbytes
    return [held[device] / total for device in sorted(held)]


def largest_difference(ours: list, theirs: list) -> float:
    """Returns the largest difference between two lists of variables, each by its norm."""
    arrays = [[np.asarray(variable.value, "float64") for variable in pair] for pair in zip(ours, theirs, strict=True)]
    return max(float(np.linalg.norm(a - b) / max(np.linalg.norm(a), 1e-12)) for a, b in arrays)


if __name__ == "__main__":
    main()
