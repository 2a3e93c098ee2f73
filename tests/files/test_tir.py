"""Tyre property files: what a file says is what the tyre has, in any units, and faults are told all at once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from veridyn.errors import DataWarning, Faults, FileError
from veridyn.files.tir import SECTIONS, SI, UNITS, _Line, _section, _si, _units, load_tir, parse_tir
from veridyn.files.units import convert
from veridyn.mechanics.ground.tyre import forces
from veridyn.mechanics.ground.tyre_parameters import NAMES, RANGES, TyreParameters, mirrored

FILE = """\
$ a tyre that was never built
[MDI_HEADER]
FILE_TYPE                ='tir'
! : COMMENT : 'quotes' in comments
[UNITS]
LENGTH                   ='meter'
FORCE                    ='newton'
ANGLE                    ='radians'
MASS                     ='kg'
TIME                     ='second'
[MODEL]
PROPERTY_FILE_FORMAT     ='PAC2002'
USE_MODE                 = 14           $ combined, with relaxation
LONGVL                   = 16.7
TYRESIDE                 = 'LEFT'
[DIMENSION]
UNLOADED_RADIUS          = 0.344        $Free tyre radius
WIDTH                    = 0.235
[SHAPE]
{radial width}
 1.0    0.0
 1.0    0.4
[VERTICAL]
VERTICAL_STIFFNESS       = 2.1D+05
VERTICAL_DAMPING         = 50
FNOMIN                   = 4850         ! rated load
[SLIP_ANGLE_RANGE]
ALPMIN                   = -1.5
ALPMAX                   = 1.5
[LONG_SLIP_RANGE]
KPUMIN                   = -0.8
KPUMAX                   = 1.2
[SCALING_COEFFICIENTS]
LFZ0                     = 1.1
LMUY                     = 0.9
LGYR                     = 1
[LONGITUDINAL_COEFFICIENTS]
PCX1                     = 1.6411
PDX1                     = +1.1739
PKX1                     = 22.303
[LATERAL_COEFFICIENTS]
PCY1=1.3507
PDY1=1.0489
PKY1=-21.92
PKY2=2.0012
PHY1=.0026747
QBZ10=0
"""


def tir_text(parameters: TyreParameters) -> str:
    """The tyre as the text of a file, in the units it came in; reading it gives the same parameters."""
    faults = Faults()
    given = {key: _Line(section, key, text, 0) for section, key, text in parameters.other if section == "UNITS"}
    units = _units(given, faults)
    faults.raise_if_any(FileError, "tyre")
    rows: dict[str, list[str]] = {"MDI_HEADER": []} | {section: [] for section in SECTIONS}
    if not any(section == "MDI_HEADER" for section, _, _ in parameters.other):
        rows["MDI_HEADER"] += ["FILE_TYPE = 'tir'", "FILE_VERSION = 3.0", "FILE_FORMAT = 'ASCII'"]
    if not given:
        rows["UNITS"] += [f"{quantity} = '{word}'" for quantity, word in SI.items()]
    if not any((section, key) == ("MODEL", "PROPERTY_FILE_FORMAT") for section, key, _ in parameters.other):
        rows["MODEL"].append("PROPERTY_FILE_FORMAT = 'PAC2002'")
    for section, key, text in parameters.other:
        rows.setdefault(section, []).append(f"{key} = {text}" if key else text)
    defaults = {field.name: field.default for field in dataclasses.fields(TyreParameters)}
    for name, value in parameters.values.items():
        if name in RANGES and value == defaults[name]:
            continue
        shown = convert(value, _si(name), UNITS[name].format(**units)) if name in UNITS else value
        rows[_section(name)].append(f"{name} = {shown!r}")
    return "\n".join(
        f"[{section}]\n" + "".join(row + "\n" for row in block) for section, block in rows.items() if block
    )


def test_a_file_becomes_a_tyre(tmp_path: Path) -> None:
    file = tmp_path / "made_up.tir"
    file.write_bytes(FILE.encode() + "$ Größe in Latin-1\n".encode("latin-1"))
    tyre = load_tir(file)
    expected = {"UNLOADED_RADIUS": 0.344, "VERTICAL_STIFFNESS": 2.1e5, "FNOMIN": 4850.0, "LFZO": 1.1, "LMUY": 0.9}
    expected |= {
        "PCX1": 1.6411,
        "PKX1": 22.303,
        "PKY1": -21.92,
        "PHY1": 0.0026747,
        "ALPMAX": 1.5,
        "KPUMAX": 1.2,
        "FZMAX": np.inf,
    }
    expected |= {"LMUX": 1.0, "PDX2": 0.0, "LONGVL": 16.7}
    assert {name: tyre.values[name] for name in expected} == expected
    assert ("DIMENSION", "WIDTH", "0.235") in tyre.other
    assert ("SHAPE", "", "1.0    0.4") in tyre.other
    assert ("MODEL", "USE_MODE", "14") in tyre.other


def test_units_of_the_file_are_honoured() -> None:
    text = FILE.replace("'meter'", "'mm'").replace("'newton'", "'kilonewton'").replace("'radians'", "'degrees'")
    text = text.replace("'second'", "'millisecond'").replace("= 0.344", "= 344")
    text = text.replace("2.1D+05", "0.21").replace("DAMPING         = 50", "DAMPING         = 0.05")
    text = text.replace("= 4850", "= 4.85").replace("-1.5\n", "-90\n").replace("= 1.5\n", "= 90\n")
    tyre, same = parse_tir(text), parse_tir(FILE)
    expected = dataclasses.replace(same, ALPMIN=-np.pi / 2.0, ALPMAX=np.pi / 2.0, VERTICAL_DAMPING=50.0)
    assert tyre.packed == pytest.approx(expected.packed, rel=1e-12)  # mm/ms is m/s
    assert parse_tir(tir_text(tyre)).packed == pytest.approx(tyre.packed, rel=1e-12)
    assert "LENGTH = 'mm'" in tir_text(tyre)


def test_what_is_written_is_read_again() -> None:
    tyre = parse_tir(FILE)
    again = parse_tir(tir_text(tyre))
    assert again.values == tyre.values and set(again.other) == set(tyre.other)
    rng = np.random.default_rng(2)
    values = dict(zip(NAMES, rng.uniform(0.5, 1.0, len(NAMES)), strict=True))
    values |= dict.fromkeys(("PKY1", "KPUMIN", "ALPMIN", "CAMMIN"), -1.0) | {"FZMAX": 9e3}
    full = TyreParameters(**values)
    text = tir_text(full)
    assert parse_tir(text).values == full.values
    assert all(f"[{section}]" in text for section in SECTIONS)


def test_the_other_side_is_mirrored() -> None:
    left = parse_tir(FILE)
    assert parse_tir(FILE, side="left") == left
    right = parse_tir(FILE, side="right")
    assert right.values == mirrored(left).values
    assert right.PHY1 == -left.PHY1
    assert forces(right, 4000.0, 0.0, 0.0)[1] == -forces(left, 4000.0, 0.0, 0.0)[1]
    assert ("MODEL", "TYRESIDE", "'RIGHT'") in right.other
    assert parse_tir(tir_text(right), side="right").values == right.values
    unsaid = FILE.replace("'LEFT'", "'UNKNOWN'")
    assert parse_tir(unsaid, side="right").values == left.values


def test_what_could_change_the_forces_is_reported() -> None:
    text = FILE + "PKY7 = 2.5\nPKY8 = 0.0\n[DEFLECTION_LOAD_CURVE]\n{pen fz}\n0.0 0.0\n0.01 2000.0\n"
    text = text.replace("LGYR                     = 1", "LGYR                     = 0.5").replace("= 1.2\n", "= 0.0\n")
    with pytest.warns(DataWarning) as caught:
        tyre = parse_tir(text, "odd.tir")
    said = str(caught[0].message)
    assert len(caught) == 1 and said.startswith("odd.tir")
    assert "PKY7 (line 48)" in said and "LGYR" in said and "DEFLECTION_LOAD_CURVE" in said and "PKY8" not in said
    assert "KPUMAX = 0" in said and np.isinf(tyre.values["KPUMAX"])  # a tyre measured under braking only
    assert ("LATERAL_COEFFICIENTS", "PKY7", "2.5") in tyre.other


def test_all_faults_of_a_file_are_told_at_once() -> None:
    text = FILE.replace("PCX1                     = 1.6411\n", "").replace("PKY2=2.0012\n", "")
    text = text.replace("= 22.303", "= twenty").replace("'newton'", "'newtom'").replace("FNOMIN  ", "FNOMINAL")
    text = text.replace("PDY1=1.0489", "PDY1=1.0489\nPDY1=1.1\nwhat is this").replace(
        "ALPMAX                   = 1.5", "ALPMAX = -2"
    )
    with pytest.raises(FileError) as caught:
        parse_tir(text, "broken.tir")
    said = str(caught.value)
    assert len(caught.value.faults) == 8 and said.startswith("broken.tir")
    for piece in (
        "[LONGITUDINAL_COEFFICIENTS] PCX1: it is missing",
        "[LATERAL_COEFFICIENTS] PKY2: it is missing",
        "[VERTICAL] FNOMIN: it is missing",
        "'twenty'",
        "Did you mean 'newton'?",
        "given twice",
        "this line cannot be read",
        "ALPMIN, ALPMAX",
    ):
        assert piece in said
    with pytest.raises(FileError, match=r"PKY1 \(line \d+\)") as caught:
        parse_tir(FILE.replace("PKY1=-21.92", "PKY1=21.92"))
    assert "adapted SAE" in str(caught.value)


@pytest.mark.parametrize("said", ["PROPERTY_FILE_FORMAT     ='FIALA'", "FITTYP = 61"])
def test_other_tyre_models_are_refused_alone(said: str) -> None:
    with pytest.raises(FileError, match="another tyre model") as caught:
        parse_tir(FILE.replace("PROPERTY_FILE_FORMAT     ='PAC2002'", said).replace("PCX1", "PXX1"))
    assert len(caught.value.faults) == 1 and "(line 12)" in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        load_tir(tmp_path / "nowhere.tir")
    with pytest.raises(FileError, match="10 faults"):
        parse_tir("")
