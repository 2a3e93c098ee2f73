"""Stiffness from two encoders, against an arm that MuJoCo simulated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from identify.flexible import flexible_arm as arm
from identify.flexible import several_bars as bars
from veridyn.errors import DataError
from veridyn.identify.flexible.result import FlexibleSettings
from veridyn.identify.flexible.two_encoders import identify_flexible

NOISE = 2e-6  # rad: an encoder of 20 bits


@pytest.fixture(scope="module")
def run():
    return arm.simulated(arm.swing, 8.0, friction=8.0)


def test_stiffness_friction_and_delay(run):
    """Stiffness and dry friction within 2 %, from a prior that is a third too low; the delay within 0.3 ms, which viscous friction that
    may be there (30 % of the force at the largest speed) makes 0.25 ms uncertain."""
    fit = identify_flexible(arm.machine(), arm.log(*run, delay=2.8e-3, noise=NOISE))
    x = fit.joints["hip"].quantities
    assert x["stiffness"].value == pytest.approx(arm.STIFFNESS, rel=0.02)
    assert x["coulomb"].value == pytest.approx(8.0, rel=0.02)
    assert fit.delay == pytest.approx(2.8e-3, abs=3e-4)
    assert abs(fit.delay - 2.8e-3) < 2 * fit.delay_sigma
    assert abs(x["damping"].value - arm.DAMPING) < 3 * x["damping"].sigma
    assert x["stiffness"].determined and not fit.notes()
    apart = replace(fit, joints={**fit.joints, "knee": fit.joints["hip"]}, delay_chance=1e-3)
    assert "are kept apart" in apart.notes()[0] and "so far apart by chance in 0.001 of logs" in apart.summary()
    assert dict(zip(fit.machine().parameters.names, fit.machine().parameters.values, strict=True))[
        "stiffness_hip"
    ] == pytest.approx(x["stiffness"].value)


def test_predicted_deflection(run):
    """Of another part of the motion, to 2 %; to 4 % with standstill, where friction may be anything within its bounds."""
    first, second = (tuple(x[part] for x in run) for part in (slice(0, 4000), slice(4000, None)))
    fit = identify_flexible(arm.machine(), arm.log(*first, delay=2.8e-3, noise=NOISE))
    joint, other = fit.joints["hip"], arm.log(*second, delay=2.8e-3, noise=NOISE, seed=1)
    assert joint.std_percent(other, moving=True) < 2.0
    assert joint.std_percent(other) < 4.0


def test_what_a_slow_motion_does_not_show(run):
    """Moved slowly at the bottom it carries 0.5 N·m, or 8e-5 rad beside 5e-4 rad of noise at 250 Hz: no better than a prior of 5 %."""

    def slowly(t: float, theta: float, speed: float) -> float:
        return 800.0 * (-np.pi / 2 + 0.01 * np.sin(0.8 * t) - theta) + 90.0 * (0.008 * np.cos(0.8 * t) - speed)

    log = arm.log(
        *(x[::4] for x in arm.simulated(slowly, 16.0)), delay=2.8e-3, noise=5e-4
    )  # a band has the noise of 1e-3 at 1 kHz
    fit = identify_flexible(arm.machine(6000.0), log, settings=FlexibleSettings(spread=0.05))
    joint = fit.joints["hip"]
    assert "stiffness" in joint.undetermined
    assert "stiffness of hip is not determined" in fit.summary() and "undetermined" in fit.summary()
    assert joint.torque_factor > 1.0
    assert fit.machine() is fit.described or "damping" not in joint.undetermined


def test_zeros_of_logs_may_differ(run):
    """Two logs of one motion, the second with other zeros of its link encoder."""
    logs = [arm.log(*run, delay=2.8e-3, noise=NOISE, seed=k, name=f"run{k}") for k in range(2)]
    other = logs[1].channels["q.hip"]
    moved = vd.Experiment(
        {**logs[1].channels, "q.hip": type(other)("q.hip", other.t, other.values + 0.01, "rad")}, "run1"
    )
    fit = identify_flexible(arm.machine(), [logs[0], moved])
    assert fit.joints["hip"].stiffness.value == pytest.approx(arm.STIFFNESS, rel=0.02)


def test_bad_input_is_named(run):
    good = arm.log(*run)

    def but(name: str, change) -> vd.Experiment:
        c = good.channels[name]
        return vd.Experiment({**good.channels, name: type(c)(name, c.t, change(c.values), c.unit)}, "bad.csv")

    for log, message in (
        (but("q.hip", np.degrees), "degrees, the motor's rad"),
        (but("q.hip_motor", np.degrees), "rad, the motor's degrees"),
        (but("q.hip", np.negative), "the other sign"),
        (but("q.hip", lambda x: 0 * x), "link encoder stands still"),
        (but("q.hip_motor", lambda x: 120 * x), "before the gear, of ratio 120"),
        (but("q.hip", lambda x: np.roll(x, 180)), "different clocks"),
        (vd.Experiment({n: c for n, c in good.channels.items() if n != "q.hip"}, "bad.csv"), "needed, and missing"),
    ):
        with pytest.raises(DataError, match=message):
            identify_flexible(arm.machine(), log)
    with pytest.raises(DataError, match="inertia of its rotor is unknown"):
        identify_flexible(arm.machine(inertia=float("nan")), good)
    with pytest.raises(DataError, match="no flexible joint of this machine"):
        identify_flexible(arm.machine(), good, joints=["knee"])
    with pytest.raises(DataError, match="FlexibleSettings"):
        FlexibleSettings(spread=-1.0)


def test_a_gyroscope_on_the_link_shows_as_much():
    """Two masses in closed form, as in the example of identify_flexible: 500 N m/rad; its rate has noise and a zero of its own."""
    rng = np.random.default_rng(8)
    t = np.arange(0, 20, 0.002)
    q, qd = 0.4 * np.sin(3 * t) + 0.1 * np.sin(11 * t), 1.2 * np.cos(3 * t) + 1.1 * np.cos(11 * t)
    qdd = -9 * 0.4 * np.sin(3 * t) - 121 * 0.1 * np.sin(11 * t)
    theta = q + 0.3 * qdd / 500
    thetadd = qdd + 0.3 / 500 * (81 * 0.4 * np.sin(3 * t) + 14641 * 0.1 * np.sin(11 * t))
    values = {
        "qd.hip": qd + 0.01 + 0.005 * rng.normal(size=len(t)),
        "q.hip_motor": theta + 1e-5 * rng.normal(size=len(t)),
        "force.hip_motor": 0.2 * thetadd + 0.3 * qdd,
    }
    units = {"qd.hip": "rad/s", "q.hip_motor": "rad", "force.hip_motor": "N*m"}
    bar = vd.Link(name="bar", inertia=[0.01, 0, 0, 0.3, 0, 0.3, 0.6, 0, 0, 2.0])
    rigid = vd.Machine.build([bar], [vd.Joint(name="hip", a="ground", b="bar", actuated=True)], gravity=(0, 0, 0))
    machine = vd.model.with_flexible_joints(rigid, {"hip": vd.model.Flexible(stiffness=700.0, inertia=0.2)})
    found = identify_flexible(machine, vd.Experiment.from_arrays(t, values, units)).joints["hip"].stiffness
    assert found.determined and abs(found.value - 500.0) < 3.0 * found.sigma < 5.0


def test_hysteresis_beside_backlash_is_refused():
    inner = {"backlash": 1e-3, "hysteresis": 2.0, "hysteresis_deflection": 1e-3}
    bent = vd.model.Flexible(stiffness=4000.0, inertia=arm.ROTOR, **inner)
    rigid = vd.Machine.build(
        [vd.Link(name="bar", inertia=[0.1, 0, 0, 2.6, 0, 2.6, 4.8, 0, 0, 12.0])],
        [vd.Joint(name="hip", a="ground", b="bar", actuated=True)],
    )
    machine = vd.model.with_flexible_joints(rigid, {"hip": bent})
    with pytest.raises(DataError, match="its backlash and its hysteresis are not identified together"):
        identify_flexible(machine, vd.Experiment({}, "none"))


def test_damping_below_zero_is_a_finding(run):
    """The motor's force 8 ms late: its damping would be −40 ± 3. It stays at zero, undetermined, and stiffness is right within its σ.

    In a log on one clock no bound is reached by more than chance.
    """
    t, theta, q, torque = run
    late = np.interp(t - 8e-3, t, torque)
    fit = identify_flexible(arm.machine(), arm.log(t, theta, q, late, delay=2.5e-3, noise=NOISE))
    joint = fit.joints["hip"]
    x = joint.quantities
    value, sigma = joint.beyond["damping"]
    assert value < -10.0 * sigma < 0.0
    assert x["damping"].value == 0.0 and not x["damping"].determined
    assert abs(x["stiffness"].value - arm.STIFFNESS) < 2.0 * x["stiffness"].sigma
    assert abs(x["delay"].value - 2.5e-3) < 2.0 * x["delay"].sigma
    assert [(f.cause, f.place, f.moves) for f in fit.findings] == [("friction below zero", "hip", "damping")]
    assert "damping would be below zero" in fit.notes()[0] and "damping would be below zero" in fit.summary()
    assert np.isnan(fit.machine().parameters["damping_hip"]) or fit.machine().parameters["damping_hip"] >= 0.0
    right = identify_flexible(arm.machine(), arm.log(*run, delay=2.5e-3, noise=NOISE))
    assert not right.findings and right.joints["hip"].quantities["viscous"].value >= 0.0


def test_several_joints_with_one_delay_keep_their_own_numbers():
    """Three bars with numbers of their own, both encoders of each, all links late by 2.8 ms. Their delays are pooled, and that each joint
    learns from the others' moves its friction and damping from where its own data have them, not from their bounds.

    At 250 Hz lines between samples and friction that turns within 5 mrad/s leave 3 % of the stiffness.
    """
    fit = identify_flexible(bars.machine(), bars.log(bars.simulated(6.0), 2.8e-3, NOISE))
    assert fit.delay == pytest.approx(2.8e-3, abs=3e-4) and abs(fit.delay - 2.8e-3) < 3.0 * fit.delay_sigma
    assert list(fit.joints) == list(bars.NAMES)
    for k, c in enumerate(bars.NAMES):
        x = fit.joints[c].quantities
        assert x["stiffness"].value == pytest.approx(bars.STIFFNESS[k], rel=0.04)
        assert x["coulomb"].value == pytest.approx(bars.COULOMB[k], rel=0.02)
        for name, true in (("viscous", bars.VISCOUS[k]), ("damping", bars.DAMPING[k]), ("delay", 2.8e-3)):
            assert abs(x[name].value - true) < 3.0 * x[name].sigma
