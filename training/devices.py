"""Where a run computes: one device, several of this machine, or several processes, on the engine that can."""

import contextlib
import os
import warnings

import keras

import keras_transformer as kt
from keras_transformer.callbacks.local_models import copy_weights, undistributed
from keras_transformer.models.layout import check_divisible, layout_map

from .device_request import DeviceRequest
from .recipe import Recipe


class Devices:
    """One device, on any backend: nothing is divided.

    Attributes:
        num_parts: Into how many parts the rows of a batch are divided.
        shard: `(index, count)`: which part of the rows of a batch this process reads.
        can_compile: Whether TensorFlow can compile the steps.
    """

    num_parts: int = 1
    shard: tuple[int, int] = (0, 1)
    can_compile: bool = True

    def scope(self) -> contextlib.AbstractContextManager:
        """Returns what a model is made, compiled and trained in."""
        return contextlib.nullcontext()

    def check_recipe(self, recipe: Recipe):
        """Raises a `ValueError` for what would not be trained here as on a single device."""

    def check_config(self, config: kt.TransformerConfig):
        """Raises a `ValueError` for a model that cannot be spread over these devices."""

    def trained(self, model: kt.Transformer) -> kt.Transformer:
        """Returns the model after its training, for use by the first process, without the others."""
        return model

    def __str__(self) -> str:
        return "one device"


class MirroredDevices(Devices):
    """Several devices of this machine on TensorFlow: each has the whole model and a part of every batch.

    Args:
        strategy: A `tf.distribute.MirroredStrategy`.
    """

    can_compile = False

    def __init__(self, strategy):
        self.strategy = strategy
        self.num_parts = strategy.num_replicas_in_sync

    def scope(self) -> contextlib.AbstractContextManager:
        """Returns what a model is made, compiled and trained in."""
        return self.strategy.scope()

    def check_recipe(self, recipe: Recipe):
        """Raises a `ValueError` for what would not be trained here as on a single device."""
        table = recipe.optimization
        if recipe.batches_per_update > 1:
            raise ValueError(
                "On several devices TensorFlow cannot make an update of several batches. Each device takes a part of a batch: "
                f"with --set data.batch_tokens={table.tokens_per_update} it has {table.tokens_per_update // self.num_parts} "
                f"positions. JAX can do both (KERAS_BACKEND=jax). Received: tokens_per_update={table.tokens_per_update}, "
                f"batch_tokens={recipe.data.batch_tokens}"
            )
        if table.clip_norm is not None or table.ema_momentum is not None:
            raise ValueError(
                "On several devices TensorFlow would clip the gradient of each device by itself, and keeps no moving average. "
                "Leave away `clip_norm` and `ema_momentum`, or train on JAX (KERAS_BACKEND=jax). "
                f"Received: clip_norm={table.clip_norm}, ema_momentum={table.ema_momentum}"
            )
        if table.xla:
            warnings.warn("On several devices TensorFlow does not compile: `xla` is off", stacklevel=2)

    def trained(self, model: kt.Transformer) -> kt.Transformer:
        """Returns the model after its training, on one device."""
        return single_copy(model)

    def __str__(self) -> str:
        return f"{self.num_parts} devices"


class MeshDevices(Devices):
    """Several devices on JAX, of one process or of several.

    Args:
        distribution: A `keras.distribution.DataParallel` or `ModelParallel`.
        request: What was asked for.
    """

    def __init__(self, distribution, request: DeviceRequest):
        self.distribution, self.request = distribution, request
        self.num_parts = distribution.num_model_replicas
        self.shard = (distribution.data_shard_id, min(self.num_parts, request.processes))

    def scope(self) -> contextlib.AbstractContextManager:
        """Returns what a model is made, compiled and trained in."""
        return self.distribution.scope()

    @property
    def model_parallel(self) -> int:
        """Among how many devices a model is divided."""
        return self.distribution.device_mesh.devices.size // self.num_parts

    def check_config(self, config: kt.TransformerConfig):
        """Raises a `ValueError` for a model that cannot be spread over these devices."""
        check_divisible(config, self.model_parallel)

    def trained(self, model: kt.Transformer) -> kt.Transformer:
        """Returns the model after its training: on one device, unless it is divided among those of this process.

        Several processes part here, so that none need wait while the first one measures and writes.
        """
        if self.request.processes == 1 and self.model_parallel > 1:
            return model
        model = single_copy(model)
        if self.request.processes > 1:
            import jax  # noqa: TID251

            jax.distributed.shutdown()
        return model

    def __str__(self) -> str:
        size, processes = self.distribution.device_mesh.devices.size, self.request.processes
        of_processes = f" of {processes} processes" if processes > 1 else ""
        return f"{size} devices{of_processes}{f', {self.model_parallel} a model' if self.model_parallel > 1 else ''}"


def single_copy(model: kt.Transformer) -> kt.Transformer:
    """Returns a model with the same weights on one device. All processes have to ask."""
    copy = undistributed(model)
    copy_weights(model, copy)
    return copy


# Making them.


def open_devices(request: DeviceRequest, model_parallel: int = 1) -> Devices:
    """Finds the devices that were asked for. Nothing must have been computed before.

    Args:
        request: How many devices, and how many processes.
        model_parallel: Among how many devices the model is divided.

    Returns:
        The devices.
    """
    backend = keras.backend.backend()
    check_engine(request, model_parallel, backend)
    if backend == "jax" and (request.devices, request.processes, model_parallel) != (1, 1, 1):
        return mesh_devices(request, model_parallel)
    if backend == "tensorflow" and request.devices > 1:
        return mirrored_devices(request.devices)
    return Devices()


def check_engine(request: DeviceRequest, model_parallel: int, backend: str):
    """Raises a `ValueError` if a backend cannot do what is asked for; it says which one can."""
    wanted = {
        "--devices above 1": (request.devices > 1, ("jax", "tensorflow")),
        "several processes (--coordinator)": (request.processes > 1, ("jax",)),
        "a model divided among devices (model_parallel)": (model_parallel > 1, ("jax",)),
    }
    for what, (is_wanted, engines) in wanted.items():
        if is_wanted and backend not in engines:
            raise ValueError(
                f"{what[0].upper()}{what[1:]}: {' and '.join(engines)} can do this, {backend} cannot. "
                f"Set the environment variable KERAS_BACKEND={engines[0]}"
            )


def mirrored_devices(count: int) -> MirroredDevices:
    """Makes devices for TensorFlow: GPUs, or where there are none, parts of the CPU that stand for devices."""
    import tensorflow as tf  # noqa: TID251

    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    if kind == "CPU":
        processor = tf.config.list_physical_devices("CPU")[0]
        if tf.config.get_logical_device_configuration(processor) is None:
            tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * count)
    names = [f"{kind}:{number}" for number in range(len(tf.config.list_logical_devices(kind)))]
    return MirroredDevices(tf.distribute.MirroredStrategy(enough(names, count)))


def mesh_devices(request: DeviceRequest, model_parallel: int) -> MeshDevices:
    """Makes devices for JAX, and lets this process join the others."""
    prepare_jax(request)
    if request.processes > 1:
        keras.distribution.initialize(request.coordinator, request.processes, request.process_id)
    names = enough(keras.distribution.list_devices(), request.devices * request.processes)
    if len(names) % model_parallel:
        raise ValueError(
            f"The model is divided among {model_parallel} devices (model_parallel): the number of all devices must be a "
            f"multiple of it. Received: {len(names)} devices"
        )
    if model_parallel == 1:
        return MeshDevices(keras.distribution.DataParallel(devices=names, auto_shard_dataset=False), request)
    mesh = keras.distribution.DeviceMesh((len(names) // model_parallel, model_parallel), ("batch", "model"), names)
    return MeshDevices(keras.distribution.ModelParallel(layout_map=layout_map(mesh), auto_shard_dataset=False), request)


def prepare_jax(request: DeviceRequest):
    """Says how many devices a process has, which JAX must know before it looks for them."""
    import jax  # noqa: TID251

    if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        jax.config.update("jax_num_cpu_devices", request.devices)  # Of a machine without others: parts that stand for devices.
    if request.processes > 1:  # Else JAX takes a single one under SLURM.
        os.environ.setdefault("JAX_LOCAL_DEVICE_IDS", ",".join(map(str, range(request.devices))))


def enough(names: list[str], count: int) -> list[str]:
    """Returns the first of some devices, or raises a `ValueError` if there are too few."""
    if len(names) < count:
        raise ValueError(f"There are not so many devices: --devices asks for {count}, and there are {len(names)} ({names})")
    return names[:count]
