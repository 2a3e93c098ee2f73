"""Two runs side by side: figures, parameters and what went in, and which parameters differ by more than their deviations."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veridyn.errors import Fault, FileError

OLD_FIGURES = {"parameters_asked": "parameters_estimated"}  # names that older runs have
OLD_INPUTS = {"mechanism": "model", "believed": "controller_model"}
PARAMETER_KEYS = ("name", "unit", "value", "sigma")
APART = 3.0  # deviations of the difference from which two values are not the same


@dataclass(frozen=True)
class Difference:
    """One number of both runs. `apart`: by how many deviations they differ; NaN where there are none."""

    name: str
    unit: str
    first: float
    second: float
    apart: float = float("nan")


@dataclass(frozen=True)
class Comparison:
    """What two runs found, and in what they differ."""

    runs: tuple[str, str]
    figures: tuple[Difference, ...]
    parameters: tuple[Difference, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    inputs: tuple[str, ...]

    @property
    def differing(self) -> tuple[Difference, ...]:
        """Parameters that differ by more than three deviations."""
        return tuple(d for d in self.parameters if d.apart > APART)

    def as_dict(self) -> dict[str, object]:
        def rows(items: tuple[Difference, ...]) -> list[dict[str, object]]:
            return [vars(d) for d in items]

        return {
            "runs": list(self.runs),
            "figures": rows(self.figures),
            "parameters": rows(self.parameters),
            "only_in_first": list(self.only[0]),
            "only_in_second": list(self.only[1]),
            "inputs": list(self.inputs),
        }

    def summary(self) -> str:
        """Plain text: figures, parameters, and a line about each input."""
        a, b = self.runs
        wide = max((len(d.name) for d in (*self.figures, *self.parameters)), default=10) + 2
        lines = [f"{'':<{wide}}{a:>18}{b:>18}"]
        lines += [f"{d.name:<{wide}}{_shown(d.first):>18}{_shown(d.second):>18}" for d in self.figures]
        lines += ["", f"{'parameter':<{wide}}{a:>18}{b:>18}{'deviations apart':>18}  unit"]
        lines += [
            f"{d.name:<{wide}}{_shown(d.first):>18}{_shown(d.second):>18}{_shown(d.apart, 3):>18}  {d.unit}"
            + ("  *" if d.apart > APART else "")
            for d in self.parameters
        ]
        for run, names in zip(self.runs, self.only, strict=True):
            lines += [f"only in {run}: {', '.join(names)}"] if names else []
        lines += ["", *self.inputs]
        count = len(self.differing)
        lines.append(f"{count} of {len(self.parameters)} parameters differ by more than {APART:g} deviations (*).")
        return "\n".join(lines)


def compare(first: Path, second: Path) -> Comparison:
    """Compare two run folders, or their result.json files."""
    a, b = _result(first), _result(second)
    names = (_label(first), _label(second))
    shared = [n for n in a["figures"] if n in b["figures"]]
    figures = tuple(Difference(n, "", _float(a["figures"][n]), _float(b["figures"][n])) for n in shared)
    rows = {p["name"]: p for p in a["parameters"]}, {p["name"]: p for p in b["parameters"]}
    parameters = tuple(_difference(rows[0][n], rows[1][n]) for n in rows[0] if n in rows[1])
    only = (
        tuple(n for n in rows[0] if n not in rows[1]),
        tuple(n for n in rows[1] if n not in rows[0]),
    )
    inputs = [
        f"{key}: {'the same' if a['inputs'].get(key) == b['inputs'].get(key) else 'not the same'}"
        for key in dict.fromkeys((*a["inputs"], *b["inputs"]))
    ]
    if a["veridyn"] != b["veridyn"]:
        inputs.append(f"veridyn: {a['veridyn']} and {b['veridyn']}")
    return Comparison(names, figures, parameters, only, tuple(inputs))


def _difference(p: dict[str, Any], q: dict[str, Any]) -> Difference:
    x, y = _float(p["value"]), _float(q["value"])
    spread = math.hypot(_float(p["sigma"]), _float(q["sigma"]))
    apart = abs(x - y) / spread if spread > 0.0 else float("nan")
    return Difference(p["name"], str(p["unit"]), x, y, apart)


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
        raise FileError(Fault(f"it is no result of a run: '{missing[0]}' is missing."), str(file))
    faults = _shape_faults(content)
    if faults:
        raise FileError(faults, str(file))
    content["figures"] = {OLD_FIGURES.get(name, name): value for name, value in content["figures"].items()}
    content["inputs"] = {OLD_INPUTS.get(name, name): value for name, value in content["inputs"].items()}
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
