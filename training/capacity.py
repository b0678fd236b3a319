"""What training and serving a model takes, on paper: `python -m training.capacity`.

Operations are counted by formula, hours follow from the peak of a device and the share of it that is reached. That share has to
be measured; until it is, a plan is only as good as the guess. Replace it with your own: --utilization 0.41 --peak 312.

A token costs 2 operations for each parameter of a matrix that it passes, forward, and twice that backward. The products of
attention cost 4 M for each pair of positions. All else (normalizations, softmax, dropout, Adam) counts for nothing.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from .command import run_command
from .console import program

VOCABULARY = 37_000
LENGTH = 29  # Tokens of a sentence; the share of attention depends on it, and little else.
KERNELS = 30  # Of a decoder layer and step: how many a GPU is asked to start. Assumed.
KERNEL_SECONDS = 5e-6  # What it takes to start one. Assumed.
LOAD = 0.6  # At which share of what servers can do requests do not yet pile up.


@dataclass(frozen=True)
class Plan:
    """A model of the paper and its training.

    Args:
        name: Its name.
        layers: Number of encoder layers, and of decoder layers.
        model_dim: Its width M.
        feed_forward_dim: Its feed-forward width F.
        updates: How long it is trained (section 5.2).
        tokens_per_update: Positions of an update on either side (section 5.1).
    """

    name: str
    layers: int
    model_dim: int
    feed_forward_dim: int
    updates: int
    tokens_per_update: int = 25_000

    @property
    def tokens(self) -> int:
        """Target positions of the whole training."""
        return self.updates * self.tokens_per_update


PLANS = (Plan("base", 6, 512, 2048, 100_000), Plan("big", 6, 1024, 4096, 300_000))


@dataclass(frozen=True)
class Device:
    """What computes.

    Args:
        name: Its name.
        peak: Most operations a second, in units of 10^12.
        utilization: Which share of them training reaches.
        bandwidth: Bytes of its memory that it reads in a second, in units of 10^9.
        source: Where the share comes from.
    """

    name: str
    peak: float
    utilization: float
    bandwidth: float
    source: str


DEVICES = (
    Device("2 CPU cores, float32", 0.171, 0.60, 0, "measured: benchmarks.md, training step, base"),
    Device("A100, bfloat16", 312, 0.35, 1_555, "assumed"),
    Device("H100, bfloat16", 989, 0.35, 3_350, "assumed"),
)


# Operations.


def encoder_operations(plan: Plan, length: int) -> int:
    """Counts the operations of a source sentence, forward."""
    m, f = plan.model_dim, plan.feed_forward_dim
    return plan.layers * length * (2 * (4 * m * m + 2 * m * f) + 4 * m * length)


def decoder_operations(plan: Plan, source_length: int, length: int) -> int:
    """Counts the operations of a target sentence, forward, with the keys and values that it takes from the source."""
    m, f = plan.model_dim, plan.feed_forward_dim
    kernels = 2 * (6 * m * m + 2 * m * f)  # Four of self-attention, query and output of cross-attention, feed-forward.
    attention = 4 * m * (length + source_length)
    logits = 2 * m * VOCABULARY
    return length * (plan.layers * (kernels + attention) + logits) + plan.layers * source_length * 2 * 2 * m * m


def training_operations(plan: Plan, length: int = LENGTH) -> float:
    """Counts the operations of a whole training: forward and twice as much backward."""
    sentence = encoder_operations(plan, length) + decoder_operations(plan, length, length)
    return 3 * sentence * plan.tokens / length


def translation_operations(plan: Plan, beam_size: int, length: int = LENGTH) -> int:
    """Counts the operations of a translation: the source once, and each beam token by token, with a cache."""
    m = plan.model_dim
    once = encoder_operations(plan, length) + plan.layers * length * 2 * 2 * m * m
    steps = decoder_operations(plan, length, length) - plan.layers * length * 2 * 2 * m * m
    return once + beam_size * steps


# Time.


def training_hours(plan: Plan, device: Device) -> float:
    """Returns how many hours one device takes; n devices take an n-th of it, divided by their parallel efficiency."""
    return training_operations(plan) / (device.peak * 1e12 * device.utilization) / 3600


def sentences_per_second(plan: Plan, device: Device, batch: int, beam_size: int) -> float:
    """Returns how many sentences a device translates, in batches, one batch after the other.

    A step does the work of one token for each sentence and beam, and reads all weights of the decoder (float32): whichever
    takes longer counts, at the same share of the limit as in training. To that comes the time in which kernels are started.
    """
    operations = batch * translation_operations(plan, beam_size) / (device.peak * 1e12)
    memory = LENGTH * decoder_bytes(plan) / (device.bandwidth * 1e9)
    starting = LENGTH * plan.layers * KERNELS * KERNEL_SECONDS
    return batch / (max(operations, memory) / device.utilization + starting)


def decoder_bytes(plan: Plan) -> int:
    """Returns how many bytes of weights a step of the decoder reads, in float32."""
    m, f = plan.model_dim, plan.feed_forward_dim
    return 4 * (plan.layers * (8 * m * m + 2 * m * f) + m * VOCABULARY)


# The page.


def training_table(devices: Sequence[Device]) -> str:
    """Returns what training takes, as a Markdown table."""
    rows = [
        [
            plan.name,
            f"{plan.tokens / 1e9:.1f} billion",
            f"{training_operations(plan):.1e}",
            device.name,
            f"{device.utilization:.0%} ({device.source})",
            f"{training_hours(plan, device):,.1f}",
        ]
        for plan in PLANS
        for device in devices
    ]
    return table(["model", "target tokens", "operations", "device", "of its peak", "device hours"], rows)


def serving_table(devices: Sequence[Device], rate: int, batch: int, beam_size: int) -> str:
    """Returns what serving takes, as a Markdown table."""
    rows = []
    for plan in PLANS:
        for device in (device for device in devices if device.bandwidth):
            speed = sentences_per_second(plan, device, batch, beam_size)
            operations = translation_operations(plan, beam_size)
            rows.append([plan.name, f"{operations:.1e}", device.name, f"{speed:,.0f}", f"{math.ceil(rate / speed / LOAD)}"])
    return table(["model", "operations of a sentence", "device", "sentences/s at most", f"devices for {rate:,}/s"], rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Makes a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: The words of the command line; `None` takes those of this process.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(
        prog=program("capacity"), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peak", type=float, metavar="TFLOP/S", help="of your device")
    parser.add_argument("--bandwidth", type=float, default=0.0, metavar="GB/S", help="of your device's memory")
    parser.add_argument("--utilization", type=float, metavar="SHARE", help="which share of the peak you have measured")
    parser.add_argument("--rate", type=int, default=1000, metavar="N", help="sentences a second to serve (1000)")
    parser.add_argument("--batch", type=int, default=32, metavar="N", help="sentences that a server translates at once (32)")
    parser.add_argument("--beam-size", type=int, default=4, metavar="N", help="(4)")
    options = parser.parse_args(argv)
    return run_command(lambda: run(options))


def run(options: argparse.Namespace):
    """Prints both tables."""
    devices = chosen_devices(options.peak, options.utilization, options.bandwidth)
    print(f"{training_table(devices)}\n\n{serving_table(devices, options.rate, options.batch, options.beam_size)}")


def chosen_devices(peak: float | None, utilization: float | None, bandwidth: float) -> Sequence[Device]:
    """Returns the devices that the tables speak of: the user's own, if there is one."""
    if peak is None and utilization is None:
        return DEVICES
    if peak is None or utilization is None or not (peak > 0 and 0 < utilization <= 1 and bandwidth >= 0):
        raise ValueError(
            "A device of your own needs --peak above 0 and --utilization above 0 and at most 1. "
            f"Received: --peak {peak} --utilization {utilization} --bandwidth {bandwidth}"
        )
    return (Device("yours", peak, utilization, bandwidth, "given"),)


if __name__ == "__main__":
    sys.exit(main())
