"""What acts on a machine is taken from its log by the same names in both formulations, or refused or reported by name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import veridyn as vd
from veridyn.errors import DataWarning, ModelError
from veridyn.files.access import shipped
from veridyn.mechanics.natural.channels import motor_names, with_motor_inputs
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.machine import Machine
from veridyn.model.place import Attachment, Marker
from veridyn.observe.pipeline import inputs_in
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement

MASS, LENGTH, INERTIA, G = 1.0, 0.5, 0.08, 9.81
SIGMA = 1e-3  # rad
LEVEL = Placement([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # its z along the ground's −y
T = 0.01 * np.arange(301)
TORQUE = 3.0 * np.sign(np.sin(5.0 * T + 0.1))  # N*m, held from sample to sample


def pendulum(*loads, formulation: str = "tree") -> Machine:
    """A rod on a horizontal motor, its angle measured."""
    rod = vd.Link(name="rod", inertia=from_centre(MASS, (LENGTH, 0, 0), np.diag([1e-3, INERTIA, INERTIA])))
    hinge = vd.Joint(name="phi", a=Attachment("ground", LEVEL), b="rod", actuated=True)
    encoder = vd.Sensor("encoder", "coordinate", "phi", SIGMA)
    return Machine.build([rod], [hinge], name="pendulum", loads=loads, sensors=[encoder], formulation=formulation)


@cache
def swing() -> np.ndarray:
    """(m l² + I) φ̈ = −m g l cos φ + τ, with z of the joint along −y so that φ counts upwards from x; by SciPy alone."""
    out, state = [[0.3, 0.0]], np.array([0.3, 0.0])
    for a, b, torque in zip(T, T[1:], TORQUE, strict=False):

        def rate(_, y, torque=torque):
            return [y[1], (torque - MASS * G * LENGTH * np.cos(y[0])) / (INERTIA + MASS * LENGTH**2)]

        state = solve_ivp(rate, (a, b), state, rtol=1e-10, atol=1e-12).y[:, -1]
        out.append(state)
    return np.array(out)


def log(name: str, *more: Channel) -> Experiment:
    angle = swing()[:, 0] + SIGMA * np.random.default_rng(3).standard_normal(len(T))
    channels = [Channel("encoder", T, angle, "rad"), Channel(name, T, TORQUE, "N*m"), *more]
    return Experiment({c.name: c for c in channels}, "bench.csv")


HOW = vd.ObserveSettings(
    model_error="off", process_noise=vd.ProcessNoise(acceleration=1e-6), unknown=(), start={"phi": 0.3}, step=0.002
)


@pytest.mark.parametrize("formulation", ["tree", "natural"])
@pytest.mark.parametrize("channel", ["motor", "force.phi"])
def test_the_torque_of_a_motor_is_used_in_both_formulations(channel: str, formulation: str) -> None:
    """Its own name where it is a drive, force.phi where it is not; ignored, the same log has a NIS above 10,000."""
    loads = [Drive("motor", "phi")] if channel == "motor" else []
    found = vd.observe(pendulum(*loads, formulation=formulation), log(channel), "ekf", HOW)
    assert found.system.inputs == (channel,)
    assert found.nis().consistent
    off = found.state("phi") - swing()[:, 0]
    assert np.sqrt(np.mean(off[50:] ** 2)) < SIGMA
    blind = inputs_in(pendulum(*loads, formulation=formulation), ["encoder"], "bench.csv")
    assert blind == ()


def test_an_input_is_added_to_what_a_drive_does_in_both_formulations() -> None:
    """A drive with a value of its own and a measured force on the same coordinate act together."""
    steady = Drive("weight", "phi", 1.5)
    whole = log("force.phi")
    rest = Channel("force.phi", T, TORQUE - 1.5, "N*m")
    half = Experiment({"encoder": whole["encoder"], "force.phi": rest})
    states = [vd.observe(pendulum(steady, formulation=f), half, "ekf", HOW) for f in ("tree", "natural")]
    assert states[0].nis().consistent
    assert np.abs(states[0].state("phi") - states[1].state("phi")).max() < 0.05 * SIGMA


@pytest.mark.parametrize("formulation", ["tree", "natural"])
def test_components_of_loads_have_the_names_of_their_axes(formulation: str) -> None:
    push = Force("push", Marker("rod", (1.0, 0.0, 0.0)), (0.0, 0.0, 0.0))
    names = ("push.x", "push.y", "push.z")
    machine = pendulum(push, formulation=formulation)
    assert inputs_in(machine, ("encoder", *names), "") == names
    # τ = 1 m · F across the rod, in the ground's axes along (−sin φ, 0, cos φ)
    phi = swing()[:, 0]
    along = {"push.x": -TORQUE * np.sin(phi), "push.y": 0.0 * phi, "push.z": TORQUE * np.cos(phi)}
    channels = {"encoder": log("none")["encoder"], **{n: Channel(n, T, v, "N") for n, v in along.items()}}
    found = vd.observe(
        machine,
        Experiment(channels),
        "ekf",
        replace(HOW, process_noise=vd.ProcessNoise(acceleration=1e-2)),
    )
    assert found.system.inputs == names
    assert np.sqrt(np.mean((found.state("phi") - phi)[50:] ** 2)) < 2.0 * SIGMA


def test_a_torque_in_the_plane_has_the_name_of_its_axis_too() -> None:
    rod = vd.Link(name="rod", inertia=from_centre(1.0, (0.5, 0, 0), np.diag([0.0, 0.08, 0.08])))
    hinge = vd.Joint(name="phi", a="ground", b="rod")
    brake = Torque("brake", "rod", 0.0)
    machine = Machine.build([rod], [hinge], loads=[brake], dimension=2, formulation="natural")
    assert inputs_in(machine, ("brake.z",), "") == ("brake.z",)
    assert inputs_in(machine, ("brake", "brake.z"), "") == ("brake",)
    places = natural_system(machine).forces.places
    assert places["brake"] == places["brake.z"]


def test_what_natural_coordinates_cannot_take_is_refused_by_name() -> None:
    bare = vd.load_model(shipped("veridyn:fourbar.yaml"))
    moved = replace(bare, joints=tuple(replace(j, actuated=True) if j.name == "B" else j for j in bare.joints))
    with pytest.raises(ModelError, match=r"(?s)has no input 'force\.B'.*added angle"):
        with_motor_inputs(moved, ["force.B"])
    with pytest.raises(ModelError, match=r"there is no input 'force\.phy'"):
        with_motor_inputs(pendulum(formulation="natural"), ["force.phy"])
    assert motor_names(pendulum()) == ("force.phi",)


@pytest.mark.parametrize("formulation", ["tree", "natural"])
def test_a_channel_that_acts_on_nothing_is_reported(formulation: str) -> None:
    names = ["encoder", "force.phi", "force.elbow"]
    with pytest.warns(DataWarning, match=r"(?s)bench\.csv: these channels.*act on nothing.*force\.elbow"):
        assert inputs_in(pendulum(formulation=formulation), names, "bench.csv") == ("force.phi",)
    with pytest.warns(DataWarning, match=r"wrench\.rod\.fx"):  # one of six
        inputs_in(pendulum(), ["encoder", "force.phi", "wrench.rod.fx"], "bench.csv")


def test_a_sensor_of_the_name_of_a_motor_is_no_torque() -> None:
    """Natural coordinates call the drive of a motor by its coordinate; a reading of that name stays a reading."""
    machine = pendulum(formulation="natural")
    named = machine.with_sensors([vd.Sensor("phi", "coordinate", "phi", SIGMA)])
    assert inputs_in(named, ("phi",), "") == ()
