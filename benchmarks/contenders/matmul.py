"""Plain float32 matrix products: the speed that no training step can exceed."""

import time

import numpy as np

from benchmarks.contenders.runner import Runner
from benchmarks.shapes import Shape

SIZES = ((1024, 512, 2048), (2048, 2048, 2048))
REFERENCE_FLOPS = 2 * 2048**3  # A "step" is scaled to this many operations, whatever the size that was fastest.


def make_runner(shape: Shape, mode: str) -> Runner:
    """Returns a runner whose steps are products, each as long as `REFERENCE_FLOPS` take at the best size."""
    multiply = {"tensorflow": tensorflow_matmul, "torch": torch_matmul}[mode]
    products = [(2 * m * k * n, multiply(random_matrix(m, k), random_matrix(k, n))) for m, k, n in SIZES]

    def run(steps: int) -> list[float]:
        return [min(seconds_per_reference(flops, product) for flops, product in products) for _ in range(steps)]

    return Runner(run, num_parameters=0)


def random_matrix(rows: int, columns: int) -> np.ndarray:
    """Draws a float32 matrix."""
    return np.random.default_rng(0).random((rows, columns), dtype="float32")


def tensorflow_matmul(a: np.ndarray, b: np.ndarray):
    """Returns a function that multiplies two matrices in TensorFlow."""
    import tensorflow as tf

    a, b = tf.constant(a), tf.constant(b)
    return lambda: tf.linalg.matmul(a, b)


def torch_matmul(a: np.ndarray, b: np.ndarray):
    """Returns a function that multiplies two matrices in torch."""
    import torch

    a, b = torch.from_numpy(a), torch.from_numpy(b)
    return lambda: torch.matmul(a, b)


def seconds_per_reference(flops: int, product) -> float:
    """Times about `REFERENCE_FLOPS` operations in products of `flops` each."""
    repetitions = max(1, REFERENCE_FLOPS // flops)
    started = time.perf_counter()
    for _ in range(repetitions):
        product()
    return (time.perf_counter() - started) * REFERENCE_FLOPS / (flops * repetitions)
