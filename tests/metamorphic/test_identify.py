"""What must not change an identification: names, orders, clocks, units, formats, axes, worlds, scales, parts, threads, formulations."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veridyn as vd
from metamorphic.comparing import check_fit, largest
from metamorphic.formats import FORMATS, in_other_units
from metamorphic.machines import arm, recorded
from metamorphic.relations import (
    ALL,
    DESCRIPTIONS,
    MOST,
    QUICK,
    Back,
    Related,
    Relation,
    joints_reordered,
    mostly_slow,
    named,
    rebuilt,
)

# What is named is not at stake here, but that it is the same.
pytestmark = pytest.mark.filterwarnings("ignore::veridyn.errors.IdentificationWarning")
ROUNDING = 1e-12  # of values and deviations: what conditioning (some 10² in typical sizes) leaves of rounding
OTHER_ORDER = 1e-10  # where sums run in another order, or rotations and accelerations are products of other numbers
SEARCH = 1e-8  # where weights are searched for: a search ends at a tolerance, from rounding that differs
SAME = Back()
OTHER_NUMBERS = ("joints reordered", "world turned", "world turned about z", "times", "all")
BRANCHED: dict[str, Relation] = {
    "joints reordered": joints_reordered,
    "bodies swapped": named(b2="3", b3="2", q2="q3", q3="q2"),
    "names in other letters": named(b1="日本", b2="плечо", b3="β", q1="関節", q2="ω_2", q3="ω_3"),
}
METHODS: dict[str, tuple[Callable[[Back], Any], float]] = {
    "wls": (lambda back: "wls", ROUNDING),
    "ols": (lambda back: "ols", OTHER_ORDER),
    "robust": (lambda back: "robust", SEARCH),
    "iv": (lambda back: vd.estimators.Instrumental(reference="measured"), OTHER_ORDER),
    "gauss_markov": (lambda back: "gauss_markov", SEARCH),
    "oe": (lambda back: vd.estimators.OutputError(horizon=back.time, friction_speed=0.05 / back.time), SEARCH),
}
# Delays, speeds and limits that a diagnosis looks at are numbers of machines of this size, in s and rad/s: times do not scale there.
SCALED_TIMES = ("times", "all")
WITHOUT_TIMES = [*DESCRIPTIONS, "lengths", "masses"]
FEW = ("names in other letters", "second axis mirrored", "masses")


def fitted(name: str, machine: vd.Machine, log: vd.Experiment, method: Any = "wls") -> vd.Fit:
    """Of a log; where times scale, of its motion: cut-offs that a log is tried at are so many Hz."""
    return vd.identify(machine, vd.motion(machine, log) if name in SCALED_TIMES else log, method)


def first(count: int = 2, method: str = "wls", name: str = "") -> vd.Fit:
    return _first(count, method, name in SCALED_TIMES)


@cache
def _first(count: int, method: str, times: bool) -> vd.Fit:
    return fitted(SCALED_TIMES[0] if times else "", arm(count), recorded(count), METHODS[method][0](SAME))


@cache
def motion() -> vd.Motion:
    return vd.motion(arm(), recorded())


@pytest.mark.parametrize("name", mostly_slow(ALL, MOST))
def test_a_log_described_another_way(name: str) -> None:
    machine, log, back = ALL[name](arm(), recorded())
    tolerance = OTHER_ORDER if name in OTHER_NUMBERS else ROUNDING
    check_fit(first(name=name), fitted(name, machine, log), back, tolerance)


@pytest.mark.parametrize("name", BRANCHED)
def test_branches_described_another_way(name: str) -> None:
    machine, log, back = BRANCHED[name](arm(3), recorded(3))
    check_fit(first(3), vd.identify(machine, log), back, OTHER_ORDER)


@pytest.mark.parametrize("name", mostly_slow(ALL, QUICK[1:]))
@pytest.mark.parametrize("method", list(METHODS)[1:])
def test_other_methods(method: str, name: str) -> None:
    machine, log, back = ALL[name](arm(), recorded())
    how, tolerance = METHODS[method]
    fit, own = fitted(name, machine, log, how(back)), first(2, method, name)
    # Of output error, whose rows are coordinates in rad, the note on noisy positions does not scale; what it says is not compared.
    check_fit(own, _without_notes(fit, own) if method == "oe" else fit, back, tolerance)


@pytest.mark.parametrize("name", mostly_slow(ALL, MOST))
def test_the_motion_of_a_log(name: str) -> None:
    """Positions, rates, accelerations and forces scale with their dimensions; the clock moves and scales."""
    machine, log, back = ALL[name](arm(), recorded())
    moved = vd.motion(machine, log)
    assert len(moved) == len(motion())
    assert largest((moved.t - back.start) / back.time - motion().t) < ROUNDING
    for k, other in enumerate(machine.coordinates):
        c = arm().coordinates.index(back.name(other))
        sign = back.turned(back.name(other))
        for unit, a, b in (
            ("rad", moved.q, motion().q),
            ("rad/s", moved.qd, motion().qd),
            ("rad/s^2", moved.qdd, motion().qdd),
            ("N*m", moved.forces, motion().forces),
        ):
            assert a is not None and b is not None
            assert largest(sign * a[:, k] / back.scale(unit) - b[:, c]) < ROUNDING * largest(b)


@cache
def wrong(fault: str) -> vd.Experiment:
    """The log with the second joint's force turned round or late, or its position in degrees."""
    log = recorded()
    c = log["force.q2"]
    late = np.interp(c.t - 0.025, c.t, c.values)
    values = {"sign": -c.values, "degrees": np.degrees(log["q.q2"].values), "late": late}[fault]
    return log.replacing(replace(log["q.q2" if fault == "degrees" else "force.q2"], values=values))


@cache
def known(fault: str) -> list[tuple[str, str, float]]:
    return findings(Related(arm(), wrong(fault), SAME))


def findings(related: Related) -> list[tuple[str, str, float]]:
    """Cause, place by its first name, and evidence of each."""
    with pytest.warns(vd.errors.VeridynWarning):
        fit = vd.identify(related.machine, related.log)
    name = related.back.name
    return [(f.cause, re.sub(r"'(.*?)'", lambda m: f"'{name(m[1])}'", name(f.place)), f.evidence) for f in fit.findings]


@pytest.mark.parametrize("name", mostly_slow(WITHOUT_TIMES, FEW))
@pytest.mark.parametrize("fault", ["sign", "degrees", "late"])
def test_findings_of_a_wrong_log(fault: str, name: str) -> None:
    """The same causes at the same places with the same evidence."""
    found = findings(ALL[name](arm(), wrong(fault)))
    assert [f[:2] for f in found] == [f[:2] for f in known(fault)] != []
    assert [f[2] for f in found] == pytest.approx([f[2] for f in known(fault)], rel=1e-7, nan_ok=True)


@pytest.mark.parametrize("name", mostly_slow(ALL))
def test_validation_on_another_log(name: str) -> None:
    machine, log, back = ALL[name](arm(), recorded())
    other = ALL[name](arm(), recorded(2, 8.0, 8)).log
    fit = fitted(name, machine, log)
    found = {back.name(r.row): r for r in vd.validate(fit, vd.motion(machine, other)).rows}
    for row in vd.validate(first(name=name), vd.motion(arm(), recorded(2, 8.0, 8))).rows:
        assert found[row.row].rms / back.scale("N*m") == pytest.approx(row.rms, rel=OTHER_ORDER)
        assert found[row.row].samples == row.samples


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_of_any_format(form: str, tmp_path: Path) -> None:
    """Every format holds the same doubles: not a bit differs."""
    log = FORMATS[form](recorded(), tmp_path)
    assert set(log.names) == set(recorded().names)
    for c in recorded().channels.values():
        assert np.array_equal(log[c.name].values, c.values) and np.array_equal(log[c.name].t, c.t)
        assert log[c.name].unit == c.unit
    check_fit(first(), vd.identify(arm(), log), SAME, ROUNDING)


def test_columns_in_degrees_and_milliseconds() -> None:
    """Factors of a unit round each number once, to 2e-16 of it.

    A clock in ms is no longer uniform to the last bit, and accelerations divide positions by the square of a step of 8 ms: 1e-16 rad
    are some 1e-12 rad/s², of which the condition of the equations (some 10²) leaves 1e-10 in the smallest parameter.
    """
    log = in_other_units(recorded())
    for c in recorded().channels.values():
        assert largest(log[c.name].values - c.values) < 1e-15 * largest(c.values)
    check_fit(first(), vd.identify(arm(), log), SAME, 1e-9)


def test_a_list_of_one_log() -> None:
    check_fit(first(), vd.identify(arm(), [recorded()]), SAME, ROUNDING)


WHITE = vd.IdentifySettings(sampling=vd.estimators.Sampling(), covariance="white")


def halves(m: vd.Motion) -> list[vd.Motion]:
    half = len(m) // 3
    return [m[:half], m[half:]]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_motion_in_parts(swapped: bool) -> None:
    """Values, white deviations and errors of each row are exact where each sample is one equation; diagnosis looks at parts, and is off.

    A log in parts is not: filters settle at every end, and autocorrelation ends there.
    """
    parts = halves(motion())[:: -1 if swapped else 1]
    whole = vd.identify(arm(), motion(), "wls", WHITE, diagnose="off")
    check_fit(whole, _without_notes(vd.identify(arm(), parts, "wls", WHITE, diagnose="off"), whole), SAME, OTHER_ORDER)


def _without_notes(fit: vd.Fit, like: vd.Fit) -> vd.Fit:
    return replace(fit, notes=like.notes, disagreement=like.disagreement)


def test_logs_in_another_order() -> None:
    """With defaults: filters, decimation and deviations do not know which log came first."""
    logs = [recorded(), recorded(2, 8.0, 8), recorded(2, 8.0, 9)]
    check_fit(vd.identify(arm(), logs), vd.identify(arm(), logs[::-1]), SAME, OTHER_ORDER)


@pytest.mark.parametrize("engine", ["numpy", pytest.param("compiled", marks=pytest.mark.slow)])
def test_blocks_threads_and_executors(engine: str) -> None:
    """Samples are shared out in blocks, whose factors are joined in another order."""
    whole = vd.identify(arm(), motion(), "wls", replace(WHITE, engine=engine))
    small = replace(WHITE, engine=engine, sampling=vd.estimators.Sampling(block=100))
    check_fit(whole, vd.identify(arm(), motion(), "wls", small), SAME, OTHER_ORDER)
    for threads in (1, 2):
        check_fit(whole, vd.identify(arm(), motion(), "wls", replace(small, threads=threads)), SAME, OTHER_ORDER)
        with ThreadPoolExecutor(threads) as pool:
            check_fit(whole, vd.identify(arm(), motion(), "wls", small, executor=pool), SAME, OTHER_ORDER)


def test_machine_code_and_numpy() -> None:
    whole, other = (vd.identify(arm(), motion(), "wls", replace(WHITE, engine=e)) for e in ("numpy", "compiled"))
    check_fit(whole, other, SAME, OTHER_ORDER)


def test_both_formulations() -> None:
    """A machine in natural coordinates is identified by its tree: the same equations, and a note more."""
    fit = vd.identify(rebuilt(arm(), formulation="natural"), recorded())
    assert fit.formulation == "natural"
    check_fit(first(), _without_notes(fit, first()), SAME, ROUNDING)
