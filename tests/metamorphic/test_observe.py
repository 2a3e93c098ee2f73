"""What must not change an observation: names, orders, clocks, units, formats, axes, worlds, scales, parts, streams, formulations."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from metamorphic.comparing import largest
from metamorphic.formats import FORMATS, in_other_units
from metamorphic.machines import Array, arm, observed
from metamorphic.relations import ALL, DESCRIPTIONS, MOST, QUICK, SCALES, Back, mostly_slow, rebuilt
from veridyn.observe.observation import Observation

SAME = Back()
ROUNDING = 1e-9  # in deviations of the states: what rounding of 1e-16 rad is beside 1e-4 rad, grown along the filter
# With other times steps are of other numbers, and implicit ones end at a tolerance in rad and rad/s, which does not scale; the bands of
# filters of errors are as narrow as 1e-5 rad/s, and the same 1e-11 rad/s weigh more.
ITERATED, NARROW = 1e-7, 1e-5
FILTERS = ("ekf", "ukf", "error_ekf", "error_ekf_force", "smoother")
pytestmark = pytest.mark.filterwarnings(
    "ignore::veridyn.errors.DataWarning"
)  # what a default says of this log is compared


def given(back: Back) -> vd.ObserveSettings:
    """Settings all of whose numbers have their dimension."""
    force = back.scale("N*m")
    noise = vd.ProcessNoise(
        force=1e-2 * force**2 / back.time, start=1e-2, start_rate=0.1 / back.time, start_force=force
    )
    return vd.ObserveSettings(
        process_noise=noise,
        model_error="off",
        start="readings",
        friction_speed=0.01 / back.time,
        step=0.01 * back.time,
    )


def default(back: Back) -> vd.ObserveSettings:
    return vd.ObserveSettings(start="readings")


def first_state(state: str, back: Back) -> tuple[str, float]:
    """The first name of a state, and its sign and scale."""
    if state.startswith("force."):
        c = back.name(state.removeprefix("force."))
        return f"force.{c}", back.turned(c) * back.scale("N*m")
    c = back.name(state.removesuffix("_dot"))
    rate = state.endswith("_dot")
    return c + "_dot" * rate, back.turned(c) / (back.time if rate else 1.0)


def check_states(first: Observation, other: Observation, back: Back, tolerance: float) -> None:
    """States and deviations at every sample in units of the deviations, and what became of the readings."""
    assert sorted(first_state(s, back)[0] for s in other.states) == sorted(first.states)
    assert largest((other.t - back.start) / back.time - first.t) < 1e-12
    for j, state in enumerate(other.states):
        name, scale = first_state(state, back)
        k = first.states.index(name)
        assert largest((other.reduced[:, j] / scale - first.reduced[:, k]) / first.sigma[:, k]) < tolerance
        assert largest(other.sigma[:, j] / abs(scale) / first.sigma[:, k] - 1.0) < tolerance
    counts = {f"encoder.{back.name(n.partition('.')[2])}": c for n, c in other.estimates.counts().items()}
    assert counts == first.estimates.counts()
    assert len(other.findings) == len(first.findings)
    assert largest(other.estimates.nis - first.estimates.nis) < 1e3 * tolerance


@cache
def first(method: str, chosen: str) -> Observation:
    settings = given(SAME) if chosen == "given" else default(SAME)
    return vd.observe(arm(observed=True), observed(), method, settings)


@pytest.mark.parametrize("name", mostly_slow(ALL, MOST))
def test_a_log_described_another_way(name: str) -> None:
    machine, log, back = ALL[name](arm(observed=True), observed())
    tolerance = ROUNDING if back.time == 1.0 else ITERATED
    check_states(first("ekf", "given"), vd.observe(machine, log, "ekf", given(back)), back, tolerance)


@pytest.mark.parametrize(
    "name", mostly_slow([*DESCRIPTIONS, "lengths", "masses"], ("names in other letters", "clock", "masses"))
)
def test_the_defaults(name: str) -> None:
    """Noise and model error are chosen alike.

    Times do not scale: a default step of 0.01 s and a start known to 1 rad/s are numbers of a machine of this size.
    """
    machine, log, back = ALL[name](arm(observed=True), observed())
    check_states(first("ekf", "default"), vd.observe(machine, log, "ekf", default(back)), back, ITERATED)


@pytest.mark.parametrize("name", mostly_slow(ALL, QUICK[1:]))
@pytest.mark.parametrize("method", FILTERS[1:])
def test_other_filters(method: str, name: str) -> None:
    machine, log, back = ALL[name](arm(observed=True), observed())
    check_states(first(method, "given"), vd.observe(machine, log, method, given(back)), back, NARROW)


@pytest.mark.parametrize("form", mostly_slow(FORMATS, ("csv", "mdf")))
def test_a_file_of_any_format(form: str, tmp_path: Path) -> None:
    """The same doubles."""
    log = FORMATS[form](observed(), tmp_path)
    check_states(first("ekf", "given"), vd.observe(arm(observed=True), log, "ekf", given(SAME)), SAME, 1e-12)


def test_columns_in_degrees_and_milliseconds() -> None:
    log = in_other_units(observed())
    check_states(first("ekf", "given"), vd.observe(arm(observed=True), log, "ekf", given(SAME)), SAME, ROUNDING)


def started() -> vd.ObserveSettings:
    """Settings of an observer, which has no log to look at."""
    q = {c: float(observed()[f"encoder.{c}"].values[0]) for c in arm().coordinates}
    inputs = tuple(f"force.{c}" for c in arm().coordinates)
    return vd.ObserveSettings(**{**vars(given(SAME)), "start": q, "inputs": inputs})


@pytest.mark.parametrize("method", mostly_slow(FILTERS[:4], ("ekf", "error_ekf")))
@pytest.mark.parametrize("by", ["name", "place"])
def test_a_stream_and_a_log(by: str, method: str) -> None:
    """Readings as they come, by name or in the order of the outputs, give the states of the log bit by bit."""
    log, machine = observed(), arm(observed=True)
    batch = vd.observe(machine, log, method, started())
    observer = vd.Observer(machine, method, started())
    readings = np.stack([log[n].values for n in observer.system.outputs], axis=1)
    forces = np.stack([log[f"force.{c}"].values for c in machine.coordinates], axis=1)
    for k, t in enumerate(log["encoder.q1"].t.tolist()):
        row = readings[k] if by == "place" else dict(zip(observer.system.outputs, readings[k].tolist(), strict=True))
        step = observer.step(t, row, forces[k])
        assert _vector(step.values, batch) == pytest.approx(batch.reduced[k], rel=1e-12, abs=1e-14)
        assert _vector(step.sigma, batch) == pytest.approx(batch.sigma[k], rel=1e-12)


def _vector(by_name: object, batch: Observation) -> Array:
    assert hasattr(by_name, "__getitem__")
    return np.array([by_name[s] for s in batch.states])


def test_a_log_and_its_beginning() -> None:
    """A filter does not look ahead: the first half of the log gives the first half of the states."""
    log = observed()
    half = len(log["encoder.q1"]) // 2
    part = vd.Experiment.from_arrays(
        log["encoder.q1"].t[:half],
        {c.name: c.values[:half] for c in log.channels.values()},
        {c.name: c.unit for c in log.channels.values()},
    )
    whole, begun = first("ekf", "given"), vd.observe(arm(observed=True), part, "ekf", given(SAME))
    assert np.array_equal(begun.reduced, whole.reduced[:half])
    assert np.array_equal(begun.sigma, whole.sigma[:half])


@pytest.mark.parametrize("method", ["ekf", "smoother"])
def test_both_formulations(method: str) -> None:
    """Other coordinates and other equations; implicit steps of the same length agree to the tolerance at which they end."""
    points = rebuilt(arm(observed=True), formulation="natural")
    other = vd.observe(points, observed(), method, given(SAME))
    check_states(first(method, "given"), other, SAME, ITERATED)


def test_a_sensor_without_readings_is_no_sensor() -> None:
    """A column of NaN, and none with the sensor left out."""
    log, machine = observed(), arm(observed=True)
    c = log["encoder.q2"]
    empty = log.replacing(vd.model.Channel(c.name, c.t, np.full(len(c), np.nan), c.unit))
    settings = vd.ObserveSettings(**{**vars(started()), "frozen_after": None})
    alone = vd.ObserveSettings(**{**vars(started()), "frozen_after": None, "sensors": {"encoder.q2": None}})
    with_nan, without = vd.observe(machine, empty, "ekf", settings), vd.observe(machine, log, "ekf", alone)
    assert largest((with_nan.reduced - without.reduced) / without.sigma) < ROUNDING
    assert largest(with_nan.sigma / without.sigma - 1.0) < ROUNDING


@pytest.mark.parametrize("name", SCALES)
def test_log_likelihood_scales_by_no_more_than_units(name: str) -> None:
    """Readings are angles, which have no dimension: their likelihood is the same."""
    machine, log, back = SCALES[name](arm(observed=True), observed())
    other = vd.observe(machine, log, "ekf", given(back))
    assert other.estimates.log_likelihood.sum() == pytest.approx(
        first("ekf", "given").estimates.log_likelihood.sum(), rel=1e-9
    )
