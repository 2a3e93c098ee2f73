"""A processor that runs programs with NumPy, node by node, and adds up products column by column: what a GPU must give."""

from __future__ import annotations

import numpy as np

from strangers.evaluate import evaluate
from veridyn.symbolic.gram_ptx import BLOCKS, SIDE, WARPS


class NumpyProcessor:
    """:class:`veridyn.symbolic.gpu.Processor` without a GPU."""

    name, xp = "NumPy", np

    def __init__(self, free=10**10):
        self.free = free
        self.tables = 0

    def free_bytes(self):
        return self.free

    def host(self, array):
        return np.asarray(array)

    def program(self, graph, outputs, samples, parameters, *, goals=None, sets=False):
        def run(inputs, values, out, count):
            self.tables += 1
            rows = np.atleast_2d(np.asarray(values)) if len(parameters) else np.zeros((1, 0))
            per_sample = rows[np.arange(count) // (count // len(rows))]
            given = dict(zip(samples, inputs[:, :count])) | dict(zip(parameters, per_sample.T))
            for k, value in enumerate(evaluate(graph, outputs, given)):
                out[k, :count] = value

        return run

    def gram(self, plan, tile):
        return TaskGram(plan, tile)


class TaskGram:
    """The Gram kernel's tasks, read from its own table as the kernel reads them."""

    def __init__(self, plan, tile):
        self.plan = plan
        self.sums = np.full((len(plan.patches), SIDE, SIDE), np.nan)
        for task in plan.tasks:
            for _, _, patch in self._warps(task):
                self.sums[patch] = 0.0

    @staticmethod
    def _warps(task):
        return [w for w in task[2 * BLOCKS :].reshape(WARPS, 3) if w[2] >= 0]

    def add(self, table, samples):
        for task in self.plan.tasks:
            blocks = []
            for first, count in task[: 2 * BLOCKS].reshape(BLOCKS, 2):
                block = np.zeros((SIDE, samples))
                block[:count] = table[first : first + count, :samples]
                blocks.append(block)
            for a, b, patch in self._warps(task):
                self.sums[patch] += blocks[a] @ blocks[b].T

    def matrices(self):
        return self.plan.matrices(self.sums)
