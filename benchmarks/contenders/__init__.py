"""Who takes part. Each module has `make_runner(shape, mode)`, which builds a model and returns a `Runner` of its steps.

Contenders are imported only in the subprocess that runs them: their backends do not share a process well.
"""

import importlib.util
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Contender:
    """One way of computing the training step.

    Attributes:
        name: How the command line calls it.
        title: How tables call it.
        module: Module with its `make_runner`.
        modes: The ways it can be compiled; each is measured, the better one counts.
        packages: Distributions whose versions belong in the report; importable under these names.
        environment: Environment variables of its subprocess.
        is_peer: Whether it is somebody else's work that ours is compared with.
    """

    name: str
    title: str
    module: str
    modes: tuple[str, ...]
    packages: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    is_peer: bool = False

    def missing_packages(self) -> list[str]:
        """Lists what would have to be installed first."""
        return [package for package in self.packages if importlib.util.find_spec(package) is None]


def _ours(backend: str, modes: tuple[str, ...], package: str) -> Contender:
    return Contender(
        name=f"ours-{backend}",
        title=f"keras_transformer, {backend}",
        module="benchmarks.contenders.ours",
        modes=modes,
        packages=("keras", package),
        environment={"KERAS_BACKEND": backend},
    )


CONTENDERS = {
    contender.name: contender
    for contender in (
        _ours("tensorflow", ("graph", "graph, divided", "xla"), "tensorflow"),
        _ours("jax", ("xla",), "jax"),
        _ours("torch", ("eager",), "torch"),
        Contender(
            "keras-hub",
            "keras-hub layers, tensorflow",
            "benchmarks.contenders.keras_hub_layers",
            ("graph", "xla"),
            ("keras", "keras_hub", "tensorflow"),
            {"KERAS_BACKEND": "tensorflow"},
            is_peer=True,
        ),
        Contender(
            "torch",
            "torch.nn.Transformer",
            "benchmarks.contenders.torch_transformer",
            ("eager",),
            ("torch",),
            is_peer=True,
        ),
        Contender(
            "marian",
            "Hugging Face Marian, torch",
            "benchmarks.contenders.marian",
            ("eager",),
            ("torch", "transformers"),
            is_peer=True,
        ),
    )
}

MATMULS = {
    contender.name: contender
    for contender in (
        Contender("matmul-tensorflow", "tf.matmul", "benchmarks.contenders.matmul", ("tensorflow",), ("tensorflow",)),
        Contender("matmul-torch", "torch.matmul", "benchmarks.contenders.matmul", ("torch",), ("torch",)),
    )
}
