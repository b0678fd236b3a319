"""What was measured, as plain numbers."""

import statistics
from dataclasses import asdict, dataclass, field

from benchmarks.contenders import Contender
from benchmarks.decoding import REFERENCES
from benchmarks.decoding.jobs import Job


@dataclass
class Measurement:
    """One contender at one job.

    Attributes:
        job: What was translated.
        contender: Who did it.
        ids: The translations, without their ends.
        steps: Number of steps of the decoder, for each batch.
        peak_gib: The most memory that its process had until then; jobs come in the order of their sizes.
        seconds: How long each run took.
    """

    job: Job
    contender: Contender
    ids: list[list[int]]
    steps: list[int]
    peak_gib: float
    seconds: list[float] = field(default_factory=list)

    @property
    def has_shared_weights(self) -> bool:
        """Whether its translations can be compared with those of others."""
        return self.contender.name not in ("keras-hub", "products")

    @property
    def lengths(self) -> list[int]:
        """Number of tokens of each translation, its end included."""
        return [self.job.fixed_length or len(row) + 1 for row in self.ids]

    @property
    def best_tokens_per_second(self) -> float:
        """Speed of the fastest run."""
        return sum(self.lengths) / min(self.seconds)

    @property
    def median_tokens_per_second(self) -> float:
        """Speed of the median run."""
        return sum(self.lengths) / statistics.median(self.seconds)

    @property
    def mean_tokens(self) -> float:
        """Mean number of tokens of a translation."""
        return statistics.mean(self.lengths)

    @property
    def mean_steps(self) -> float:
        """Mean number of steps of the decoder."""
        return statistics.mean(self.steps)

    @property
    def share_as_drawn(self) -> float:
        """Share of the translations that are as long as was drawn."""
        return statistics.mean(
            length == drawn for length, drawn in zip(self.lengths, self.job.drawn_lengths()[1].tolist(), strict=True)
        )

    def describe(self) -> str:
        """Says the speed, and whether all translations are as long as they should be."""
        lengths = "" if self.share_as_drawn == 1 else f"; only {self.share_as_drawn:.0%} are as long as was drawn"
        return f"{self.contender.title}: {self.best_tokens_per_second:,.0f} tokens/s{lengths}"

    def share_equal(self, other: "Measurement") -> float:
        """Share of the translations that are the same ids; of a fixed length, without the last token, which may be an end."""
        words = None if self.job.fixed_length is None else self.job.fixed_length - 1
        return statistics.mean(mine[:words] == theirs[:words] for mine, theirs in zip(self.ids, other.ids, strict=True))

    def ratio_to(self, other: "Measurement") -> float:
        """Returns how many times as fast it is."""
        return self.best_tokens_per_second / other.best_tokens_per_second


def of_contender(name: str, job: Job, measurements: list[Measurement]) -> Measurement | None:
    """Finds the measurement of one contender at a job, if it took part."""
    return next((one for one in measurements if one.job == job and one.contender.name == name), None)


def reference_of(job: Job, measurements: list[Measurement]) -> Measurement | None:
    """Finds the measurement that others are compared with: the faster of the reference's ways to do a job."""
    ways = [one for one in measurements if one.job == job and one.contender.name in REFERENCES]
    return max(ways, key=lambda one: one.best_tokens_per_second, default=None)


def as_json(measurements: list[Measurement]) -> list[dict]:
    """Returns all that was measured as plain dictionaries."""
    return [one_as_json(one, reference_of(one.job, measurements)) for one in measurements]


def one_as_json(measurement: Measurement, reference: Measurement | None) -> dict:
    """Returns a measurement as a plain dictionary."""
    names = ("best_tokens_per_second", "median_tokens_per_second", "mean_tokens", "mean_steps", "share_as_drawn", "peak_gib")
    return {
        **asdict(measurement.job),
        "contender": measurement.contender.name,
        **{name: getattr(measurement, name) for name in names},
        "runs": len(measurement.seconds),
        "times_reference": reference and measurement.ratio_to(reference),
        "share_equal": reference and measurement.share_equal(reference),
    }
