from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import DataError, DataWarning
from veridyn.machines.parallel import palletizer
from veridyn.model.body import Body
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.transmission import Transmission
from veridyn.signals.naming import Naming, measured_positions, unit_faults

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
