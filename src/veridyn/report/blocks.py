"""What a report is made of: a verdict, key figures, and sections of paragraphs, tables, pictures and animations.

Blocks are data; `page` sets them. Text is plain text: it is escaped when it is set, so names that come from files do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from veridyn.errors import Fault, VeridynError
from veridyn.report.drawing import Curve, HeatMap, Plot
from veridyn.view.scene import Scene


@dataclass(frozen=True)
class Verdict:
    """`grade` is "good", "fair" or "poor"; the rest are sentences: what was found, and what it may and may not be used for."""

    grade: str
    headline: str
    findings: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    may_not: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.grade not in ("good", "fair", "poor"):
            raise VeridynError(
                Fault("a verdict has no such grade.", where="grade", expected="good, fair or poor", found=self.grade)
            )


@dataclass(frozen=True)
class Key:
    """A number that stands large on the page, with what it is."""

    value: str
    label: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    kind: str = field(default="text", init=False)


@dataclass(frozen=True)
class Listing:
    """Short lines under each other; `code` sets them in fixed width."""

    items: Sequence[str]
    code: bool = False
    kind: str = field(default="listing", init=False)


@dataclass(frozen=True)
class Code:
    """A program or a command, as it is typed."""

    text: str
    kind: str = field(default="code", init=False)


@dataclass(frozen=True)
class Table:
    """Cells of text; the first column names the row. `left`: numbers of columns that hold words, `strong`: of those that matter most."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    left: Sequence[int] = ()
    strong: Sequence[int] = ()
    kind: str = field(default="table", init=False)

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise VeridynError(
                    Fault(
                        "a row of a table has not one cell for each column.",
                        where=f"row {number} ({row[0] if row else 'empty'})",
                        expected=f"{len(self.columns)} cells",
                        found=str(len(row)),
                    )
                )


@dataclass(frozen=True)
class Figure:
    """Plots, side by side where there is room; each shows its title above it where there is more than one."""

    plots: Sequence[Plot]
    title: str = ""
    caption: str = ""
    kind: str = field(default="figure", init=False)

    @property
    def legend(self) -> tuple[Curve, ...]:
        """Every curve that has a label, once."""
        return tuple({c.label: c for p in self.plots for c in p.legend}.values())


@dataclass(frozen=True)
class Heat:
    """A matrix in colours."""

    map: HeatMap
    caption: str = ""
    kind: str = field(default="heat", init=False)


@dataclass(frozen=True)
class Animation:
    """A moving picture that can be turned; on paper its first frame."""

    scene: Scene
    caption: str = ""
    kind: str = field(default="animation", init=False)


class Own(Protocol):
    """A block of a file of its own, by the word that the template knows it by."""

    @property
    def kind(self) -> str: ...


Block = Own | Text | Listing | Code | Table | Figure | Heat | Animation


@dataclass(frozen=True)
class Section:
    """A heading, what it is about in a sentence or two, and what it shows."""

    title: str
    blocks: Sequence[Block]
    lead: str = ""
