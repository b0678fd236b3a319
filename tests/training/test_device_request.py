"""Which devices a command asks for: flags, SLURM, Kubernetes, and what no backend can do."""

import argparse

import pytest

from training.device_request import DeviceRequest, add_device_arguments, read_device_request
from training.devices import Devices, MirroredDevices, check_engine, open_devices
from training.recipe import read_recipe


def read(*words, **environment):
    parser = argparse.ArgumentParser()
    add_device_arguments(parser)
    return read_device_request(parser.parse_args(words), environment)


def test_one_device_unless_told_otherwise():
    assert read() == DeviceRequest(devices=1, processes=1, process_id=0, coordinator=None)
    assert read("--devices", "4").devices == 4


def test_flags():
    words = ["--devices", "2", "--coordinator", "10.0.0.1:1234", "--processes", "3", "--process-id", "2"]
    assert read(*words) == DeviceRequest(2, 3, 2, "10.0.0.1:1234")


def test_environment_of_slurm():
    tasks = {"SLURM_NTASKS": "4", "SLURM_PROCID": "3"}
    assert read("--coordinator", "node1:15000", **tasks) == DeviceRequest(1, 4, 3, "node1:15000")
    assert read(**tasks) == DeviceRequest()  # A single command within an allocation.


def test_environment_of_kubernetes():
    job = {
        "KERAS_DISTRIBUTION_JOB_ADDRESSES": "job-0.job:15000",
        "KERAS_DISTRIBUTION_NUM_PROCESSES": "2",
        "JOB_COMPLETION_INDEX": "1",
    }
    assert read("--devices", "8", **job) == DeviceRequest(8, 2, 1, "job-0.job:15000")


def test_flags_count_more_than_the_environment():
    assert read("--coordinator", "a:1", "--process-id", "0", SLURM_NTASKS="2", SLURM_PROCID="1").process_id == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--devices", "0"], "--devices must be a positive integer. Received: --devices 0"),
        (["--processes", "2"], "give --coordinator HOST:PORT"),
        (["--process-id", "1"], "give --coordinator HOST:PORT"),
        (["--coordinator", "node1:15000"], "needs --processes as well"),
        (["--coordinator", "node1:15000", "--processes", "2"], "needs --process-id as well"),
        (
            ["--coordinator", "node1", "--processes", "2", "--process-id", "0"],
            "must be HOST:PORT. Received: --coordinator node1",
        ),
        (["--coordinator", "a:1", "--processes", "2", "--process-id", "2"], "Received: --processes 2 --process-id 2"),
    ],
)
def test_complaints(words, complaint):
    with pytest.raises(ValueError) as caught:
        read(*words)
    assert complaint in str(caught.value)


def test_environment_that_is_no_number():
    with pytest.raises(ValueError, match="Received: 'two'"):
        read("--coordinator", "a:1", "--process-id", "0", SLURM_NTASKS="two")


@pytest.mark.parametrize(
    ("request_", "model_parallel", "backend", "complaint"),
    [
        (DeviceRequest(2), 1, "torch", "--devices above 1: jax and tensorflow can do this, torch cannot"),
        (DeviceRequest(1, 2, 0, "a:1"), 1, "tensorflow", "jax can do this, tensorflow cannot.*KERAS_BACKEND=jax"),
        (DeviceRequest(4), 2, "tensorflow", "model divided among devices .*: jax can do this, tensorflow cannot"),
    ],
)
def test_a_backend_that_cannot(request_, model_parallel, backend, complaint):
    with pytest.raises(ValueError, match=complaint):
        check_engine(request_, model_parallel, backend)


def test_one_device_is_there_on_every_backend():
    devices = open_devices(DeviceRequest())
    assert type(devices) is Devices and (devices.num_parts, devices.shard, str(devices)) == (1, (0, 1), "one device")


class TwoReplicas:
    """What stands for a strategy of TensorFlow."""

    num_replicas_in_sync = 2


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("tokens_per_update=9000", r"--set data.batch_tokens=9000 it has 4500 positions. JAX can do both"),
        ("clip_norm=1.0", r"would clip the gradient of each device by itself.*Received: clip_norm=1.0"),
        ("ema_momentum=0.9", r"Leave away `clip_norm` and `ema_momentum`, or train on JAX"),
    ],
)
def test_what_tensorflow_leaves_to_jax(setting, complaint):
    settings = ["tokens_per_update=none", "average_checkpoints=1", setting]
    recipe = read_recipe("pronouns", ["data.batch_tokens=4096", *settings])
    with pytest.raises(ValueError, match=complaint):
        MirroredDevices(TwoReplicas()).check_recipe(recipe)


def test_xla_is_off_on_several_devices():
    recipe = read_recipe("pronouns", ["tokens_per_update=none", "xla=true"])
    with pytest.warns(UserWarning, match="`xla` is off"):
        MirroredDevices(TwoReplicas()).check_recipe(recipe)
    assert not MirroredDevices(TwoReplicas()).can_compile
