"""What is measured: training against sequence length, decoding against output length and against batch size."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.contenders import Contender
from benchmarks.decoding.jobs import SOURCE_LENGTH, Job
from benchmarks.shapes import Shape


@dataclass(frozen=True)
class Point:
    """One size.

    Attributes:
        size: Where it is on the axis.
        question: What the workers are asked, but for how long they may take.
        tokens: Number of tokens of a run.
    """

    size: int
    question: dict
    tokens: int


@dataclass
class Curve:
    """Points along one axis, and the speeds that were measured there.

    Attributes:
        name: What its picture is called.
        title: What is shown, in a line.
        axis: What grows.
        unit: What speeds are.
        worker: Module that each contender's process runs.
        contenders: Who takes part, with the modes that are measured.
        points: The sizes, ascending.
        speeds: For each contender's name, the speed at each size that it could do.
    """

    name: str
    title: str
    axis: str
    unit: str
    worker: str
    contenders: list[Contender]
    points: list[Point]
    speeds: dict[str, dict[int, float]] = field(default_factory=dict)

    @property
    def sizes(self) -> list[int]:
        """All sizes, those that nobody could do included."""
        return [point.size for point in self.points]

    def add(self, contender: Contender, point: Point, seconds: Iterable[float]):
        """Notes how long runs took. The fastest one counts, of all modes; without any, the contender is left out."""
        of_contender = self.speeds.setdefault(contender.name, {})
        for one in seconds:
            of_contender[point.size] = max(of_contender.get(point.size, 0.0), point.tokens / one)

    def speed(self, contender: Contender, size: int) -> float | None:
        """Returns the speed at a size, or `None` where the contender was left out."""
        return self.speeds.get(contender.name, {}).get(size)

    def ratio(self, size: int) -> float | None:
        """Returns how many times as fast as the best peer ours is at a size; `None` without either of them."""
        ours, peers = (
            [speed for one in self.contenders if one.is_peer == is_peer and (speed := self.speed(one, size))]
            for is_peer in (False, True)
        )
        return max(ours) / max(peers) if ours and peers else None


def training_by_length(contenders: list[Contender], shape: Shape, lengths: Iterable[int], tokens: int) -> Curve:
    """Trains on batches of equally many tokens, in fewer and fewer sentences."""
    batches = [{"batch_size": max(1, tokens // length), "length": length} for length in sorted(lengths)]
    return Curve(
        name="length",
        title=f"Training step, {tokens:,} tokens a side, {shape.name} shape",
        axis="sequence length",
        unit="target tokens/s",
        worker="benchmarks.growing.worker",
        contenders=contenders,
        points=[Point(one["length"], {"batch": one}, one["batch_size"] * one["length"]) for one in batches],
    )


def decoding_by_length(contenders: list[Contender], shape: Shape, lengths: Iterable[int], beam: int, batch: int) -> Curve:
    """Writes longer and longer translations."""
    return Curve(
        name="output",
        title=f"Decoding, beam {beam}, batch {batch}, sources of {SOURCE_LENGTH} tokens, {shape.name} shape",
        axis="output length",
        unit="output tokens/s",
        worker="benchmarks.decoding.worker",
        contenders=contenders,
        points=[point_of(length, Job(str(length), beam, batch)) for length in sorted(lengths)],
    )


def decoding_by_batch(contenders: list[Contender], shape: Shape, batches: Iterable[int], beam: int, length: int) -> Curve:
    """Translates more and more sentences at once."""
    return Curve(
        name="batch",
        title=f"Decoding, beam {beam}, {length} tokens, sources of {SOURCE_LENGTH} tokens, {shape.name} shape",
        axis="batch size",
        unit="output tokens/s",
        worker="benchmarks.decoding.worker",
        contenders=contenders,
        points=[point_of(batch, Job(str(length), beam, batch)) for batch in sorted(batches)],
    )


def point_of(size: int, job: Job) -> Point:
    """Makes a point of a job whose translations have a fixed length."""
    return Point(size, {"job": job.to_dict()}, job.batch_size * job.fixed_length)
