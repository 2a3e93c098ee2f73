"""Stiffness from inertial sensors on the link, against an arm and its sensors that MuJoCo simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import veridyn as vd
from identify.flexible import flexible_arm as arm
from veridyn.errors import DataError
from veridyn.identify.flexible.link_fit import LinkJointFit
from veridyn.identify.flexible.result import FlexibleSettings
from veridyn.identify.flexible.two_encoders import identify_flexible

BIAS, GAIN, TURN = (
    (0.1, -0.05, 0.2),
    (1.004, 0.997, 1.0),
    0.003,
)  # of the accelerometer; the last in rad, about the joint's axis
DELAY, RATE_DELAY, RATE_BIAS, RATE_GAIN = 2.8e-3, 1.8e-3, 0.01, 1.003
NOISE, RATE_NOISE = 0.02, 2e-3  # m/s² and rad/s of a sample at 1 kHz: usual of small sensors


@pytest.fixture(scope="module")
def run() -> np.ndarray:
    return arm.with_imu(arm.swing, 8.0, friction=8.0)


def log(run: np.ndarray, *, rate: bool = False, seed: int = 1, part: slice = slice(None)) -> vd.Experiment:
    """What an accelerometer, turned and with gains and biases of its own, and a gyroscope read, each with its delay."""
    rng, t = np.random.default_rng(seed), run[0]
    c, s = np.cos(TURN), np.sin(TURN)
    turned = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ run[3:6]
    values = {"q.hip_motor": run[1] + 2e-6 * rng.normal(size=len(t)), "force.hip_motor": run[2]}
    for axis, x, gain, bias in zip("xyz", turned, GAIN, BIAS, strict=True):
        late = CubicSpline(t, x)(np.maximum(t - DELAY, t[0]))
        values[f"imu.{axis}"] = gain * late + bias + NOISE * rng.normal(size=len(t))
    if rate:
        late = CubicSpline(t, run[6])(np.maximum(t - RATE_DELAY, t[0]))
        values["qd.hip"] = RATE_GAIN * late + RATE_BIAS + RATE_NOISE * rng.normal(size=len(t))
    units = {"q.hip_motor": "rad", "force.hip_motor": "N*m", "qd.hip": "rad/s"}
    units |= dict.fromkeys(("imu.x", "imu.y", "imu.z"), "m/s^2")
    cut = {name: x[part] for name, x in values.items()}
    return vd.Experiment.from_arrays(t[part], cut, {name: units[name] for name in cut})


def machine(at: Sequence[float] = arm.IMU) -> vd.Machine:
    sensor = vd.Sensor("imu", "accelerometer", vd.Marker("bar", at), NOISE)
    return replace(arm.machine(), sensors=(sensor,))


def within(x, truth: float, sigmas: float = 3.0) -> bool:
    return x.determined and abs(x.value - truth) < sigmas * x.sigma


def test_an_accelerometer_alone(run):
    """Stiffness and dry friction to 2 %, the resonance to 1 %, from a prior that is a third too low; delay, damping and biases in bands."""
    fit = identify_flexible(machine(), log(run))
    joint = fit.joints["hip"]
    x = joint.quantities
    assert isinstance(joint, LinkJointFit)
    assert x["stiffness"].value == pytest.approx(arm.STIFFNESS, rel=0.02) and within(x["stiffness"], arm.STIFFNESS)
    resonance = np.sqrt(x["stiffness"].value * (1 / arm.ROTOR + 1 / arm.ZZ))
    assert resonance == pytest.approx(np.sqrt(arm.STIFFNESS * (1 / arm.ROTOR + 1 / arm.ZZ)), rel=0.01)
    assert x["coulomb"].value == pytest.approx(8.0, rel=0.02)
    assert fit.delay == pytest.approx(DELAY, abs=8e-4) and x["damping"].value == pytest.approx(arm.DAMPING, abs=6.0)
    assert all(within(x[f"bias of imu.{axis}"], bias) for axis, bias in zip("xyz", BIAS, strict=True))
    assert "delay of the link sensors" in fit.summary() and not fit.notes()
    own = {
        n.name: joint.estimate.values[joint.streams[0].own.start + i] for i, n in enumerate(joint.streams[0].numbers)
    }
    assert own["gain of imu.x along x"] == pytest.approx(GAIN[0] - 1.0, abs=2e-3)
    assert own["gain of imu.y along y"] == pytest.approx(GAIN[1] - 1.0, abs=2e-3)
    assert joint.compared == ("imu less that of a rigid joint", "m/s^2")
    assert joint.std_percent(log(run, seed=2, part=slice(3000, None)), moving=True) < 8.0


def test_a_gyroscope_beside_it(run):
    """Both have delays and biases of their own, and together show more than the accelerometer alone."""
    alone = identify_flexible(machine(), log(run)).joints["hip"].stiffness
    x = identify_flexible(machine(), log(run, rate=True)).joints["hip"].quantities
    assert x["stiffness"].value == pytest.approx(arm.STIFFNESS, rel=0.01) and within(x["stiffness"], arm.STIFFNESS)
    assert x["stiffness"].sigma < alone.sigma
    assert within(x["bias of qd.hip"], RATE_BIAS)
    apart = (
        x["delay of imu"].value - x["delay of qd.hip"].value
    )  # viscous friction, which looks like a delay, is in both
    assert apart == pytest.approx(DELAY - RATE_DELAY, abs=5e-5)


def test_logs_have_biases_of_their_own(run):
    halves = [log(run, seed=k, part=part) for k, part in enumerate((slice(0, 4500), slice(3500, None)))]
    second = halves[1].channels["imu.x"]
    other = {**halves[1].channels, "imu.x": type(second)("imu.x", second.t, second.values + 0.3, "m/s^2")}
    fit = identify_flexible(machine(), [halves[0], vd.Experiment(other, "second")])
    x = fit.joints["hip"].quantities
    assert x["stiffness"].value == pytest.approx(arm.STIFFNESS, rel=0.02)
    first, then = (x[f"bias of imu.x in {name}"].value for name in (halves[0].name, "second"))
    assert then - first == pytest.approx(0.3, abs=0.02)


T = np.arange(0.0, 20.0, 0.004)


def two_masses(gravity: Sequence[float], at: Sequence[float], **given) -> tuple[vd.Machine, vd.Experiment]:
    """500 N·m/rad between 0.2 and 0.3 kg·m² moved by one sine about z, in closed form, with an accelerometer; `given` goes to the joint."""
    w, rng = 3.0, np.random.default_rng(3)
    q = 0.4 * np.sin(w * T)
    qd, qdd = 0.4 * w * np.cos(w * T), -(w**2) * q
    theta = q + 0.3 * qdd / 500.0
    lever = float(at[0])
    values = {
        "q.hip_motor": theta + 1e-6 * rng.normal(size=len(T)),
        "force.hip_motor": -0.2 * w**2 * theta + 0.3 * qdd,
        "imu.x": -lever * qd**2 + 0.02 * rng.normal(size=len(T)),
        "imu.y": lever * qdd + 0.02 * rng.normal(size=len(T)),
    }
    units = {"q.hip_motor": "rad", "force.hip_motor": "N*m", "imu.x": "m/s^2", "imu.y": "m/s^2"}
    bar = vd.Link(name="bar", inertia=[0.01, 0, 0, 0.3, 0, 0.3, 0.0, 0, 0, 2.0])
    sensor = vd.Sensor("imu", "accelerometer", vd.Marker("bar", at), 0.02, axes="xy")
    joint = vd.Joint(name="hip", a="ground", b="bar", actuated=True)
    rigid = vd.Machine.build([bar], [joint], gravity=gravity, sensors=[sensor])
    own = vd.model.Flexible(stiffness=700.0, inertia=0.2, **given)
    return vd.model.with_flexible_joints(rigid, {"hip": own}), vd.Experiment.from_arrays(T, values, units)


def test_what_gains_and_place_hide_is_named():
    """One sine about a vertical axis: 0.5 % less acceleration than of a rigid joint may be gain, or 3 mm of place."""
    fit = identify_flexible(*two_masses((0.0, 0.0, -9.81), (0.5, 0.0, 0.0)))
    joint = fit.joints["hip"]
    assert "stiffness" in joint.undetermined
    assert "stiffness of hip is not determined" in fit.summary()
    assert (
        any("gain" in words for words in joint.remedies) and "of the sensors on the link known exactly" in fit.summary()
    )


def test_an_accelerometer_on_a_vertical_axis_is_refused():
    with pytest.raises(DataError, match="sits on its axis, which is vertical"):
        identify_flexible(*two_masses((0.0, 0.0, -9.81), (0.0, 0.0, 0.1)))


@pytest.mark.parametrize("word", ["backlash", "hysteresis"])
def test_play_and_hysteresis_are_refused(word: str):
    given = {word: 1e-3} | ({"hysteresis_deflection": 1e-3} if word == "hysteresis" else {})
    with pytest.raises(DataError, match=f"its {word} and its stiffness are not identified from sensors on the link"):
        identify_flexible(*two_masses((0.0, 0.0, -9.81), (0.5, 0.0, 0.0), **given))


def test_bad_input_is_named(run):
    good = log(run)

    def but(names: Sequence[str], change) -> vd.Experiment:
        made = dict(good.channels)
        for name in names:
            c = made[name]
            made[name] = type(c)(name, c.t, change(c.values), c.unit)
        return vd.Experiment(made, "bad.csv")

    every = ("imu.x", "imu.y", "imu.z")
    for bad, message in (
        (but(every, lambda x: x / 9.80665), "seems to be in g"),
        (but(("imu.y",), np.negative), "It has the other sign"),
        (but(every, lambda x: 0.0 * x), "stands still"),
        (but(every, lambda x: np.roll(x, 180)), "different clocks"),
        (vd.Experiment({n: c for n, c in good.channels.items() if n != "imu.x"}, "bad.csv"), "a sensor of the model"),
    ):
        with pytest.raises(DataError, match=message):
            identify_flexible(machine(), bad)
    with pytest.raises(DataError, match="place"):  # another place than stated
        identify_flexible(machine((-0.5, 0.05, 0.02)), good)
    with pytest.raises(DataError, match="FlexibleSettings"):
        FlexibleSettings(gain=-1.0)


def test_other_joints_that_move_the_sensor_are_asked_for():
    """A second joint below the flexible one turns the sensor too."""
    arm_of_two = vd.Machine.build(
        [
            vd.Link(name="base", inertia=[0.01, 0, 0, 0.3, 0, 0.3, 0.0, 0, 0, 2.0]),
            vd.Link(name="bar", inertia=[0.01, 0, 0, 0.3, 0, 0.3, 0, 0, 0, 2.0]),
        ],
        [
            vd.Joint(name="waist", a="ground", b="base", actuated=True),
            vd.Joint(name="hip", a="base", b="bar", actuated=True),
        ],
        sensors=[vd.Sensor("imu", "accelerometer", vd.Marker("bar", (0.5, 0.0, 0.0)), 0.02, axes="xy")],
    )
    _, given = two_masses((0.0, 0.0, -9.81), (0.5, 0.0, 0.0))
    flexible = vd.model.with_flexible_joints(arm_of_two, {"hip": vd.model.Flexible(stiffness=700.0, inertia=0.2)})
    with pytest.raises(DataError, match="a sensor on the link moves with it as well") as caught:
        identify_flexible(flexible, given)
    assert "q.waist" in str(caught.value)
