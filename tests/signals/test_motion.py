"""Channels on one clock stay as they are; others are brought to it."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError, DataWarning
from veridyn.model.elements.element import damper, drag, drive_gain
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine
from veridyn.signals.motion import Signals, motion
from veridyn.spatial.rotations import MDH

RATE = 200.0
T = np.arange(1001) / RATE
OMEGA = 2 * np.pi * np.array([0.7, 1.3])  # rad/s; 1.3 Hz is slow for 200 Hz, so derivatives are exact to rounding


def arm(**settings):
    """q1 turns, q2 slides."""
    return Machine.of_bodies([Body("1"), Body("2", "1", "sliding", MDH(d=0.3))], name="arm", **settings)


def angles(t):
    return 0.4 * np.sin(OMEGA[0] * t), 0.2 * np.cos(OMEGA[1] * t)


def log(t=T, **more):
    a, b = angles(t)
    values = {"q.q1": a, "q.q2": b, "force.q1": 3.0 * a, "force.q2": 5.0 + b, **more}
    units = {"q.q1": "rad", "q.q2": "m", "force.q1": "N*m", "force.q2": "N"}
    return Experiment.from_arrays(t, values, {**dict.fromkeys(more, "1"), **units}, "run.csv")


def with_units(experiment, **units):
    return experiment.replacing(*(Channel(n, experiment[n].t, experiment[n].values, u) for n, u in units.items()))


def test_positions_come_with_their_exact_rates():
    found = motion(arm(), log(), Signals(trim=0.1))
    t = found.t
    assert t[0] == pytest.approx(0.1) and t[-1] == pytest.approx(4.9)
    assert np.allclose(found.q, np.column_stack(angles(t)), atol=1e-12)
    qd = np.column_stack([0.4 * OMEGA[0] * np.cos(OMEGA[0] * t), -0.2 * OMEGA[1] * np.sin(OMEGA[1] * t)])
    assert np.allclose(found.qd, qd, atol=1e-10)
    assert np.allclose(found.qdd, -(OMEGA**2) * found.q, atol=1e-8)  # rounding times rate²
    assert np.allclose(found.forces, np.column_stack([3.0 * found.q[:, 0], 5.0 + found.q[:, 1]]), atol=1e-12)
    assert found.base is None and not found.wrenches and not found.signals


def test_channels_on_clocks_of_their_own_meet_on_the_fastest():
    slow = np.arange(0.013, 4.9, 0.01)
    a, b = angles(slow)
    other = log().replacing(Channel("q.q2", slow, b, "m"), Channel("force.q1", slow, 3.0 * a, "N*m"))
    found = motion(arm(), other)
    assert found.t[0] == 0.013 and found.t[-1] <= slow[-1]
    assert np.allclose(np.diff(found.t), 1 / RATE)
    # A cubic spline through 100 Hz misses a 1.3 Hz sinusoid of 0.2 m by (ωT)⁴/384 of it, 2e-8 here.
    assert np.allclose(found.q, np.column_stack(angles(found.t)), atol=1e-6)
    assert motion(arm(), other, Signals(rate=50.0)).t[1] == pytest.approx(0.033)


def test_a_jittering_clock_is_resampled_at_its_median_rate():
    t = T + np.random.default_rng(3).uniform(-0.3, 0.3, len(T)) / RATE
    a, b = angles(t)
    found = motion(arm(), Experiment.from_arrays(t, {"q.q1": a, "q.q2": b}, {"q.q1": "rad", "q.q2": "m"}))
    assert np.allclose(np.diff(found.t), np.diff(found.t)[0], rtol=1e-6)
    assert np.allclose(found.q, np.column_stack(angles(found.t)), atol=1e-6)
    assert found.forces is None


def test_the_low_pass_is_for_positions_and_not_for_forces():
    hum = 0.01 * np.sin(2 * np.pi * 60.0 * T)
    noisy = log().replacing(
        Channel("q.q1", T, angles(T)[0] + hum, "rad"), Channel("force.q1", T, 3.0 * angles(T)[0] + hum, "N*m")
    )
    found = motion(arm(), noisy, Signals(lowpass=10.0, trim=0.5))
    inside = slice(100, -100)
    assert np.allclose(found.q[:, 0], angles(found.t)[0], atol=1e-6)
    assert np.array_equal(found.forces[:, 0], noisy["force.q1"].values[inside])


def test_measured_rates_are_used_where_they_are_asked_for():
    given = with_units(log(**{"qd.q1": np.full(len(T), 7.0), "qdd.q2": np.full(len(T), 9.0)}), **{"qd.q1": "rad/s"})
    given = with_units(given, **{"qdd.q2": "m/s^2"})
    found = motion(arm(), given, Signals(measured_rates=True))
    assert np.array_equal(found.qd[:, 0], np.full(len(T), 7.0))
    assert np.allclose(found.qdd[:, 0], 0.0, atol=1e-9)  # the derivative of the measured speed
    assert np.array_equal(found.qdd[:, 1], np.full(len(T), 9.0))
    own = motion(arm(), given)
    assert np.abs(own.qd[:, 0]).max() < 2.0 and np.abs(own.qdd[:, 1]).max() < 20.0


def test_a_coordinate_without_a_force_has_nan():
    part = log()
    part = Experiment({n: c for n, c in part.channels.items() if n != "force.q2"}, part.name)
    found = motion(arm(), part)
    assert np.isfinite(found.forces[:, 0]).all() and np.isnan(found.forces[:, 1]).all()


def test_motors_stand_in_for_joints():
    T2 = np.array([[0.5, 0.0], [-0.1, 0.02]])
    machine = arm(transmission=Transmission(("m1", "m2"), ("q1", "q2"), T2))
    q = np.column_stack(angles(T))
    force = np.column_stack([np.sin(T), np.cos(T)])
    qm, fm = machine.transmission.motors_from_joints(q), machine.transmission.motor_forces(force)
    values = {f"q_motor.m{k + 1}": qm[:, k] for k in range(2)} | {f"force_motor.m{k + 1}": fm[:, k] for k in range(2)}
    units = {n: "rad" if n[0] == "q" else "N*m" for n in values}
    found = motion(machine, Experiment.from_arrays(T, values, units))
    assert np.allclose(found.q, q, atol=1e-13)
    assert np.allclose(found.forces, force, atol=1e-12)
    # A joint's own channel comes before its motors'.
    both = Experiment.from_arrays(T, {**values, "force.q1": 2.0 + 0.1 * np.sin(T)}, {**units, "force.q1": "N*m"})
    assert np.array_equal(motion(machine, both).forces[:, 0], 2.0 + 0.1 * np.sin(T))


def free_log(**more):
    turn = 0.3 * np.sin(OMEGA[0] * T)
    values = {f"base.omega.{a}": k * turn for k, a in enumerate("xyz", 1)}
    values |= {f"base.acceleration.{a}": 9.81 + k * turn for k, a in enumerate("xyz", 1)}
    values |= {"q.q2": angles(T)[1], **more}
    units = {n: "rad/s" if "omega" in n else "m/s^2" for n in values} | {"q.q2": "m"}
    units |= {n: "N" if n.split(".")[2][0] == "f" else "N*m" for n in more if n.startswith("wrench")}
    units |= {n: "m/s" for n in more if n.startswith("base.velocity")}
    return Experiment.from_arrays(T, values, units, "walk.csv")


def free(**settings):
    return Machine.of_bodies(
        [Body("1", None, "fixed"), Body("2", "1", "sliding")], name="walker", base="free", **settings
    )


def test_a_free_base_moves_and_wrenches_act():
    wrench = {f"wrench.2.{r}": k + np.cos(T) for k, r in enumerate(("fx", "fy", "fz", "mx", "my", "mz"))}
    velocity = {f"base.velocity.{a}": np.sin(T) for a in "xyz"}
    found = motion(free(), free_log(**wrench, **velocity))
    slope = 0.3 * OMEGA[0] * np.cos(OMEGA[0] * found.t)
    inside = slice(20, -20)
    assert np.allclose(found.base.omega_dot[inside], np.outer(slope, [1, 2, 3])[inside], atol=1e-9)
    assert np.allclose(found.base.acceleration[:, 0] - 9.81, found.base.omega[:, 0], atol=1e-12)
    assert np.array_equal(found.base.velocity[:, 1], np.sin(T))
    assert np.array_equal(found.wrenches["2"], np.column_stack(list(wrench.values())))
    assert motion(free(), free_log()).base.velocity is None


def test_what_drag_and_gains_need_is_missed_by_name():
    with pytest.raises(DataError, match=r"3 faults(.|\n)*'base.velocity.x'(.|\n)*'base.velocity.z'"):
        motion(free(elements=[drag("1.fx")]), free_log())
    with pytest.raises(DataError, match=r"there is no channel 'signal.current'"):
        motion(arm(elements=[drive_gain("q1", "current")]), log())
    found = motion(arm(elements=[drive_gain("q1", "current")]), log(**{"signal.current": np.cos(T)}))
    assert np.array_equal(found.signals["current"], np.cos(T))


def test_currents_that_stand_for_forces_are_inspected_as_forces():
    """A spike is bridged, and a current that never changes is reported."""
    machine, current = arm(elements=[drive_gain("q1", "current")]), np.sin(7.0 * T)
    current[100] += 50.0
    with pytest.warns(DataWarning, match=r"channel 'signal.current': 1 spike"):
        made = motion(machine, log(**{"signal.current": current}))
    assert abs(made.signals["current"][100] - np.sin(7.0 * T[100])) < 0.1
    with pytest.warns(DataWarning, match=r"channel 'signal.current': it never changes"):
        motion(machine, log(**{"signal.current": np.full(len(T), 2.5)}))


def test_a_free_base_may_be_all_there_is():
    lonely = Machine.of_bodies([Body("1", None, "fixed")], base="free")
    whole = free_log()
    part = Experiment({n: c for n, c in whole.channels.items() if n != "q.q2"})
    assert motion(lonely, part, Signals(lowpass=20.0, trim=0.0)).q.shape == (len(T), 0)


def test_central_differences_say_that_they_are_biased():
    with pytest.warns(DataWarning, match=r"second derivative by 'central' differences is biased"):
        motion(arm(), log(), Signals(lowpass=20.0, derivative="central"))
    assert len(motion(arm(), log(), Signals(lowpass=2.0, derivative="central", trim=0.0))) == len(T)
    with pytest.warns(DataWarning, match=r"at most 1 % below 100 Hz"):
        motion(arm(), log(), Signals(derivative="central"))


def test_bad_clocks_values_and_gaps_are_told_at_once():
    back = T.copy()
    back[500] -= 0.012
    bad = angles(T)[1]
    bad[17] = np.nan
    gap = np.delete(T, slice(300, 400))
    wrong = log().replacing(
        Channel("q.q1", back, angles(T)[0], "rad"),
        Channel("q.q2", T, bad, "m"),
        Channel("force.q1", gap, 0.3 * np.cos(gap), "N*m"),
    )
    with pytest.raises(DataError) as caught:
        motion(arm(), wrong)
    text = str(caught.value)
    assert "3 faults" in text
    assert "channel 'q.q1'" in text and "runs backwards" in text
    assert "channel 'q.q2'" in text and "not finite numbers" in text
    assert "channel 'force.q1'" in text and "without a sample" in text


def test_a_gap_may_be_allowed_by_its_length():
    gap = np.delete(T, slice(300, 320))
    bridged = log().replacing(Channel("force.q1", gap, 3.0 * angles(gap)[0], "N*m"))
    with pytest.raises(DataError, match="without a sample"):
        motion(arm(), bridged)
    assert np.allclose(motion(arm(), bridged, Signals(max_gap=0.2)).forces[:, 0], 3.0 * angles(T)[0], atol=1e-3)
    with pytest.raises(DataError, match="bridged by interpolation"):
        motion(arm(), bridged, Signals(max_gap=0.05))


def test_trouble_on_a_channel_that_is_not_used_does_not_matter():
    useless = log(temperature=np.full(len(T), np.nan))
    assert len(motion(arm(), useless)) == len(T)


def test_settings_are_checked():
    with pytest.raises(DataError, match=r"trim: it is no time\.\nExpected seconds, 0 or more, or 'auto', found -1"):
        Signals(trim=-1.0)
    with pytest.raises(DataError, match="sampling rate is not usable"):
        Signals(rate=0.0)
    with pytest.raises(DataError, match="order is not usable"):
        Signals(lowpass=3.0, order=0)
    with pytest.raises(DataError, match=r"nothing is left of it after trimming\.\nExpected more than 6 s"):
        motion(arm(), log(), Signals(trim=3.0))
    with pytest.raises(DataError, match="seconds above 0"):
        Signals(max_gap=0.0)


def test_elements_change_nothing():
    assert np.array_equal(motion(arm(elements=[damper("q1")]), log()).qd, motion(arm(), log()).qd)
