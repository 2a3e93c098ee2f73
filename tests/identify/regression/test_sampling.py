"""Rows with filters of their own, and rows projected on a path: against dense tables and a closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from identify.dense_equations import arm, log, suspended
from identify.undiagnosed import identify
from strangers.cars import TEN_ROWS, car_20, estimated_33
from strangers.random_trees import random_motion
from studies.bench_robot import JOINTS, robot
from veridyn.errors import DataError, ModelError
from veridyn.identify.logged import motion
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import (
    Sampling,
    choose_dead_zones,
    speed_variance,
    with_dead_zones,
    zone_of,
)
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import predicted, validate
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics, regressor
from veridyn.model.elements.element import coulomb, damper, spring
from veridyn.model.experiment import Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, NoiseBands
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.motion import Signals
from veridyn.spatial.rotations import MDH

N = 400
RATE = 100.0


def logged(machine: Machine) -> Motion:
    motion = random_motion(np.random.default_rng(3), machine, N)
    rng = np.random.default_rng(4)
    signals = {"a": rng.normal(size=N), "b": rng.normal(size=N)}
    return replace(motion, t=np.arange(N) / RATE, signals=signals)


def dense(machine: Machine, motion: Motion, row: str) -> np.ndarray:
    """[W | Y] of one row over the estimated parameters, known ones being zero in these cars."""
    r, estimated = machine.rows.index(row), list(machine.parameters.select("estimated"))
    D = regressor(machine, replace(motion, wrenches={}))[:, r]
    known = np.setdiff1d(np.arange(D.shape[1]), estimated)
    y = -external_rows(machine, motion)[:, r] - D[:, known] @ machine.parameters.values[known]
    return np.column_stack([D[:, estimated], y])


def test_each_row_may_have_its_own_filter() -> None:
    machine = estimated_33(car_20("unsprung", elements=True))
    motion = logged(machine)
    slow, fast = Butterworth(3.0), Butterworth(20.0)
    how = Sampling(filter=fast, filters={"fx": slow, "z2": None}, decimate=2, trim=5)
    assert how.filtering and how.filter_of("fx") is slow and how.filter_of("z1") is fast and how.filter_of("z2") is None
    seen = {f.row: f for f in observation(machine, motion, TEN_ROWS, IdentifySettings(sampling=how)).rows}
    for row, low in (("fx", slow), ("z1", fast), ("z2", None)):
        A = dense(machine, motion, row)
        A = (A if low is None else zero_phase(A, RATE, low))[5:-5][1::2]
        felt = [list(machine.parameters.select("estimated")).index(c) for c in seen[row].columns]
        kept = A[:, [*felt, -1]]
        R = seen[row].R
        assert seen[row].samples == len(kept)
        assert pytest.approx(kept.T @ kept, rel=1e-9, abs=1e-9 * float((kept**2).sum())) == R.T @ R


def test_rows_along_a_path_are_sums_of_rows() -> None:
    """Dense: row + Σ s · other row, wrenches and all, and the traces of a plot say the same; with machine code and without."""
    machine = estimated_33(car_20("unsprung", elements=True))
    motion = logged(machine)
    how = Sampling(along={"z1": {"beta1": "a", "fy": "b"}, "fy": {"z1": "b"}})
    a, b = motion.signals["a"][:, None], motion.signals["b"][:, None]
    own = {row: dense(machine, motion, row) for row in ("z1", "beta1", "fy")}
    wanted = {"z1": own["z1"] + a * own["beta1"] + b * own["fy"], "fy": own["fy"] + b * own["z1"]}
    for engine in ("numpy", "compiled"):
        for f in observation(machine, motion, ("fy", "z1"), IdentifySettings(sampling=how, engine=engine)).rows:
            felt = [list(machine.parameters.select("estimated")).index(c) for c in f.columns]
            kept = wanted[f.row][:, [*felt, -1]]
            assert pytest.approx(kept.T @ kept, rel=1e-9, abs=1e-9 * float((kept**2).sum())) == f.R.T @ f.R
            left_out = np.delete(wanted[f.row][:, :-1], felt, axis=1)
            assert not left_out.any()
    fit = identify(machine, motion, rows=("fy", "z1", "z2"), settings=IdentifySettings(sampling=how))
    names, measured, model = predicted(fit, motion, sampling=how)
    check = validate(fit, motion, settings=IdentifySettings(sampling=how))
    for k, row in enumerate(names):
        assert np.sqrt(np.mean((measured - model)[:, k] ** 2)) == pytest.approx(check[row].rms, rel=1e-9)
        if row in wanted:
            assert measured[:, k] == pytest.approx(wanted[row][:, -1])


def test_a_block_on_an_incline() -> None:
    """z = x tan θ: along x the row is m (1 + tan²θ) ẍ + m g tan θ + k x = 0, whatever the incline presses with."""
    mass, stiffness, tan, g = 3.0, 70.0, 0.75, 9.81
    along_x, up = MDH(gamma=np.pi / 2, alpha=np.pi / 2), MDH(alpha=-np.pi / 2)
    bodies = [
        Body("cart", "ground", "sliding", along_x, coordinate="x", real=False, actuated=False),
        Body("block", "cart", "sliding", up, coordinate="z", actuated=True),
    ]
    machine = Machine.of_bodies(bodies, inertia={"block": [0.0] * 9 + [mass]}, elements=[spring("x", stiffness)])
    t = np.linspace(0.0, 2.0, N)
    omega = np.sqrt(stiffness / (mass * (1 + tan**2)))
    still = -mass * g * tan / stiffness
    x = still + 0.2 * np.cos(omega * t)
    xd, xdd = -0.2 * omega * np.sin(omega * t), -0.2 * omega**2 * np.cos(omega * t)
    q, qd, qdd = (np.column_stack([a, tan * a]) for a in (x, xd, xdd))
    motion = Motion(t, q, qd, qdd, signals={"dz/dx": np.full(N, tan)})
    known = machine.with_parameters(machine.parameters.known({"k_x": stiffness}))
    how = Sampling(along={"x": {"z": "dz/dx"}})
    seen = observation(known, motion, ("x",), IdentifySettings(sampling=how)).rows[0]
    M = seen.columns.index(machine.parameters.index("M_block"))
    W, y = seen.R[:, M], seen.R[:, -1]
    assert float(W @ y / (W @ W)) == pytest.approx(mass, rel=1e-12)


def test_paths_and_filters_that_cannot_be_are_refused() -> None:
    machine = estimated_33(car_20("unsprung", elements=True))
    motion = logged(machine)
    how = Sampling(filters={"fq": None}, along={"z9": {}, "z1": {"beta9": "a", "beta1": "slope"}})
    with pytest.raises(DataError) as caught:
        observation(machine, motion, TEN_ROWS, IdentifySettings(sampling=how))
    text = str(caught.value)
    assert "sampling.filters: 'fq' is not one of the rows" in text
    assert "sampling.along: 'z9' is not one of the rows" in text
    assert "sampling.along['z1']: there is no row 'beta9'" in text
    assert "sampling.along['z1']: the motion has no signal 'slope'" in text


def test_counts_of_samples_are_whole_numbers() -> None:
    with pytest.raises(
        DataError, match=r"trim: it counts samples\.\nExpected a whole number, found 0\.5\. Signals\(trim=…\)"
    ):
        Sampling(trim=0.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="decimate: it counts samples"):
        Sampling(decimate=2.0)  # pyright: ignore[reportArgumentType]
    assert Sampling(trim=np.int64(3)).trim == 3  # pyright: ignore[reportArgumentType]


def moving(speeds: tuple[float, float, float], samples: int = 4000) -> Motion:
    """Sines of these largest speeds, and rates that fit them."""
    t = 0.005 * np.arange(samples)
    w = 2.0 * np.pi * np.array([0.7, 0.9, 1.1])
    a = np.array(speeds)
    angle = np.outer(t, w)
    return Motion(t, a / w * np.sin(angle), a * np.cos(angle), -a * w * np.sin(angle))


def with_forces(machine: Machine, m: Motion) -> Motion:
    return replace(m, forces=inverse_dynamics(machine, m))


def test_a_twentieth_of_the_largest_speed_is_chosen() -> None:
    """|cos| of a sine is below 0.05 for 2 asin(0.05)/π = 3.2 % of the time, so the share of the samples does not limit it."""
    zones = choose_dead_zones(robot(), [moving((2.0, 1.0, 0.04))])
    assert list(zones) == list(JOINTS)
    assert zones == pytest.approx({"q1": 0.1, "q2": 0.05, "q3": 0.002}, rel=0.051)  # two digits, rounded down
    assert all(zone <= limit for zone, limit in zip(zones.values(), (0.1, 0.05, 0.002), strict=True))


def test_no_more_than_thirty_percent_of_the_samples_are_left_out() -> None:
    m = moving((2.0, 1.0, 0.5))
    rest = replace(m, qd=np.where(np.arange(len(m))[:, None] < 2800, 1e-3 * m.qd, m.qd))  # 70 % slow
    zones = choose_dead_zones(robot(), [rest])
    for k, c in enumerate(JOINTS):
        left_out = float((np.abs(rest.qd[:, k]) < zones[c]).mean())
        assert 0.27 < left_out <= 0.3
    assert choose_dead_zones(robot(), [replace(m, qd=0.0 * m.qd)]) == {}
    assert zone_of(np.array([0.0, 0.0, 0.0, 1.0]), 0.5) == 0.0


def test_only_dry_friction_that_enters_the_rows_has_a_zone() -> None:
    m = moving((2.0, 1.0, 0.5))
    assert list(choose_dead_zones(robot(), [m], ["q2"])) == ["q2"]
    two = replace(m, q=m.q[:, :2], qd=m.qd[:, :2], qdd=m.qdd[:, :2])
    bodies = [Body("1"), Body("2", "1", placement=MDH(d=0.4))]
    assert choose_dead_zones(Machine.of_bodies(bodies, elements=[damper("q1", 1.0)]), [two]) == {}
    belt = Machine.of_bodies(bodies, elements=[coulomb({"q1": 1.0, "q2": -1.0}, 0.5, name="belt")])
    assert list(choose_dead_zones(belt, [two])) == ["belt"]


def test_a_number_counts_for_dry_friction_on_combinations() -> None:
    """Near standstill of a combination its friction takes any value, however fast its coordinates are."""
    bodies = [Body("1"), Body("2", "1", placement=MDH(d=0.4))]
    belt = coulomb({"q1": 1.0, "q2": -1.0}, 0.5, name="belt")
    machine = Machine.of_bodies(bodies, elements=[coulomb("q1", 1.0), damper({"q1": 1.0, "q2": 1.0}, 0.3), belt])
    m = moving((1.0, 1.0, 1.0))
    two = replace(m, q=m.q[:, :2], qd=m.qd[:, :2], qdd=m.qdd[:, :2])
    assert with_dead_zones(Sampling(dead_zone=0.1), machine, [two]).zones == {"q1": 0.1, "q2": 0.1, "belt": 0.1}
    assert with_dead_zones(Sampling(dead_zone=0.1), machine, [two], ["q1"]).zones == {"q1": 0.1, "belt": 0.1}


def test_a_number_counts_for_every_row_and_auto_for_every_verb() -> None:
    machine = robot()
    m = with_forces(machine, moving((2.0, 1.5, 1.0)))
    by_name = observation(
        machine, m, settings=IdentifySettings(sampling=Sampling(dead_zone={"q1": 0.3, "q2": 0.3, "q3": 0.3}))
    )
    number = observation(machine, m, settings=IdentifySettings(sampling=Sampling(dead_zone=0.3)))
    assert [f.samples for f in number.rows] == [f.samples for f in by_name.rows]
    assert all(f.samples < len(m) for f in number.rows)
    assert [
        f.samples for f in observation(machine, m, settings=IdentifySettings(sampling=Sampling(dead_zone=0))).rows
    ] == [len(m)] * 3
    for zone in (0.3, "auto"):
        how = Sampling(dead_zone=zone)
        fit = identify(machine, m, "wls", settings=IdentifySettings(sampling=how))
        assert validate(fit, m, settings=IdentifySettings(sampling=how)).relative_error < 1e-6
    assert (
        identify(machine, m, "wls", settings=IdentifySettings(sampling=Sampling(dead_zone=0.3)), rows=["q2"])
        .rows[0]
        .samples
        == by_name.rows[1].samples
    )


@pytest.mark.parametrize(
    ("zone", "text"), [("slow", "this is no dead zone"), (-0.1, "at least 0"), (np.nan, "at least 0")]
)
def test_what_is_no_dead_zone(zone: float | str, text: str) -> None:
    with pytest.raises(DataError, match=text):
        with_dead_zones(Sampling(dead_zone=zone), robot(), [moving((1.0, 1.0, 1.0))])
    with pytest.raises(DataError, match="not chosen yet"):
        _ = Sampling(dead_zone=zone).zones


def test_deviations_hold_where_a_log_begins_at_rest() -> None:
    """At rest a measured speed has the sign of its noise: with a zone of its own the true friction lies within 3σ, without far outside."""
    machine, rng = robot(), np.random.default_rng(11)
    m = moving((2.0, 1.5, 1.0))
    start = np.clip((m.t - 4.0) / 2.0, 0.0, 1.0)[:, None]
    led = replace(m, q=start * m.q, qd=start * m.qd, qdd=start * m.qdd)  # any samples will do: equations know no time
    true = inverse_dynamics(machine, led) + 0.02 * rng.normal(size=(len(m), 3))
    seen = replace(led, qd=led.qd + 1e-3 * rng.normal(size=led.qd.shape), forces=true)
    truth = {f"fs_{c}": machine.parameters.values[machine.parameters.index(f"fs_{c}")] for c in JOINTS}

    def off(how: Sampling) -> list[float]:
        fit = identify(machine, seen, "wls", settings=IdentifySettings(covariance="white", sampling=how))
        return [abs(fit.values[fit.names.index(n)] - x) / fit.sigma[fit.names.index(n)] for n, x in truth.items()]

    assert max(off(Sampling(dead_zone="auto"))) < 3.0
    assert min(off(Sampling())) > 5.0


def test_an_actuated_joint_without_force_is_refused() -> None:
    forces = log(50).forces.copy()
    forces[:, 1] = np.nan
    with pytest.raises(
        DataError, match=r"row 'q2': the joint is actuated, and no force of it is measured[\s\S]*rows=…"
    ):
        observation(arm(), replace(log(50), forces=forces))
    assert observation(arm(), replace(log(50), forces=forces), ["q1", "q3"]).samples == 100


def test_a_passive_joint_with_a_force_is_refused() -> None:
    machine = suspended(500.0)
    motion = Motion(np.arange(9.0), *np.ones((3, 9, 1)), forces=np.full((9, 1), 3.5))
    with pytest.raises(
        DataError, match=r"row 'q1': the joint is passive, and yet a force of it is given[\s\S]*found up to 3\.5"
    ):
        observation(machine, motion)
    quiet = replace(motion, forces=np.full((9, 1), np.nan))
    assert observation(machine, quiet).samples == 9


def test_gaps_cannot_be_filtered() -> None:
    forces = log(300).forces.copy()
    forces[7, 0] = np.nan
    with pytest.raises(DataError, match=r"row 'q1': its measured force has gaps \(NaN\), which a filter would smear"):
        observation(
            arm(),
            replace(log(300), forces=forces),
            settings=IdentifySettings(sampling=Sampling(filter=Butterworth(10.0))),
        )


@pytest.mark.parametrize("value", [1e160, -1e300, np.inf])
def test_a_force_that_no_machine_has_is_refused_by_place(value: float) -> None:
    """Its square overflows: what came of it was an infinite triangle, and an error of the solver."""
    forces = log(50).forces.copy()
    forces[7, 1] = value
    for method in ("ols", "wls", "robust"):
        with pytest.raises(
            DataError, match=r"motion\.forces, 'q2': no measured quantity is so large[\s\S]*1e\+50 in SI units"
        ):
            identify(arm(), replace(log(50), forces=forces), method)


def test_other_values_that_no_machine_has_are_refused_too() -> None:
    qdd = log(50).qdd.copy()
    qdd[7:9, 0] = 1e160
    motion = replace(log(50), qdd=qdd, signals={"current": np.full(50, -1e99)})
    with pytest.raises(
        DataError, match=r"'q1'[\s\S]*1e\+160 at t = [\s\S]*2 in all[\s\S]*motion\.signals\['current'\]"
    ):
        observation(arm(), motion)


def test_an_unknown_row_is_refused() -> None:
    with pytest.raises(ModelError, match="there is no row 'q9'"):
        observation(arm(), log(50), ["q9"])


def test_wrong_settings_are_reported_all_at_once() -> None:
    how = Sampling(dead_zone={"q7": 1.0}, drop={"q1": np.zeros(3, dtype=bool)}, decimate=0, method="svd")
    with pytest.raises(DataError) as caught:
        observation(arm(), log(50), settings=IdentifySettings(sampling=how))
    text = str(caught.value)
    assert len(caught.value.faults) == 4
    for part in (
        "sampling.dead_zone: 'q7' is not one of the rows.",
        "sampling.drop['q1']: a mask has one entry for each sample of all motions",
        "decimate and block must be at least 1, trim at least 0.",
        "there is no method 'svd'.",
    ):
        assert part in text


def test_a_base_row_has_no_dead_zone() -> None:
    machine = car_20()
    motion = random_motion(np.random.default_rng(0), machine, 20)
    with pytest.raises(DataError, match="row 'fx' has no speed of its own"):
        observation(machine, motion, settings=IdentifySettings(sampling=Sampling(dead_zone={"fx": 1.0})))


def test_no_motion_and_other_models_are_refused() -> None:
    with pytest.raises(DataError, match="there is no motion to identify from"):
        observation(arm(), [])
    other = observation(suspended(500.0), Motion(np.arange(9.0), *np.ones((3, 9, 1))))
    with pytest.raises(DataError, match="observations of different models or rows cannot be merged"):
        observation(arm(), log(50)).merge(other)


def test_a_log_leaves_samples_near_standstill_out_by_default() -> None:
    """Where there is dry friction, a motion was made from measured positions, and their noise leaves the sign of the speed open."""
    machine, t = robot(), 0.005 * np.arange(4000)
    m = with_forces(machine, moving((2.0, 1.5, 1.0)))
    noisy = m.q + 1e-4 * np.random.default_rng(3).normal(size=m.q.shape)
    values = {f"q.{c}": noisy[:, k] for k, c in enumerate(JOINTS)}
    assert m.forces is not None
    values |= {f"force.{c}": m.forces[:, k] for k, c in enumerate(JOINTS)}
    units = {name: "rad" if name.startswith("q.") else "N*m" for name in values}
    log = Experiment.from_arrays(t, values, units, "log")
    made = motion(machine, log, Signals(lowpass=None))
    zones = choose_dead_zones(machine, [made])
    assert all(zones[c] > 0.0 for c in JOINTS)
    named = IdentifySettings(sampling=Sampling(dead_zone=zones))
    own, same, every = (
        identify(machine, made, settings=how) for how in (None, named, IdentifySettings(sampling=Sampling()))
    )
    assert np.array_equal(own.values, same.values)
    assert [r.samples for r in own.rows] == [r.samples for r in same.rows]
    assert all(a.samples < b.samples for a, b in zip(own.rows, every.rows, strict=True))
    assert [r.samples for r in identify(machine, m).rows] == [len(m)] * 3  # whose speeds are as they were given
    assert [r.samples for r in validate(own, made).rows] == [len(made)] * 3  # which judges every sample


def test_rests_do_not_narrow_the_zone() -> None:
    """Of a log at rest for half its time the zone is that of the motion: noise of the speed is no slow motion."""
    m = moving((2.0, 1.0, 0.5))
    rng, noise = np.random.default_rng(2), 0.004
    still = np.where(np.arange(len(m))[:, None] < 2000, 0.0, m.qd) + noise * rng.normal(size=m.qd.shape)
    density = 3.0 * noise**2 / (2.0 * np.pi * 100.0) ** 2  # of white positions, whose speeds have this deviation
    edges = 2.0 * np.pi * np.linspace(0.0, 100.0, 65)
    variance = np.tile(density * np.diff(edges**5) / (5.0 * edges[-1]), (3, 1))
    measured = replace(m, qd=still, noise_bands=NoiseBands(variance, 200.0))
    assert speed_variance(measured) == pytest.approx(noise**2, rel=1e-6)
    assert choose_dead_zones(robot(), [measured])["q1"] == pytest.approx(0.1, rel=0.06)
    assert choose_dead_zones(robot(), [replace(measured, noise_bands=None)])["q1"] < 0.01
