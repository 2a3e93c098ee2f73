"""Runs side by side: figures, parameters and what went in, and which parameters differ by more than their deviations."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from veridyn.errors import Fault, FileError, VeridynError

PARAMETER_KEYS = ("name", "unit", "value", "sigma")
APART = 3.0  # deviations of the difference from which two values are not the same


@dataclass(frozen=True)
class Difference:
    """One number of every run, NaN where a run lacks it, with its deviations.

    `apart`: by how many deviations of their difference the two runs differ that differ most; NaN where there are none.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    sigmas: tuple[float, ...] = ()
    apart: float = float("nan")


@dataclass(frozen=True)
class Comparison:
    """What two or more runs found, and in what they differ.

    `lacking`: for each run the parameters that others have and it has not. `inputs`: what went in → its hash in each run, or "".
    """

    runs: tuple[str, ...]
    figures: tuple[Difference, ...]
    parameters: tuple[Difference, ...]
    lacking: tuple[tuple[str, ...], ...]
    inputs: Mapping[str, tuple[str, ...]]
    versions: tuple[str, ...]

    @property
    def differing(self) -> tuple[Difference, ...]:
        """Parameters that differ by more than three deviations."""
        return tuple(d for d in self.parameters if d.apart > APART)

    @property
    def input_lines(self) -> tuple[str, ...]:
        """A line about each input, and about versions where they differ."""
        lines = [f"{key}: {'the same' if len(set(h)) == 1 else 'not the same'}" for key, h in self.inputs.items()]
        if len(set(self.versions)) > 1:
            lines.append(f"veridyn: {', '.join(self.versions)}")
        return tuple(lines)

    def as_dict(self) -> dict[str, object]:
        def rows(items: tuple[Difference, ...]) -> list[dict[str, object]]:
            return [{key: list(v) if isinstance(v, tuple) else v for key, v in vars(d).items()} for d in items]

        return {
            "runs": list(self.runs),
            "figures": rows(self.figures),
            "parameters": rows(self.parameters),
            "lacking": [list(names) for names in self.lacking],
            "inputs": list(self.input_lines),
        }

    def summary(self) -> str:
        """Plain text: figures, parameters, and a line about each input."""
        wide = max((len(d.name) for d in (*self.figures, *self.parameters)), default=10) + 2
        column = max(18, 2 + max(map(len, self.runs)))
        head = "".join(f"{run:>{column}}" for run in self.runs)

        def row(d: Difference) -> str:
            return f"{d.name:<{wide}}" + "".join(f"{_shown(v):>{column}}" for v in d.values)

        lines = [f"{'':<{wide}}{head}", *(row(d) for d in self.figures)]
        lines += ["", f"{'parameter':<{wide}}{head}{'deviations apart':>18}  unit"]
        lines += [
            f"{row(d)}{_shown(d.apart, 3):>18}  {d.unit}" + ("  *" if d.apart > APART else "") for d in self.parameters
        ]
        for run, names in zip(self.runs, self.lacking, strict=True):
            lines += [f"not in {run}: {', '.join(names)}"] if names else []
        lines += ["", *self.input_lines]
        count = len(self.differing)
        lines.append(f"{count} of {len(self.parameters)} parameters differ by more than {APART:g} deviations (*).")
        return "\n".join(lines)


def compare(*runs: Path) -> Comparison:
    """Compare run folders, or their result.json files: the figures and parameters that at least two of them have."""
    if len(runs) < 2:
        raise VeridynError(Fault("there is nothing to compare.", expected="two runs or more", found=str(len(runs))))
    results = [_result(run) for run in runs]
    figures = [r["figures"] for r in results]
    tables = [{p["name"]: p for p in r["parameters"]} for r in results]
    every = _names(tables)
    return Comparison(
        tuple(_labels(runs)),
        tuple(Difference(n, "", tuple(_float(f.get(n)) for f in figures)) for n in _shared(figures)),
        tuple(_difference(n, [t.get(n) for t in tables]) for n in _shared(tables)),
        tuple(tuple(n for n in every if n not in t) for t in tables),
        {key: tuple(str(r["inputs"].get(key, "")) for r in results) for key in _names([r["inputs"] for r in results])},
        tuple(str(r["veridyn"]) for r in results),
    )


def _names(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every key once, in order."""
    return list(dict.fromkeys(n for t in tables for n in t))


def _shared(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys of two tables or more, in order."""
    return [n for n in _names(tables) if sum(n in t for t in tables) > 1]


def _difference(name: str, rows: Sequence[dict[str, Any] | None]) -> Difference:
    values = tuple(_float(None if p is None else p["value"]) for p in rows)
    sigmas = tuple(_float(None if p is None else p["sigma"]) for p in rows)
    apart = [
        abs(x - y) / math.hypot(a, b)
        for (x, a), (y, b) in combinations(zip(values, sigmas, strict=True), 2)
        if math.hypot(a, b) > 0.0 and math.isfinite(x - y)
    ]
    unit = next(str(p["unit"]) for p in rows if p is not None)
    return Difference(name, unit, values, sigmas, max(apart, default=float("nan")))


def _labels(runs: Sequence[Path]) -> list[str]:
    """The names of the folders; a number behind those that come again."""
    names = [_label(run) for run in runs]
    return [f"{n} ({names[: k + 1].count(n)})" if names.count(n) > 1 else n for k, n in enumerate(names)]


def _label(path: Path) -> str:
    return path.name if path.is_dir() else path.parent.name or path.name


def _float(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _shown(value: float, digits: int = 6) -> str:
    return f"{value:.{digits}g}" if math.isfinite(value) else "–"


def _result(path: Path) -> dict[str, Any]:
    file = path / "result.json" if path.is_dir() else path
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        fault = Fault(
            f"there is no result of a run: {reason}.", expected="a run folder with result.json", found=str(file)
        )
        raise FileError(fault, str(path)) from error
    except json.JSONDecodeError as error:
        raise FileError(Fault("it is not JSON, or its end is missing.", line=error.lineno), str(file)) from error
    wanted = ("veridyn", "inputs", "figures", "parameters")
    missing = [key for key in wanted if not isinstance(content, dict) or key not in content]
    if missing:
        raise FileError(f"it is no result of a run: '{missing[0]}' is missing.", source=str(file))
    faults = _shape_faults(content)
    if faults:
        raise FileError(faults, str(file))
    return content


def _shape_faults(content: dict[str, Any]) -> list[Fault]:
    """What of a result is not of the kind it should be."""
    faults = [
        Fault("it is no result of a run: a table was expected.", key, found=f"{content[key]!r:.40}")
        for key in ("inputs", "figures")
        if not isinstance(content[key], dict)
    ]
    if not isinstance(content["parameters"], list):
        return [*faults, Fault("it is no result of a run: a list was expected.", "parameters")]
    for k, p in enumerate(content["parameters"], 1):
        lacking = [key for key in PARAMETER_KEYS if not isinstance(p, dict) or key not in p]
        if lacking or not isinstance(p["name"], str):
            what = f"'{(lacking or ['name'])[0]}' is missing or no text."
            faults.append(Fault(f"it is no result of a run: {what}", f"parameters[{k}]"))
    return faults
