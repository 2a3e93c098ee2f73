"""How many operations expressions take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from veridyn.symbolic.expression import ADD, COS, DIV, MUL, SIN, SUB, Graph, Number, live


@dataclass(frozen=True)
class Count:
    """Multiplications, additions and subtractions, divisions, and sines and cosines, each shared expression counted once."""

    multiplications: int
    additions: int
    divisions: int
    trigonometric: int

    @property
    def total(self) -> int:
        """Multiplications and additions together, as the papers count."""
        return self.multiplications + self.additions

    def __str__(self) -> str:
        parts = [f"{self.multiplications} multiplications", f"{self.additions} additions"]
        parts += [f"{self.divisions} divisions"] if self.divisions else []
        parts += [f"{self.trigonometric} sines and cosines"] if self.trigonometric else []
        return ", ".join(parts)


def count(graph: Graph, outputs: Iterable[Number]) -> Count:
    """The operations that these outputs need."""
    ops = [graph.operation[n] for n in live(graph, outputs)]
    return Count(ops.count(MUL), ops.count(ADD) + ops.count(SUB), ops.count(DIV), ops.count(SIN) + ops.count(COS))
