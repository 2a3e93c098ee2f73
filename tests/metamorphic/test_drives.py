"""What must not change an identification of drives: names, orders, clocks, units, formats, axes, worlds, lengths and masses."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from metamorphic.comparing import largest
from metamorphic.formats import FORMATS, in_other_units
from metamorphic.machines import joint, turn
from metamorphic.relations import (
    Back,
    Relation,
    axis_mirrored,
    clock_from,
    columns_reversed,
    joints_reordered,
    mostly_slow,
    named,
    rebuilt,
    scaled,
    world_reflected,
    world_turned,
)
from veridyn.estimators import Drives, DrivesFit
from veridyn.machines.leg import demonstration

UNTIL = 3.0
SAME = Back()
ROUNDING = 1e-9  # in posterior deviations: the search is the same, step by step, and grows rounding by its condition (some 1e3)
# Rounding that differs moves the ticks at which friction stops a joint; steps smaller than 0.3 deviations end the search.
OTHER_NUMBERS = 1e-6
UNIT = {"kp": "N*m/rad", "kd": "N*m*s/rad", "armature": "kg*m^2", "viscous": "N*m*s/rad", "coulomb": "N*m"}
# Times do not scale: drives tick 1000 times a second, and delays are known to 5 ms.
RELATIONS: dict[str, tuple[Relation, float]] = {
    "names": (named(thigh="femur", calf="tibia"), ROUNDING),
    "names in other letters": (named(thigh="日本", calf="плечо"), ROUNDING),
    "columns": (columns_reversed, ROUNDING),
    "joints reordered": (joints_reordered, OTHER_NUMBERS),
    "clock": (clock_from(1024.0), OTHER_NUMBERS),
    "first axis mirrored": (axis_mirrored("thigh"), ROUNDING),
    "second axis mirrored": (axis_mirrored("calf"), ROUNDING),
    "world reflected": (world_reflected, ROUNDING),
    "world turned": (world_turned(turn("x", 0.7) @ turn("y", -1.1)), OTHER_NUMBERS),
    "lengths": (scaled(length=2.0), ROUNDING),
    "masses": (scaled(mass=4.0), ROUNDING),
    "lengths and masses": (scaled(length=0.5, mass=8.0), ROUNDING),
}


@cache
def leg() -> vd.Machine:
    """The leg of the demonstration, its joints between frames written out."""
    own = demonstration(np.random.default_rng(2), quick=True).model
    joints = [
        joint("thigh", "ground", "thigh", turn("x", np.pi / 2.0), (0.0, 0.0, 0.0)),
        joint("calf", "thigh", "calf", np.eye(3), (0.0, -0.21, 0.0)),
    ]
    return rebuilt(own, joints=joints)


@cache
def recorded() -> vd.Experiment:
    return demonstration(np.random.default_rng(2), quick=True).training


def fitted(machine: vd.Machine, log: vd.Experiment, friction: str = "coulomb") -> DrivesFit:
    found = vd.identify(machine, log, Drives(until=UNTIL, friction=friction))  # pyright: ignore[reportArgumentType]
    assert isinstance(found, DrivesFit)
    return found


@cache
def first(friction: str = "coulomb") -> DrivesFit:
    return fitted(leg(), recorded(), friction)


def check_drives(first: DrivesFit, other: DrivesFit, back: Back, tolerance: float) -> None:
    """Every number of every drive within `tolerance` posterior deviations, its deviation, and what is not determined."""
    named = {(d.key, tuple(sorted(back.name(j) for j in d.joints))): d for d in other.drives}
    assert set(named) == {(d.key, tuple(sorted(d.joints))) for d in first.drives}
    for one in first.drives:
        d = named[one.key, tuple(sorted(one.joints))]
        scale = back.scale(d.unit)
        sign = back.turned(one.joints[0]) if one.key == "zero" else 1.0
        assert largest((sign * d.value / scale - one.value) / one.sigma) < tolerance, one.name
        assert abs(d.sigma / scale / one.sigma - 1.0) < tolerance, one.name
        assert d.determined == one.determined
    assert other.rms_held_out == pytest.approx(first.rms_held_out, rel=max(tolerance, 1e-9))
    assert len(other.open) == len(first.open)
    assert len(other.findings) == len(first.findings)


def scaled_drives(machine: vd.Machine, back: Back) -> vd.Machine:
    """Gains of controllers have a dimension too."""
    controllers = [
        replace(c, constants={k: x * back.scale(UNIT[k]) for k, x in c.constants.items()}) for c in machine.controllers
    ]
    return rebuilt(machine, controllers=controllers)


@pytest.mark.parametrize(
    "name", mostly_slow(RELATIONS, ("names in other letters", "clock", "second axis mirrored", "lengths and masses"))
)
def test_a_log_described_another_way(name: str) -> None:
    relation, tolerance = RELATIONS[name]
    machine, log, back = relation(leg(), recorded())
    check_drives(first(), fitted(scaled_drives(machine, back), log), back, tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["names in other letters", "columns", "second axis mirrored", "masses"])
def test_terms_of_friction_that_are_chosen(name: str) -> None:
    machine, log, back = RELATIONS[name][0](leg(), recorded())
    found = fitted(scaled_drives(machine, back), log, "auto")
    kept = {(t.term.split("_")[0], back.name(t.joint)) for t in found.terms if t.kept}
    assert kept == {(t.term.split("_")[0], t.joint) for t in first("auto").terms if t.kept}


@pytest.mark.parametrize("form", mostly_slow(FORMATS, ("csv", "mdf")))
def test_a_file_of_any_format(form: str, tmp_path: Path) -> None:
    check_drives(first(), fitted(leg(), FORMATS[form](recorded(), tmp_path)), SAME, ROUNDING)


def test_columns_in_degrees_and_milliseconds() -> None:
    check_drives(first(), fitted(leg(), in_other_units(recorded())), SAME, OTHER_NUMBERS)


def test_a_list_of_one_log() -> None:
    check_drives(first(), fitted(leg(), [recorded()]), SAME, ROUNDING)  # pyright: ignore[reportArgumentType]


def test_gains_of_the_model_and_of_the_method() -> None:
    """Gains in the file, and the same handed to the method where the file has no controllers; prior deviations of both are assumed."""
    bare = rebuilt(leg(), controllers=())
    found = vd.identify(bare, recorded(), Drives(until=UNTIL, friction="coulomb", kp=20.0, kd=1.0))
    assert isinstance(found, DrivesFit)
    check_drives(first(), found, SAME, ROUNDING)


def test_both_formulations() -> None:
    """A machine in natural coordinates is simulated by its tree."""
    check_drives(first(), fitted(rebuilt(leg(), formulation="natural"), recorded()), SAME, ROUNDING)
