"""What a report is made of: a verdict, key figures, and sections of paragraphs, tables, pictures and animations; and its words and numbers.

Blocks are data; `page` sets them. Text is plain text: it is escaped when it is set, so names that come from files do no harm. Of a picture
that cannot be drawn the report and the warnings name the reason, and the report goes on without it. Numbers and units are those that people
read, also on a terminal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from veridyn.errors import Fault, ReportWarning, VeridynError, warn

if TYPE_CHECKING:
    from veridyn.report.plots import Curve, HeatMap, Plot
    from veridyn.view.scene import Scene

NAMED_FAULTS = 3  # that stand in a summary; the section about them has all
DIGITS = 15  # that a double has for certain
LEAST_POWER = -300  # of ten; numbers below 10⁻³⁰⁸ have fewer digits
_UNIT = {"*": "·", "^2": "²", "^3": "³"}
_NAME = r"(?:kg|rad|deg|Hz|N|A|V|W|J|m|s)(?:\^[23])?"
_UNITS = re.compile(rf"(?<![\w*/^.\[]){_NAME}(?:[*/]{_NAME})*(?![\w*/^(])")
FILTER_WORDS = {
    "linear": "linear Kalman",
    "error_ekf": "errorEKF",
    "error_ekf_force": "errorEKF with forces",
    "ekf": "EKF, exact derivatives",
    "ukf": "UKF",
    "smoother": "smoother (RTS)",
}


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

    def against(self, missed: Sequence[str] = (), faults: Sequence[str] = ()) -> Verdict:
        """The same study with what speaks against it first: limits of its file that are missed, and possible faults of data or model.

        With a missed limit it is poor, with a possible fault not good.
        """
        words, grade = [self.headline], self.grade
        if faults:
            n = len(faults)
            words.append("A possible fault is named below." if n == 1 else f"{n} possible faults are named below.")
            grade = "fair" if grade == "good" else grade
        if missed:
            n = len(missed)
            words.append("A limit of the study is missed." if n == 1 else f"{n} limits of the study are missed.")
            grade = "poor"
        shown = faults if len(faults) <= NAMED_FAULTS + 1 else faults[:NAMED_FAULTS]
        first = [f"Missed: {text}" for text in missed] + [f"Possible fault: {text}" for text in shown]
        if len(shown) < len(faults):
            first.append(f"{len(faults) - len(shown)} more possible faults stand below.")
        return replace(self, grade=grade, headline=" ".join(words), findings=(*first, *self.findings))


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
    """Cells of text; the first column names the row. `left`: numbers of columns that hold words, `strong`: of those that matter most.

    `weak`: numbers of rows whose values are not to be relied on. Words in the column "unit" stand below the names on a narrow screen.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
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


def drawing_errors() -> tuple[type[Exception], ...]:
    """What geometry and numbers can do to a picture: a degenerate hull, a decomposition that fails (a ValueError), a division by zero.

    Others are defects of the program: the results are kept all the same (:mod:`veridyn.cli.output`), and the traceback is shown.
    """
    from scipy.spatial import QhullError  # loaded where something is drawn: lines on a terminal need no geometry

    return VeridynError, QhullError, ValueError, ArithmeticError


def attempted(picture: str, make: Callable[[], Block]) -> Block:
    """The block that `make` draws; where it cannot be drawn, a paragraph and a warning that name the picture and the reason."""
    try:
        return make()
    except drawing_errors() as error:
        return undrawn(picture, error)


def undrawn(picture: str, error: Exception) -> Text:
    """What stands in place of a picture; a warning says the same."""
    lines = str(error).strip().splitlines() or ["no reason given"]
    reason, hint = f"{type(error).__name__}: {lines[0]}", "No number of the result depends on it."
    warn(ReportWarning, Fault("it cannot be drawn.", where=f"picture “{picture}”", found=reason, hint=hint))
    return Text(f"The picture “{picture}” cannot be drawn ({reason}). {hint}")


def unit_text(unit: str) -> str:
    """For the eye: kg*m^2 becomes kg·m²."""
    return re.sub("|".join(re.escape(k) for k in _UNIT), lambda m: _UNIT[m[0]], unit)


def units_in(text: str) -> str:
    """Units within a sentence as :func:`unit_text` writes them; names, headers such as tau1 [N*m] and formulas stay as they are."""
    return _UNITS.sub(lambda m: unit_text(m[0]), text)


def number(value: float, digits: int = 4) -> str:
    """A few significant digits, a power of ten from a million on; "–" where there is no number."""
    if not math.isfinite(value):
        return "–"
    mantissa, _, power = f"{value:.{digits}g}".partition("e")
    if power and 0 < int(power) < 6:
        mantissa, power = f"{float(f'{value:.{digits}g}'):.0f}", ""
    if not float(mantissa):
        return "0"
    return mantissa.replace("-", "−") + (f"·10{superscript(int(power))}" if power else "")


def superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def measured(value: float, sigma: float) -> tuple[str, str]:
    """Value and deviation to the same place: two digits of the deviation. One below a double's rounding of the value stands alone."""
    if not (math.isfinite(value) and math.isfinite(sigma)) or sigma <= 0.0:
        return number(value, 6), number(sigma, 2)
    exponent = math.floor(math.log10(sigma))
    if float(f"{sigma:.1e}") >= 10.0 ** (exponent + 1):  # rounding carried it into the next decade
        exponent += 1
    power = math.floor(math.log10(max(abs(value), sigma)))
    if power - exponent + 2 > DIGITS or power < LEAST_POWER:
        return number(value, DIGITS), number(sigma, 2)
    places = 1 - exponent
    if places > 8 or places < -3:
        if float(f"{max(abs(value), sigma) / 10.0**power:.{max(power - exponent, -1) + 1}f}") >= 10.0:
            power += 1
        times = f"·10{superscript(power)}" if power else ""
        shown = [_plain(x / 10.0**power, power - exponent + 1) + times for x in (value, sigma)]
        return shown[0], shown[1]
    if places < 0:
        value, sigma, places = round(value, places), round(sigma, places), 0
    return _plain(value, places), _plain(sigma, places)


def like(value: float, sigma: float) -> str:
    """Another value of the same quantity, to the place where the deviation begins to matter."""
    return "0" if value == 0.0 else measured(value, sigma)[0] if math.isfinite(value) else "–"


def percent(value: float) -> str:
    """Percent with two digits: 0.04, 0.84, 3.1, 18; above 999 the digits do not matter."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "> 999" if value > 0.0 else "< −999"
    if value > 999.0:
        return "> 999"
    if value < 0.0:
        return "< −999" if value < -999.0 else "−" + percent(-value)
    if value < 0.095:
        return number(value, 1)
    return f"{value:.{0 if value >= 9.95 else 1 if value >= 0.995 else 2}f}"


def count(n: int, one: str, many: str = "") -> str:
    """The number with its noun: 1 row, 3 rows."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def listed(names: Sequence[str], most: int = 12) -> str:
    """All of them, as in a, b and c; or the first and how many more."""
    if len(names) > most:
        return ", ".join(names[:most]) + f" and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def _plain(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text.replace("-", "−") if float(text) else text.replace("-", "")
