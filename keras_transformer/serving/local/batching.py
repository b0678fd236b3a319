"""Server-side batching as TensorFlow Serving does it."""

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from keras_transformer.serving.local.json_rules import RefusalError

FAILED_PRECONDITION, RESOURCE_EXHAUSTED, UNAVAILABLE = 9, 8, 14


@dataclass
class Batching:
    """The server's batching parameters; times are in seconds."""

    max_batch_size: int = 8
    batch_timeout: float = 0.0
    max_enqueued_batches: int = 100
    num_batch_threads: int = 1
    allowed_batch_sizes: tuple[int, ...] = ()

    def __post_init__(self):
        sizes = self.allowed_batch_sizes
        if sizes and (list(sizes) != sorted(set(sizes)) or sizes[-1] != self.max_batch_size):
            raise ValueError(f"allowed_batch_sizes must increase and end in max_batch_size. Received: {self}")

    def padded(self, size: int) -> int:
        """Returns how many rows are run for this many."""
        return next((allowed for allowed in self.allowed_batch_sizes if allowed >= size), size)


def read_batching(file: Path) -> Batching | None:
    """Reads what `batching_parameters.txt` of an export says; `None` if there is no such file."""
    if not file.is_file():
        return None
    text = re.sub(r"#.*", "", file.read_text(encoding="utf8"))
    found = {name: int(value) for name, value in re.findall(r"(\w+)\s*\{\s*value\s*:\s*(\d+)\s*\}", text)}
    if "batch_timeout_micros" in found:
        found["batch_timeout"] = found.pop("batch_timeout_micros") / 1e6
    sizes = tuple(map(int, re.findall(r"allowed_batch_sizes\s*:\s*(\d+)", text)))
    known = {name: value for name, value in found.items() if name in Batching.__dataclass_fields__}
    return Batching(**known, allowed_batch_sizes=sizes)


@dataclass
class Task:
    """A request that waits: its inputs, how many rows they have, when it is too late, and its part of the outputs."""

    inputs: dict
    size: int
    deadline: float
    future: Future = field(default_factory=Future)


class Batch:
    """Requests that are run together, and when the first of them came."""

    def __init__(self):
        self.tasks = []
        self.start = None

    @property
    def size(self) -> int:
        """The number of rows."""
        return sum(task.size for task in self.tasks)


class Queue:
    """The requests of one signature that wait, in batches of which the last is open.

    Args:
        run: Called with the inputs of a batch and the seconds it may take; returns the outputs.
        options: `Batching`.
        seen: Counts batches by their rows: those asked for, and those run.
    """

    def __init__(self, run: Callable, options: Batching, seen: Counter):
        self.run, self.options, self.seen = run, options, seen
        self.batches = deque([Batch()])
        self.changed = threading.Condition()
        self.is_closed = False
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(options.num_batch_threads)]
        for thread in self.threads:
            thread.start()

    def ask(self, inputs: dict[str, np.ndarray], timeout: float) -> dict[str, np.ndarray]:
        """Adds a request to a batch and waits for its part of the outputs."""
        task = Task(inputs, first_dimension(inputs), time.monotonic() + timeout)
        limit = self.options.max_batch_size
        if task.size > limit:
            raise RefusalError(f"Task size {task.size} is larger than maximum input batch size {limit}")
        with self.changed:
            if self.batches[-1].size + task.size > limit:
                if len(self.batches) >= self.options.max_enqueued_batches:
                    full = "The batch scheduling queue to which this task was submitted is full"
                    raise RefusalError(
                        f"{full}; currently {len(self.batches)} batches enqueued and max_enqueued_batches is "
                        f"{self.options.max_enqueued_batches}",
                        UNAVAILABLE,
                    )
                self.batches.append(Batch())
            if not self.batches[-1].tasks:
                self.batches[-1].start = time.monotonic()
            self.batches[-1].tasks.append(task)
            self.changed.notify_all()
        return task.future.result()

    def work(self):
        """Runs batches until the queue is closed."""
        while (batch := self.next_batch()) is not None:
            try:
                self.process(batch)
            except Exception as error:  # noqa: BLE001  (passed on to those who wait)
                for task in batch.tasks:
                    task.future.set_exception(error)

    def next_batch(self) -> Batch | None:
        """Waits for a batch that is full, old enough, or followed by another."""
        with self.changed:
            while not (self.is_closed and not self.batches[0].tasks):
                first = self.batches[0]
                age = time.monotonic() - first.start if first.tasks else 0
                due = first.size >= self.options.max_batch_size or age >= self.options.batch_timeout
                if len(self.batches) > 1 or (first.tasks and (due or self.is_closed)):
                    if len(self.batches) == 1:
                        self.batches.append(Batch())
                    return self.batches.popleft()
                self.changed.wait(self.options.batch_timeout - age if first.tasks else None)
        return None

    def process(self, batch: Batch):
        """Runs a batch and gives each request its rows."""
        now = time.monotonic()
        deadline = max(task.deadline for task in batch.tasks)
        if deadline <= now:
            raise RefusalError("Run() timeout exceeded while waiting in batching queue", RESOURCE_EXHAUSTED)
        size, padded = batch.size, self.options.padded(batch.size)
        with self.changed:
            self.seen[size, padded] += 1
        outputs = self.run(merged(batch.tasks, padded - size), deadline - now)
        check_outputs(outputs, padded)
        start = 0
        for task in batch.tasks:
            task.future.set_result({name: array[start : start + task.size] for name, array in outputs.items()})
            start += task.size

    def close(self):
        """Ends when the requests that wait have been answered."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()


def first_dimension(inputs: Mapping[str, np.ndarray]) -> int:
    """Returns the number of rows of a request, which all its tensors must have."""
    if any(array.ndim == 0 for array in inputs.values()):
        raise RefusalError("Batching Run() input tensors must have at least one dimension")
    if len({len(array) for array in inputs.values()}) > 1:
        raise RefusalError("Batching Run() input tensors must have equal 0th-dimension size")
    return len(next(iter(inputs.values())))


def merged(tasks: Sequence[Task], padding: int) -> dict[str, np.ndarray]:
    """Concatenates requests; the first row of the last one fills the batch up."""
    names = tasks[0].inputs
    for name in names:
        if len({task.inputs[name].shape[1:] for task in tasks}) > 1:
            raise RefusalError(
                f"Tensors with name '{name}' from different tasks have different shapes and padding is turned off.",
                FAILED_PRECONDITION,
            )
    parts = {name: [task.inputs[name] for task in tasks] for name in names}
    return {name: np.concatenate([*arrays, *[arrays[-1][:1]] * padding]) for name, arrays in parts.items()}


def check_outputs(outputs: Mapping[str, np.ndarray], size: int):
    """Refuses outputs that cannot be told apart by request."""
    for array in outputs.values():
        if array.ndim == 0:
            raise RefusalError("Batched output tensor has 0 dimensions", FAILED_PRECONDITION)
        if len(array) != size:
            what = "does not equal the sum of the 0th dimension sizes of the input tensors"
            raise RefusalError(f"Batched output tensor's 0th dimension {what}", FAILED_PRECONDITION)
