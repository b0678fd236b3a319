"""Times the training steps of a torch module."""

import time

import torch

from benchmarks.contenders.runner import Runner
from benchmarks.random_batches import random_batch
from benchmarks.shapes import Shape


def make_torch_runner(module: torch.nn.Module, shape: Shape) -> Runner:
    """Returns a runner for a module whose `forward(source_ids, target_ids)` gives logits `(B, T, V)`."""
    source_ids, target_ids, labels = (torch.from_numpy(ids).long() for ids in random_batch(shape))
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4, fused=True)
    module.train()

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        logits = module(source_ids, target_ids)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    num_parameters = sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
    return Runner(lambda steps: [seconds_of(step) for _ in range(steps)], num_parameters)


def seconds_of(step) -> float:
    """Returns how long a call takes."""
    started = time.perf_counter()
    step()
    return time.perf_counter() - started
