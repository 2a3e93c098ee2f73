"""Tyre property files (.tir) of the PAC2002 family, read into TyreParameters.

    tyre = load_tir("205_60R15.tir", side="right")

A file has sections in brackets, lines ``KEY = value``, strings in quotes, tables of numbers, and comments after ``$`` or ``!``. Its
coefficients are in ISO axes and radians whatever the section [UNITS] says; lengths, forces, speeds and the ranges of angles are in the
units named there, or else SI. What veridyn does not use is kept in ``parameters.other``; a DataWarning names what of it could change
the forces.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from veridyn.errors import DataWarning, Fault, Faults, FileError, ModelError, at_line, did_you_mean, warn
from veridyn.files.units import convert, si_unit
from veridyn.mechanics.ground.tyre_parameters import ESSENTIAL, NAMES, RANGES, TyreParameters, mirrored

FORMATS = ("PAC2002", "MF_05", "MF-TYRE", "MF_TYRE", "MF52")
OLDEST_OTHER_FIT = 60  # FITTYP of Magic Formula 6.x, whose coefficients of the same name mean other things
ALIASES = {"LFZ0": "LFZO"}
QUANTITIES = ("LENGTH", "FORCE", "ANGLE", "MASS", "TIME")
SI = {"LENGTH": "meter", "FORCE": "newton", "ANGLE": "radians", "MASS": "kg", "TIME": "second"}
WORDS = {
    **dict.fromkeys(("meter", "metre", "meters", "m"), "m"),
    **dict.fromkeys(("millimeter", "millimetre", "mm"), "mm"),
    **dict.fromkeys(("centimeter", "centimetre", "cm"), "cm"),
    **dict.fromkeys(("inch", "in"), "inch"),
    **dict.fromkeys(("foot", "feet", "ft"), "ft"),
    **dict.fromkeys(("newton", "newtons", "n"), "N"),
    **dict.fromkeys(("kilonewton", "knewton", "kn"), "kN"),
    **dict.fromkeys(("pound_force", "pound-force", "lbf"), "lbf"),
    **dict.fromkeys(("radian", "radians", "rad"), "rad"),
    **dict.fromkeys(("degree", "degrees", "deg"), "deg"),
    **dict.fromkeys(("kilogram", "kg"), "kg"),
    **dict.fromkeys(("gram",), "gram"),
    **dict.fromkeys(("pound_mass", "pound-mass", "lbm"), "lb"),
    **dict.fromkeys(("second", "seconds", "sec", "s"), "s"),
    **dict.fromkeys(("millisecond", "milli", "msec", "ms"), "ms"),
    **dict.fromkeys(("minute", "min"), "min"),
    **dict.fromkeys(("hour",), "h"),
}
UNITS = {
    "FNOMIN": "{FORCE}",
    "UNLOADED_RADIUS": "{LENGTH}",
    "VERTICAL_STIFFNESS": "{FORCE}/{LENGTH}",
    "VERTICAL_DAMPING": "{FORCE}*{TIME}/{LENGTH}",
    "LONGVL": "{LENGTH}/{TIME}",
    **dict.fromkeys(("FZMIN", "FZMAX"), "{FORCE}"),
    **dict.fromkeys(("ALPMIN", "ALPMAX", "CAMMIN", "CAMMAX"), "{ANGLE}"),
}
SECTIONS = {
    "UNITS": r"",
    "MODEL": r"LONGVL",
    "DIMENSION": r"UNLOADED_RADIUS",
    "VERTICAL": r"VERTICAL_.*|.REFF|FNOMIN",
    "LONG_SLIP_RANGE": r"KPU.*",
    "SLIP_ANGLE_RANGE": r"ALP.*",
    "INCLINATION_ANGLE_RANGE": r"CAM.*",
    "VERTICAL_FORCE_RANGE": r"FZM.*",
    "SCALING_COEFFICIENTS": r"L.*",
    "LONGITUDINAL_COEFFICIENTS": r"P.X\d|R.X\d",
    "OVERTURNING_COEFFICIENTS": r"QSX\d",
    "LATERAL_COEFFICIENTS": r"P.Y\d|R.Y\d",
    "ROLLING_COEFFICIENTS": r"QSY\d",
    "ALIGNING_COEFFICIENTS": r"Q.Z\d+|SSZ\d",
}


@dataclass(frozen=True)
class _Line:
    section: str
    key: str
    text: str
    number: int


def load_tir(path: str | Path, side: Literal["left", "right"] | None = None) -> TyreParameters:
    """The tyre of a file, for the `side` of the car it is mounted on: mirrored where TYRESIDE says the other (nothing says left)."""
    file = Path(path)
    try:
        text = file.read_bytes().decode("utf-8-sig", errors="replace")  # comments come in any encoding
    except OSError as error:
        raise FileError(f"it cannot be read: {error.strerror or error}.", source=str(file)) from error
    return parse_tir(text, file.name, side)


def parse_tir(text: str, source: str = "tyre", side: Literal["left", "right"] | None = None) -> TyreParameters:
    """The tyre that the text of a file describes; a FileError tells all that is wrong. `source` stands in messages."""
    faults = Faults()
    lines = list(_lines(text, faults))
    _check_format(lines, source)
    known = _by_name(lines, faults)
    units = _units({line.key: line for line in lines if line.section == "UNITS"}, faults)
    values: dict[str, Any] = {}
    for name, line in known.items():
        number = _number(line.text)
        if number is None:
            faults.add("it is not a number.", where=name, found=f"'{line.text}'", line=line.number)
        else:
            values[name] = convert(number, UNITS[name].format(**units), _si(name)) if name in UNITS else number
    open_ends = [name for name in RANGES if name != "FZMIN" and values.get(name) == 0.0]
    for name in open_ends:  # a side that was not measured; to stop there would leave no force
        del values[name]
    other = tuple((line.section, line.key, line.text) for line in lines if _name(line.key) not in NAMES)
    try:
        tyre = TyreParameters(**values, other=other)
    except ModelError as error:
        faults.extend(_named(error.faults, values, known))
        tyre = None
    if faults or tyre is None:
        raise FileError(faults.found, source)
    _report(lines, open_ends, source)
    return tyre if side is None else _on_side(tyre, side)


def _lines(text: str, faults: Faults) -> Iterable[_Line]:
    section = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = _without_comment(raw).strip()
        if not line:
            continue
        if line.startswith("["):
            section = line.strip("[] \t").upper()
        elif "=" in line and not line.startswith(("'", "{")):
            key, _, value = line.partition("=")
            yield _Line(section, key.strip().upper(), value.strip(), number)
        elif line.startswith("{") or all(_number(word) is not None for word in re.split(r"[\s,]+", line)):
            yield _Line(section, "", line, number)
        else:
            what = "this line cannot be read."
            expected = "KEY = value, a row of numbers, or a comment after $ or !"
            faults.add(what, where=f"[{section}]", expected=expected, found=f"'{line[:60]}'", line=number)


def _without_comment(line: str) -> str:
    """The line up to the first $ or ! that is not inside quotes."""
    quoted = False
    for i, letter in enumerate(line):
        if letter == "'":
            quoted = not quoted
        elif letter in "$!" and not quoted:
            return line[:i]
    return line


def _by_name(lines: Iterable[_Line], faults: Faults) -> dict[str, _Line]:
    found: dict[str, _Line] = {}
    for line in lines:
        name = _name(line.key)
        if name not in NAMES:
            continue
        if name in found:
            faults.add("it is given twice.", where=name, found=f"also in line {found[name].number}", line=line.number)
        found.setdefault(name, line)
    return found


def _check_format(lines: Iterable[_Line], source: str) -> None:
    """Refuse another tyre model alone: its coefficients would only be noise."""
    model_lines = {line.key: line for line in lines if line.section == "MODEL"}
    fit = model_lines.get("FITTYP")
    form = model_lines.get("PROPERTY_FILE_FORMAT")
    newer = _number(fit.text) if fit else None
    if newer is not None and newer >= OLDEST_OTHER_FIT:
        line, found = fit, f"FITTYP = {newer:g}"
    elif form is not None and form.text.strip("'\" ").upper() not in FORMATS:
        line, found = form, f"PROPERTY_FILE_FORMAT = {form.text}"
    else:
        return
    what = "it describes another tyre model."
    expected = f"one of {', '.join(FORMATS)}, or FITTYP below {OLDEST_OTHER_FIT}"
    hint = "Its coefficients mean other things under the same names; export it as PAC2002 or MF-Tyre 5.2."
    raise FileError(Fault(what, "[MODEL]", expected, found, hint, line.number if line else None), source)


def _named(faults: Iterable[Fault], values: Mapping[str, float], known: Mapping[str, _Line]) -> Iterable[Fault]:
    """The faults of the tyre in the words of its file: with their lines, and absent where they are already told."""
    for fault in faults:
        name = str(fault.at[-1]) if fault.at else ""
        if name in values or name not in ESSENTIAL:
            yield at_line(fault, known[name].number if name in known else None)
        elif name not in known:
            yield Fault("it is missing.", f"[{_section(name)}] {name}", ESSENTIAL[name])


def _units(model_lines: Mapping[str, _Line], faults: Faults) -> dict[str, str]:
    """Quantity → the symbol of its unit, SI where the file is silent."""
    symbols = {quantity: WORDS[word] for quantity, word in SI.items()}
    for quantity in QUANTITIES:
        if quantity not in model_lines:
            continue
        word = model_lines[quantity].text.strip("'\" ").lower()
        symbol = WORDS.get(word, "")
        if symbol and si_unit(symbol) == si_unit(WORDS[SI[quantity]]):
            symbols[quantity] = symbol
        else:
            fitting = [w for w, s in WORDS.items() if si_unit(s) == si_unit(WORDS[SI[quantity]])]
            what, hint = f"'{word}' is not a unit of {quantity.lower()}.", did_you_mean(word, fitting)
            faults.add(what, where=f"[UNITS] {quantity}", hint=hint, line=model_lines[quantity].number or None)
    return symbols


def _report(lines: Iterable[_Line], open_ends: Iterable[str], source: str) -> None:
    """One warning for all that the file says about forces and this model does not follow."""
    unused = [
        f"{line.key} (line {line.number})"
        for line in lines
        if line.key
        and _name(line.key) not in NAMES
        and (line.section.endswith("COEFFICIENTS") or line.section == "VERTICAL")
        and (_number(line.text) or 0.0) != (1.0 if line.section.startswith("SCALING") else 0.0)
    ]
    tables = dict.fromkeys(line.section for line in lines if not line.key and line.section != "SHAPE")
    unused += [f"the table [{section}]" for section in tables]
    unused += [f"{name} = 0 (nothing was measured there; the formula is continued)" for name in open_ends]
    if unused:
        warn(DataWarning, Fault("the tyre model does not use: " + ", ".join(unused) + ".", source))


def _on_side(tyre: TyreParameters, side: Literal["left", "right"]) -> TyreParameters:
    own_side = next((text.strip("'\" ").lower() for _, key, text in tyre.other if key == "TYRESIDE"), "left")
    if own_side == side or own_side not in ("left", "right"):
        return tyre
    rest = tuple(entry for entry in tyre.other if entry[1] != "TYRESIDE")
    return dataclasses.replace(mirrored(tyre), other=(*rest, ("MODEL", "TYRESIDE", f"'{side.upper()}'")))


def _name(key: str) -> str:
    return ALIASES.get(key, key)


def _si(name: str) -> str:
    return UNITS[name].format(**{quantity: WORDS[word] for quantity, word in SI.items()})


def _section(name: str) -> str:
    return next(section for section, pattern in SECTIONS.items() if re.fullmatch(pattern, name))


def _number(text: str) -> float | None:
    """A number as C or Fortran writes it (1.0D+05); None where it is none."""
    try:
        return float(re.sub(r"[dD](?=[+-]?\d)", "e", text.strip()))
    except ValueError:
        return None
