"""Which devices a command asks for, in its flags, or in the environment that SLURM, Kubernetes or a shell loop made for it."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

# Where a number is looked up if no flag says it, the first that is set.
COORDINATOR = ("KERAS_DISTRIBUTION_JOB_ADDRESSES",)
PROCESSES = ("KERAS_DISTRIBUTION_NUM_PROCESSES", "SLURM_NTASKS")
PROCESS_ID = ("KERAS_DISTRIBUTION_PROCESS_ID", "SLURM_PROCID", "JOB_COMPLETION_INDEX")


@dataclass(frozen=True)
class DeviceRequest:
    """The devices of a run.

    Args:
        devices: Number of devices of this process.
        processes: Number of processes that train together.
        process_id: Which of them this is, counted from 0.
        coordinator: Address of the first of them, `"host:port"`; `None` if there is one alone.
    """

    devices: int = 1
    processes: int = 1
    process_id: int = 0
    coordinator: str | None = None

    def __post_init__(self):
        if self.devices < 1:
            raise ValueError(f"--devices must be a positive integer. Received: --devices {self.devices}")
        if self.processes < 1 or not 0 <= self.process_id < self.processes:
            raise ValueError(
                "--process-id must be at least 0 and below --processes. "
                f"Received: --processes {self.processes} --process-id {self.process_id}"
            )
        if self.coordinator is not None and not self.coordinator.rpartition(":")[2].isdigit():
            raise ValueError(f"--coordinator must be HOST:PORT. Received: --coordinator {self.coordinator}")


def add_device_arguments(parser: argparse.ArgumentParser):
    """Gives a command the flags that say on which devices it runs."""
    group = parser.add_argument_group("devices", "See docs/scaling.md.")
    group.add_argument("--devices", type=int, default=1, metavar="N", help="devices of this machine to train on (1)")
    group.add_argument(
        "--coordinator", metavar="HOST:PORT", help=f"address of the first of several JAX processes (or {COORDINATOR[0]})"
    )
    group.add_argument("--processes", type=int, metavar="N", help=f"how many they are (or {' or '.join(PROCESSES)})")
    group.add_argument("--process-id", type=int, metavar="I", help=f"which this is, from 0 (or {' or '.join(PROCESS_ID)})")


def read_device_request(options: argparse.Namespace, environment: Mapping[str, str]) -> DeviceRequest:
    """Reads flags, and the environment where a flag is silent.

    Several processes join only if a coordinator is named, by its flag or in the environment: what SLURM says of tasks alone
    means nothing, for a command may well be run once within a large allocation.

    Args:
        options: What a parser with `add_device_arguments` read.
        environment: The environment variables.

    Returns:
        The request.
    """
    coordinator = options.coordinator or looked_up(COORDINATOR, environment)
    if coordinator is None:
        if options.processes not in (None, 1) or options.process_id not in (None, 0):
            raise ValueError("Several processes need to find each other: give --coordinator HOST:PORT, the same to all of them")
        return DeviceRequest(options.devices)
    processes = number_of("--processes", options.processes, PROCESSES, environment)
    process_id = number_of("--process-id", options.process_id, PROCESS_ID, environment)
    return DeviceRequest(options.devices, processes, process_id, coordinator.split(",")[0])


def number_of(flag: str, said: int | None, names: tuple[str, ...], environment: Mapping[str, str]) -> int:
    """Returns the number that a flag says, or an environment variable."""
    if said is not None:
        return said
    word = looked_up(names, environment)
    if word is None:
        raise ValueError(f"--coordinator needs {flag} as well, or one of these in the environment: {', '.join(names)}")
    if not word.isdigit():
        raise ValueError(f"Expected a number for {flag} in the environment ({' or '.join(names)}). Received: {word!r}")
    return int(word)


def looked_up(names: tuple[str, ...], environment: Mapping[str, str]) -> str | None:
    """Returns the first of some environment variables that is set."""
    return next((environment[name] for name in names if environment.get(name)), None)
