"""A machine's own sensors and drives as the quantities of a motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import DataError, DataWarning
from veridyn.machines import palletizer
from veridyn.mechanics.system.integrate import BaseState, Inputs
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.load import Drive, Transmission
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.signals.motion import motion
from veridyn.signals.naming import Naming, measured_positions, unit_faults, with_sensor_channels, with_usual_names
from veridyn.simulate.imperfection import Imperfection, exact_readings
from veridyn.simulate.simulator import Driven, exact, record
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

T = np.arange(50) / 100.0


def arm(**settings):
    return Machine.of_bodies([Body("1"), Body("2", "1", "sliding")], name="arm", **settings)


def log(**units):
    return Experiment.from_arrays(T, {n: np.sin(9.0 * T + len(n)) for n in units}, units, "run.csv")


def named(**units):
    return log(**{name.replace("__", "."): unit for name, unit in units.items()})


def refused(machine, experiment):
    with pytest.raises(DataError) as caught:
        Naming(machine, experiment).check()
    return str(caught.value)


def test_all_that_is_missing_is_listed_with_the_nearest_name():
    text = refused(arm(), named(q__q1x="rad", temperature="K"))
    assert "2 faults" in text
    assert "run.csv: there is no channel 'q.q1'." in text and "Did you mean 'q.q1x'?" in text
    assert "there is no channel 'q.q2'." in text


def test_units_are_compared_and_the_channel_is_named():
    text = refused(arm(), named(q__q1="deg", q__q2="rad", force__q1="N", force__q2="N"))
    assert "3 faults" in text
    assert "channel 'q.q1': its unit is not that of what it should measure.\nExpected rad, found 'deg'." in text
    assert "channel 'q.q2'" in text and "Expected m, found 'rad'." in text
    assert "channel 'force.q1'" in text and "Expected N*m, found 'N'." in text


@pytest.mark.parametrize(
    ("unit", "wanted"),
    [
        ("N*m", "N*m"),
        ("kg*m^2/s^2", "N*m"),
        ("J", "N*m"),
        ("m*N", "N*m"),
        ("kg*m/s^2", "N"),
        ("rad*s^-1", "rad/s"),
        ("1/s*rad", "rad/s"),
        ("m/s/s", "m/s^2"),
    ],
)
def test_one_unit_may_be_written_in_many_ways(unit, wanted):
    assert not unit_faults(Channel("x", T, T, unit), [wanted])


@pytest.mark.parametrize(
    ("unit", "wanted"), [("Hz", "rad/s"), ("1/s", "rad/s"), ("mm", "m"), ("m/s", "m/s^2"), ("°", "rad"), ("(m)", "m")]
)
def test_units_that_differ_are_told_apart(unit, wanted):
    assert len(unit_faults(Channel("x", T, T, unit), [wanted])) == 1


def test_motors_are_asked_for_where_joints_are_not_measured():
    machine = arm(transmission=Transmission(("m1", "m2"), ("q1", "q2"), np.array([[1.0, 0.0], [-1.0, 2.0]])))
    assert Naming(machine, log()).motors("q1", "q") == {"q_motor.m1": 1.0}
    assert Naming(machine, log()).motors("q2", "q") == {"q_motor.m1": -1.0, "q_motor.m2": 2.0}
    # Γ = T⁻ᵀ Γ_m with T⁻¹ = [[1, 0], [1/2, 1/2]]
    assert Naming(machine, log()).motors("q1", "force") == {"force_motor.m1": 1.0, "force_motor.m2": 0.5}
    text = refused(machine, named(q__q1="rad"))
    assert "there is no channel 'q.q2 (or q_motor.m1 and q_motor.m2)'." in text
    text = refused(machine, named(q_motor__m1="rad", force_motor__m1="N*m", q__q2="m"))
    assert "'force_motor.m2'" in text and "q_motor.m2" not in text
    assert refused(machine, named(q__q1="rad", q_motor__m1="rad")).count("'q_motor.m2'") == 1


def test_half_a_wrench_and_a_wrench_on_nobody_are_refused():
    text = refused(arm(), named(q__q1="rad", q__q2="m", wrench__2__fx="N", wrench__foot__fx="N"))
    assert "6 faults" in text
    assert "a wrench acts on 'foot', which is no body." in text
    for component in ("fy", "fz", "mx", "my", "mz"):
        assert f"there is no channel 'wrench.2.{component}'." in text


def test_channels_that_look_like_slips_of_the_pen_are_named():
    naming = Naming(arm(), named(q__q1="rad", q__q2="m", force__q_1="N*m", temperature="K"))
    with pytest.warns(DataWarning, match=r"1 channel\(s\) name no coordinate or motor of 'arm'(.|\n)*force\.q_1"):
        naming.check()
    assert naming.experiment.names == ("q.q1", "q.q2")


def test_measured_rates_are_left_aside_where_they_are_not_wanted():
    given = named(q__q1="rad", q__q2="m", qd__q1="rad/s")
    assert "qd.q1" in Naming(arm(), given).used
    assert "qd.q1" not in Naming(arm(), given, rates=False).used


def test_a_free_base_needs_its_rates():
    free = Machine.of_bodies([Body("1", None, "fixed")], base="free")
    text = refused(free, named(base__omega__x="rad/s", base__velocity__x="m/s"))
    assert "7 faults" in text and "'base.velocity.z'" in text and "'base.acceleration.x'" in text


def test_only_some_positions_may_be_asked_for() -> None:
    machine = palletizer()
    made = log(**{"q.q1": "rad", "q.q4": "rad", "qd.q3": "rad/s", "force.q2": "N*m"})
    assert measured_positions(machine, made) == ("q1", "q4")
    naming = Naming(machine, made, positions=("q1", "q4"))
    naming.check()
    assert set(naming.used) == {"q.q1", "q.q4", "force.q2"}
    with pytest.raises(DataError, match=r"no channel 'q\.q2'"):
        Naming(machine, made, positions=("q1", "q2")).check()
    geared = replace(machine, transmission=Transmission(("m",), ("q2",), np.array([[0.01]])))
    turned = Experiment({**made.channels, "q_motor.m": replace(made["q.q1"], name="q_motor.m")}, "run")
    assert measured_positions(geared, turned) == ("q1", "q2", "q4")


def test_many_joints_without_a_channel_are_one_fault():
    """Of a robot whose log has its arm alone; where nothing at all belongs to the machine each name is compared."""
    bodies = [Body("1"), *(Body(f"{k}", f"{k - 1}") for k in range(2, 8))]
    chain = Machine.of_bodies(bodies, name="chain")
    text = refused(chain, named(q__q1="rad", force__q1="N*m", q__q2="rad"))
    assert text.startswith("run.csv: 5 of 7 joints have no channel: q.q3, q.q4, q.q5, q.q6, ….") and "lock: [" in text
    assert "7 faults" in refused(chain, named(a="rad"))


TEN = from_centre(2.0, (0.2, 0.01, 0.0), np.diag([0.01, 0.03, 0.03]))


def channel(name: str, values: np.ndarray, unit: str) -> Channel:
    return Channel(name, T, values, unit)


def test_encoders_and_drives_are_positions_and_forces() -> None:
    sensors = [
        Sensor("coarse", "coordinate", "q1", 0.1),
        Sensor("fine", "coordinate", "q1", 1e-4, bias=0.5, delay=0.02, turns=True),
        Sensor("tacho", "rate", "q1", 1e-3),
    ]
    drives = [Drive("motor", "q1"), Drive("booster", "q1")]
    machine = Machine.of_bodies([Body("1", placement=MDH(alpha=np.pi / 2))], sensors=sensors, loads=drives)
    angle = 3.0 + 8.0 * T
    read = (angle + 0.5 + np.pi) % (2.0 * np.pi) - np.pi
    log = Experiment(
        {
            "coarse": channel("coarse", angle + 9.0, "rad"),
            "fine": Channel("fine", T + 0.02, read, "rad"),
            "tacho": channel("tacho", np.full(50, 8.0), "rad/s"),
            "motor": channel("motor", T, "N*m"),
            "booster": channel("booster", 2.0 * T, "N*m"),
        },
        "log",
    )
    found = with_sensor_channels(machine, log)
    q = found["q.q1"]
    np.testing.assert_allclose(q.t, T, atol=1e-12)
    np.testing.assert_allclose(q.values - q.values[0], angle - angle[0], atol=1e-12)  # modulo turns at the start
    np.testing.assert_array_equal(found["qd.q1"].values, 8.0)
    np.testing.assert_allclose(found["force.q1"].values, 3.0 * T)
    kept = log.replacing(channel("q.q1", angle, "rad"))
    np.testing.assert_array_equal(with_sensor_channels(machine, kept)["q.q1"].values, angle)


def test_an_inertial_unit_on_a_free_base_is_its_motion_whatever_its_mounting() -> None:
    """Readings of turned sensors against the motion of the base itself, which the integrator knows without any sensor."""
    turned = {"axis": (0.0, 1.0, 0.0), "side": (0.0, 0.0, 1.0)}
    sensors = [
        Sensor("gyro", "gyroscope", Marker("trunk", (0.3, 0.1, 0.0), **turned), 1e-3),
        Sensor("acc", "accelerometer", Marker("trunk", (0.0, 0.0, 0.0), **turned), 1e-2),
        Sensor("log", "velocity", Marker("trunk", (0.0, 0.0, 0.0), **turned), 1e-2),
        Sensor("far", "accelerometer", Marker("trunk", (0.3, 0.0, 0.0)), 1e-9),  # not the base's own acceleration
    ]
    machine = Machine.of_bodies([Body("trunk", None, "fixed")], base="free", inertia={"trunk": TEN}, sensors=sensors)
    push = Inputs(wrenches=lambda t, q, qd: {"trunk": [1.0, np.sin(3.0 * t), 20.0, 0.02, 0.01, np.cos(t)]})
    start = BaseState(quaternion=(0.9, 0.1, -0.4, 0.2), velocity=(1.0, -2.0, 0.5), omega=(0.5, -0.7, 0.4))
    run = Driven(0.5, 200.0, [], [], push, start).run(machine)
    ideal = record(machine, run, {"base.*": Imperfection()}, sensors=())
    log = exact_log(machine, run)
    assert not any(name.startswith("base.") for name in log)
    seen = with_sensor_channels(machine, log)
    for part in ("omega", "acceleration", "velocity"):
        for axis in "xyz":
            name = f"base.{part}.{axis}"
            np.testing.assert_allclose(seen[name].values, ideal[name].values, atol=1e-10)
    made = motion(machine, log)
    assert made.base is not None
    np.testing.assert_allclose(made.base.acceleration, run.motion.base.acceleration, atol=1e-10)


def exact_log(machine: Machine, run) -> Experiment:
    """The readings of the sensors alone, without noise."""
    wrench = {name: c for name, c in exact(machine, run).channels.items() if name.startswith("wrench.")}
    return Experiment({**exact_readings(machine, run, machine.sensors), **wrench}, "sensors")


T_USUAL = np.arange(200) / 100.0


def robot() -> Machine:
    return Machine.of_bodies([Body("a", coordinate="shoulder_pan"), Body("b", "a", coordinate="elbow")], name="robot")


def spaced_log(**units: str) -> Experiment:
    plain = {name.replace("__", " "): unit for name, unit in units.items()}
    return Experiment.from_arrays(T_USUAL, {n: np.sin(9.0 * T_USUAL + len(n)) for n in plain}, plain, "run.csv")


@pytest.mark.parametrize(
    "units",
    [
        {"q1": "rad", "q2": "m", "tau1": "N*m", "tau2": "N"},
        {"Pos_1": "rad", "Pos_2": "m", "Torque_1": "N*m", "Torque_2": "N"},
        {"position__1": "rad", "position__2": "m", "effort__1": "N*m", "effort__2": "N"},
    ],
)
def test_numbered_columns(units) -> None:
    found = with_usual_names(arm(), spaced_log(**units))
    assert set(found.names) == {"q.q1", "q.q2", "force.q1", "force.q2"}
    first = next(iter(units)).replace("__", " ")
    assert np.array_equal(found["q.q1"].values, spaced_log(**units)[first].values)


def test_columns_named_after_joints() -> None:
    found = with_usual_names(
        robot(), spaced_log(shoulder_pan="rad", elbow="rad", shoulder_pan_effort="N*m", elbow_effort="N*m")
    )
    assert set(found.names) == {"q.shoulder_pan", "q.elbow", "force.shoulder_pan", "force.elbow"}


def test_the_unit_decides_what_a_name_may_be() -> None:
    found = with_usual_names(arm(), spaced_log(q1="rad", q2="rad", tau1="A", tau2="A"))
    assert set(found.names) == {"q1", "q2", "tau1", "tau2"}  # q2 slides; currents are no forces
    half = with_usual_names(arm(), spaced_log(q1="rad", temperature="K"))
    assert set(half.names) == {"q1", "temperature"}  # one coordinate is missing


def test_two_ways_are_refused_and_both_are_named() -> None:
    with pytest.raises(DataError, match=r"several channels may be the forces[\s\S]*tau1, tau2; torque1, torque2"):
        with_usual_names(arm(), spaced_log(q1="rad", q2="m", tau1="N*m", tau2="N", torque1="N*m", torque2="N"))


def test_own_names_win() -> None:
    given = Experiment.from_arrays(
        T_USUAL,
        {"q.q1": T_USUAL, "q1": T_USUAL, "q2": T_USUAL},
        {"q.q1": "rad", "q1": "rad", "q2": "m"},
        "run.csv",
    )
    assert with_usual_names(arm(), given) is given


def test_a_csv_with_the_headers_of_the_readme_becomes_a_motion(tmp_path) -> None:
    file = tmp_path / "run.csv"
    rows = np.column_stack(
        [
            T_USUAL,
            np.sin(3 * T_USUAL),
            0.1 * np.cos(2 * T_USUAL),
            np.cos(3 * T_USUAL),
            2 * np.sin(T_USUAL),
        ]
    )
    head = "time [s],q1 [rad],q2 [m],tau1 [N*m],tau2 [N]"
    np.savetxt(file, rows, delimiter=",", header=head, comments="")
    motion = vd.motion(arm(), vd.load_log(file), vd.Signals(lowpass=20.0))
    assert motion.forces is not None and motion.forces[50, 0] == pytest.approx(np.cos(3 * motion.t[50]), abs=0.02)
