"""Trains in several JAX processes on this machine: `python -m training.launch --processes 2 RECIPE`.

All other words go to `keras-transformer train`, --output, --set, --resume and --devices (of each process) among them. The
processes are watched: if one fails, the others, which cannot go on without it, are ended, and it is said what happened.

Several machines need no launcher of ours: SLURM, Kubernetes or a loop over ssh starts one process on each (docs/scaling.md).
"""

import argparse
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial

from .command import run_command
from .console import program

GRACE_SECONDS = 20  # For what the others have to say about it.


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: The words of the command line; `None` takes those of this process.

    Returns:
        The exit code: 0 if all processes ended well, or that of the first one that did not.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    options, others = parse_arguments(words)
    codes = []
    failed = run_command(lambda: codes.append(run(options, others, how_to_go_on(words))), how_to_go_on(words))
    return failed or codes[0]


def parse_arguments(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Reads the launcher's own options, and returns all other words as they are."""
    parser = argparse.ArgumentParser(
        prog=program("launch"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="how many to start (2)")
    parser.add_argument("--devices", type=int, default=1, metavar="N", help="devices of each process (1)")
    parser.add_argument("--pin", action="store_true", help="give each process a core of the CPU to itself")
    parser.add_argument("--port", type=int, help="where they meet on this machine; by default, a port that is free")
    return parser.parse_known_args(words)


def run(options: argparse.Namespace, words: Sequence[str], advice: str) -> int:
    """Starts processes and watches them until all have ended; returns the exit code."""
    if options.processes < 1 or options.devices < 1:
        raise ValueError(
            "--processes and --devices must be positive integers. "
            f"Received: --processes {options.processes} --devices {options.devices}"
        )
    processes = start_all(options.processes, options.devices, options.port or free_port(), words, options.pin)
    try:
        return watch(processes, advice)
    finally:
        end(processes)


def start_all(
    count: int, devices: int, port: int, words: Sequence[str], pin: bool = False, **options
) -> list[subprocess.Popen]:
    """Starts all processes.

    Args:
        count, devices, port, words: As for `start`.
        pin: Whether each process has a core of the CPU to itself.
        **options: Further arguments of `start`.

    Returns:
        The processes, in the order of their numbers.
    """
    cores = sorted(os.sched_getaffinity(0)) if pin else []
    if pin and len(cores) < count:
        raise ValueError(f"There is no core for each process. Received: --processes {count} --pin, and {len(cores)} cores")
    pinned = [{"preexec_fn": partial(os.sched_setaffinity, 0, {core})} for core in cores] or [{}] * count
    return [start(number, count, devices, port, words, **pinned[number], **options) for number in range(count)]


def start(
    number: int, count: int, devices: int, port: int, words: Sequence[str], module: str = f"{__package__}.train", **options
) -> subprocess.Popen:
    """Starts one of several processes.

    Args:
        number: Which it is, from 0.
        count: How many there are.
        devices: Number of devices of each. The first process takes the first ones of this machine, and so on.
        port: Where they meet.
        words: The command line of `keras-transformer train`.
        module: What to run, if it is another program with the same command line.
        **options: Further arguments of `subprocess.Popen`.

    Returns:
        The process.
    """
    own = range(number * devices, (number + 1) * devices)
    environment = {
        "KERAS_BACKEND": "jax",
        "PYTHONUNBUFFERED": "1",  # What one says just before it dies should be seen.
        "JAX_LOCAL_DEVICE_IDS": ",".join(map(str, own)),
        **os.environ,
    }
    together = ["--coordinator", f"127.0.0.1:{port}", "--processes", str(count), "--process-id", str(number)]
    command = [sys.executable, "-m", module, *words, "--devices", str(devices), *together]
    return subprocess.Popen(command, env=environment, **options)


def watch(processes: Sequence[subprocess.Popen], advice: str) -> int:
    """Waits until all processes have ended, or one has failed.

    Args:
        processes: The processes, in the order of their numbers.
        advice: What to do next if one fails.

    Returns:
        The exit code: 0, or that of the first process that failed.
    """
    with ThreadPoolExecutor(len(processes)) as pool:
        waiting = {pool.submit(process.wait): number for number, process in enumerate(processes)}
        for ended in as_completed(waiting):
            if ended.result() != 0:
                return report_failure(processes, waiting, ended, advice)
    return 0


def report_failure(processes: Sequence[subprocess.Popen], waiting: dict[Future, int], failed: Future, advice: str) -> int:
    """Says which process failed and how, lets the others end, and returns the exit code."""
    code = failed.result()
    say(f"Process {waiting[failed]} of {len(processes)} {how_it_ended(code)}. The others cannot go on without it.")
    for future, number in waiting.items():
        if future is not failed:
            say(f"Process {number} {how_it_ended(ended_by_itself_or_by_us(processes[number]))}.")
    say(advice)
    return code if code > 0 else 128 - code


def ended_by_itself_or_by_us(process: subprocess.Popen) -> int:
    """Gives a process some time to end, ends it, and returns its exit code."""
    try:
        return process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        end([process])
        return process.returncode


def end(processes: Sequence[subprocess.Popen]):
    """Ends processes that are still there."""
    for process in processes:
        if process.poll() is None:
            process.kill()  # There is nothing to save: checkpoints are complete, or not there.
            process.wait()


def how_it_ended(code: int) -> str:
    """Says what an exit code means."""
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return "ended well" if code == 0 else f"failed with exit code {code}"


def how_to_go_on(words: Sequence[str]) -> str:
    """Says what to do after a failure."""
    again = [*words, *([] if "--resume" in words else ["--resume"])]
    return f"Go on from the last checkpoint with:\n  {program('launch')} {shlex.join(again)}"


def free_port() -> int:
    """Returns a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def say(line: str):
    """Tells people something."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
