"""What a report is made of: a verdict, key figures, and sections of paragraphs, tables, pictures and animations.

Blocks are data; `page` sets them. Text is plain text: it is escaped when it is set, so names that come from files do no harm. Of a picture
that cannot be drawn the report and the warnings name the reason, and the report goes on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from scipy.spatial import QhullError

from veridyn.errors import Fault, ReportWarning, VeridynError, warn
from veridyn.report.plots import Curve, HeatMap, Plot
from veridyn.view.scene import Scene

# What geometry and numbers can do to a picture: a degenerate hull, a decomposition that fails (a ValueError), a division by zero.
# Others are defects of the program: the results are kept all the same (veridyn.cli.output), and the traceback is shown.
DRAWING_ERRORS = (VeridynError, QhullError, ValueError, ArithmeticError)


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
class Cell:
    """A cell that is more than its text: a "bar" filled to `percent`, or a "strip" with a dot there, sorted by `sort`; `mark`: why its
    name carries a mark."""

    text: str
    form: Literal["", "bar", "strip"] = ""
    percent: float = 0.0
    sort: str = ""
    mark: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Table:
    """Cells of text; the first column names the row. `left`: numbers of columns that hold words, `strong`: of those that matter most.

    `weak`: numbers of rows whose values are not to be relied on. Words in the column "unit" stand below the names on a narrow screen.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    caption: str = ""
    left: Sequence[int] = ()
    strong: Sequence[int] = ()
    weak: Sequence[int] = ()
    kind: str = field(default="table", init=False)

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                what = "a row of a table has not one cell for each column."
                where = f"row {number} ({row[0] if row else 'empty'})"
                raise VeridynError(Fault(what, where, f"{len(self.columns)} cells", str(len(row))))

    @property
    def unit(self) -> int | None:
        """The number of the column "unit", where there is one and it holds words."""
        return next((k for k, name in enumerate(self.columns) if name == "unit" and k in self.left), None)


@dataclass(frozen=True)
class Figure:
    """Plots, side by side where there is room; each shows its title above it, but for a single one below a `title` of its figure.

    `below`: one plot under each of them, or none, such as the errors of what stands above.
    """

    plots: Sequence[Plot]
    title: str = ""
    caption: str = ""
    below: Sequence[Plot] = ()
    kind: str = field(default="figure", init=False)

    def __post_init__(self) -> None:
        if self.below and len(self.below) != len(self.plots):
            where = f"figure “{self.title}”"
            what = "the plots below are not as many as those above."
            raise VeridynError(Fault(what, where, f"{len(self.plots)} plots", str(len(self.below))))

    @property
    def legend(self) -> tuple[Curve, ...]:
        """Every curve that has a label, once."""
        return tuple({c.label: c for p in (*self.plots, *self.below) for c in p.legend}.values())

    @property
    def tick_width(self) -> int:
        """Characters of the longest label beside a y axis, for which all of them leave room."""
        return max((p.tick_width for p in (*self.plots, *self.below)), default=0)


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
    """A heading, what it is about in a sentence or two, and what it shows; `anchor`: by which links find it, else its number."""

    title: str
    blocks: Sequence[Block]
    lead: str = ""
    anchor: str = ""


def attempted(picture: str, make: Callable[[], Block]) -> Block:
    """The block that `make` draws; where it cannot be drawn, a paragraph and a warning that name the picture and the reason."""
    try:
        return make()
    except DRAWING_ERRORS as error:
        return undrawn(picture, error)


def undrawn(picture: str, error: Exception) -> Text:
    """What stands in place of a picture; a warning says the same."""
    lines = str(error).strip().splitlines() or ["no reason given"]
    reason, hint = f"{type(error).__name__}: {lines[0]}", "No number of the result depends on it."
    warn(ReportWarning, Fault("it cannot be drawn.", where=f"picture “{picture}”", found=reason, hint=hint))
    return Text(f"The picture “{picture}” cannot be drawn ({reason}). {hint}")
