"""Batches whose rows can be divided evenly among devices."""

import dataclasses

from keras_transformer.data import ParallelDataset
from keras_transformer.data.plan import EpochPlan


class DividedPlanner:
    """Makes the plans of another planner, with as many rows of padding more as it takes to divide each batch evenly.

    Args:
        planner: What makes the plans.
        parts: Into how many parts the rows of a batch are divided.
    """

    def __init__(self, planner, parts: int):
        self.planner, self.parts = planner, parts

    def plan(self, epoch: int) -> EpochPlan:
        """Returns the plan of an epoch, counted from 0."""
        plan = self.planner.plan(epoch)
        shapes = [shape._replace(rows=-(-shape.rows // self.parts) * self.parts) for shape in plan.shapes]
        return dataclasses.replace(plan, shapes=shapes)


class DividedDataset(ParallelDataset):
    """The batches of a `ParallelDataset`, pair for pair, each with a number of rows that devices can share.

    Rows are added and none is left out: they are padding, which counts for nothing. Of several processes, each reads its own
    part of the rows (`shard`).

    Args:
        dataset: The dataset, made with the `shard` of this process.
        parts: Into how many parts the rows of a batch are divided, over all processes.
    """

    def __init__(self, dataset: ParallelDataset, parts: int):
        super().__init__(
            dataset.store,
            dataset.tokenizer,
            dataset.batch_tokens,
            dataset.seed,
            dataset.num_shapes,
            dataset.subword_sampling,
            dataset.shard,
            dataset.batches_per_update,
            dataset.copies,
        )
        self.planner = DividedPlanner(self.planner, parts)
        self._plan_epoch = None


def divided(dataset: ParallelDataset, parts: int) -> ParallelDataset:
    """Returns a dataset whose batches can be divided into parts; the same one if that takes nothing."""
    return dataset if parts == 1 else DividedDataset(dataset, parts)
