"""Vehicle files: a car of one's own in a few lines, read and written.

    veridyn: 2
    vehicle:
      mass: 982
      front: 1.33                                   # m from the centre of mass to the front axle
      rear: 1.07
      tyre: tanh
      front_stiffness: {value: 15, sigma: 6}        # uncertain: it can be identified

A number is a known value; ``{value, sigma, lower, upper}`` carries its uncertainty. :data:`veridyn.model.car.TABLE` has every key.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from veridyn.arguments import checked
from veridyn.errors import Fault, Faults, FileError, ModelError, did_you_mean, part_at
from veridyn.files.expressions import evaluate
from veridyn.files.yaml_nodes import text_of
from veridyn.files.yaml_plain import plain_yaml
from veridyn.model.car import PARAMETERS, TABLE
from veridyn.model.car_machine import PriorValue, car_described, car_machine, prior_of
from veridyn.model.machine import Machine

FORMAT = 2
PRIOR_KEYS = ("value", "sigma", "lower", "upper")


def parse_vehicle(values: Mapping[str, Any], name: str = "vehicle") -> Machine:
    """The vehicle that the keys and values of a section describe; a ModelError with every fault, by key."""
    faults, given = Faults(), dict[str, PriorValue]()
    known = (*PARAMETERS, "name", "tyre")
    for key, value in values.items():
        if key in ("name", "tyre"):
            continue
        where = part_at("vehicle", str(key))
        if key not in TABLE:
            faults.add(f"there is no key '{key}' here.", where=where, hint=did_you_mean(str(key), known))
            continue
        try:
            given[key] = _prior_value(value)
        except (ValueError, TypeError, ModelError):
            expected = f"a number, or {{{', '.join(PRIOR_KEYS)}}} of numbers: {TABLE[key].what}, {TABLE[key].unit}"
            faults.add("the value cannot be used.", where=where, expected=expected, found=f"{value!r}"[:60])
    faults.raise_if_any(ModelError)
    return car_machine(str(values.get("name", name)), given, str(values.get("tyre", "tanh")))


def _prior_value(value: Any) -> PriorValue:
    if not isinstance(value, Mapping):
        return PriorValue(_number(value))
    if "value" not in value or not set(value) <= set(PRIOR_KEYS):
        raise ValueError(value)
    return PriorValue(**{key: _number(x) for key, x in value.items()})


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(value)
    return float(evaluate(value)) if isinstance(value, str) else float(value)


@checked
def load_vehicle(path: str | Path) -> Machine:
    """Read a vehicle file.

    Parameters
    ----------
    path : str or path
        A YAML file with a section `vehicle`.

    Returns
    -------
    Machine

    Raises
    ------
    FileError
        With every fault, by key and line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from veridyn.files import load_vehicle
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "car.yaml"
    ...     _ = file.write_text("veridyn: 2\\nvehicle: {mass: 900, front: 1.0, rear: 1.4}\\n", encoding="utf-8")
    ...     load_vehicle(file).parameters["mass"]
    900.0
    """
    file = Path(path)
    yaml = plain_yaml(text_of(file), file.name)
    section = yaml.values.get("vehicle")
    odd = [key for key in yaml.values if key not in ("veridyn", "vehicle")]
    if not isinstance(section, Mapping) or odd or yaml.values.get("veridyn") != FORMAT:
        found = f"the keys {', '.join(list(yaml.values)[:8])}"
        raise FileError(
            Fault("this is no vehicle file.", expected=f"veridyn: {FORMAT} and a section vehicle", found=found),
            file.name,
        )
    try:
        return parse_vehicle(section, file.stem)
    except ModelError as error:
        faults = [_with_line(fault, yaml.line(fault.at)) for fault in error.faults]
        raise FileError(faults, file.name) from error


def _with_line(fault: Fault, line: int | None) -> Fault:
    return Fault(fault.what, fault.where, fault.expected, fault.found, fault.hint, line, fault.at)


@checked
def vehicle_text(car: Machine) -> str:
    """The text of a vehicle file: parse(text) is the car, to the digits written; what is as by default is left out."""
    lines = [f"veridyn: {FORMAT}", "vehicle:", f"  name: {car.name}", f"  tyre: {car_described(car).tyre}"]
    for key, kind in TABLE.items():
        b = prior_of(car, key)
        if b.sigma == 0.0 and b.value == kind.default:
            continue
        parts = [f"value: {b.value:.9g}"]
        parts += [f"sigma: {b.sigma:.4g}"] if b.sigma > 0.0 else []
        parts += [f"lower: {b.lower:.9g}"] if b.lower > kind.lower else []
        parts += [f"upper: {b.upper:.9g}"] if b.upper < kind.upper else []
        shown = f"{b.value:.9g}" if len(parts) == 1 else "{" + ", ".join(parts) + "}"
        lines.append(f"  {key}: {shown}  # {kind.what}, {kind.unit}")
    return "\n".join(lines) + "\n"
