"""A mechanism made ready, and how its equations depend on parameters, by finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from strangers.natural_mechanisms import fourbar
from veridyn.errors import DataError, ModelError
from veridyn.files.access import shipped
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.position import start_of
from veridyn.mechanics.natural.equations.system import slopes_of, system_of, with_parameter_slopes
from veridyn.mechanics.natural.steps.minimal import Minimal, minimal
from veridyn.model.elements.element import motor_inertia, offset, spring, strut
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty
from veridyn.model.place import Marker
from veridyn.observe.filters.methods import EKF
from veridyn.observe.observation import Virtual, quantity_of
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings

PLANAR = ("ZZ", "MX", "MY", "M")


def test_everything_has_the_size_of_the_coordinates() -> None:
    system = system_of(fourbar())
    assert system.n == 5 == len(system.coordinates) == len(system.guess)
    assert system.mass.shape == (5, 5)
    assert system.constraints.m == 4
    assert system.select(["phi", "1.x"]).tolist() == [4, 0]
    # Appendix A.3.1 of paper 003: thirds and sixths of the masses of uniform bars.
    expected = np.zeros((5, 5))
    expected[:2, :2] = (2 / 3 + 8 / 3) * np.eye(2)
    expected[2:4, 2:4] = (8 / 3 + 5 / 3) * np.eye(2)
    expected[:2, 2:4] = expected[2:4, :2] = 8 / 6 * np.eye(2)
    assert system.mass == pytest.approx(expected, abs=1e-14)
    assert system.forces.weight[:5] == pytest.approx(9.806 * np.array([0, -5.0, 0, -6.5, 0]))


def test_wrong_vectors_and_names() -> None:
    system = system_of(fourbar())
    with pytest.raises(DataError, match=r"(?s)no pose of this mechanism.*\(5,\) finite, found shape \(4,\)"):
        system.vector(np.zeros(4), "pose")
    with pytest.raises(DataError, match="values that are not finite"):
        system.vector(np.full(5, np.nan), "pose")
    with pytest.raises(ModelError, match="no coordinate 'x'"):
        system.select(["x"])


def shipped_fourbar() -> Machine:
    return vd.load_model(shipped("veridyn:fourbar.yaml"))


def sprung() -> Machine:
    """The four-bar with a spring, a motor inertia and an offset on its crank, and a damper between two bars."""
    made = vd.load_model(shipped("veridyn:linkage.yaml"))
    plain = made.without_elements(made.element_names)
    more = [spring("q1", 20.0, "k1"), motor_inertia("q1", 0.4, "Ia1"), offset("q1", 3.0, "off1")]
    names = made.body_names
    ends = Marker(names[0], (0.05, 0.0, 0.0)), Marker(names[2], (0.04, 0.0, 0.0))
    return plain.with_elements([*more, strut("damper", *ends, 5.0, "c13"), strut("spring", *ends, 30.0, "k13")])


CASES = {
    "four-bar": (shipped_fourbar, [f"{s}_{b}" for b in ("crank", "rod", "rocker") for s in PLANAR], {"phi": 1.3}),
    "with elements": (sprung, ["k1", "Ia1", "off1", "c13", "k13"], {"q1": 1.3}),
    "crane": (
        lambda: vd.load_model(shipped("veridyn:crane.yaml")),
        ["M_trolley", "M_load", *(f"{s}_rope" for s in PLANAR), "rail_friction"],
        {"x": 0.4, "swing": 1.2},
    ),
}


def known(machine: Machine, names: list[str]) -> Machine:
    return machine.with_uncertainty(Uncertainty(tuple(names), np.eye(len(names))))


def changed(machine: Machine, name: str, by: float) -> Machine:
    return machine.with_parameters({name: machine.parameters[name] + by})


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_accelerations_multipliers_and_steps_against_other_values(case) -> None:
    """Central differences over a thousandth: off by the square of that, with which M⁻¹ depends on a parameter."""
    made, names, rates = case
    machine = made()
    system = with_parameter_slopes(system_of(mechanism_of(machine)), known(machine, names))
    q, qd = start_of(system, None, rates)
    model = minimal(system, q, tuple(rates), None, names)
    z, zd, u = q[model.z], qd[model.z], np.zeros(len(model.unknown))
    first = 2 * model.f + len(u)
    both = np.append(u, machine.parameters.values[[machine.parameters.index(n) for n in names]])
    at, after = (
        model.instant(q, z, zd, both, model.loads()),
        model.step(q, z, zd, both, 0.01, model.loads()),
    )
    for k, name in enumerate(names):
        h = 1e-3 * max(abs(machine.parameters[name]), 0.05)
        ends, steps = [], []
        for way in (h, -h):
            other = minimal(system_of(mechanism_of(changed(machine, name, way))), q, model.names, model.unknown)
            ends.append(other.instant(q, z, zd, u, other.loads()))
            steps.append(other.step(q, z, zd, u, 0.01, other.loads()))
        size = float(np.abs(at.qdd_x[:, first + k]).max())
        slope = (ends[0].qdd - ends[1].qdd) / (2.0 * h)
        assert at.qdd_x[:, first + k] == pytest.approx(slope, abs=1e-5 * size + 1e-11), name
        slope = (ends[0].multipliers - ends[1].multipliers) / (2.0 * h)
        size = float(np.abs(slope).max())
        assert at.multipliers_x[:, first + k] == pytest.approx(slope, abs=1e-5 * size + 1e-9), name
        slope = _moved(model, steps[0]) - _moved(model, steps[1])
        size = float(np.abs(after.F[:, first + k]).max())
        assert after.F[:, first + k] == pytest.approx(slope / (2.0 * h), abs=1e-5 * size + 1e-11), name


def _moved(model: Minimal, at) -> np.ndarray:
    return np.concatenate([at.q[model.z], at.qd[model.z]])


@pytest.mark.parametrize(
    ("made", "names", "wanted"),
    [
        (shipped_fourbar, ["M_rod", "MX_crank", "ZZ_rocker"], Virtual("pin", "reaction", ("rod", "1"))),
        (sprung, ["k13", "c13"], Virtual("pull", "spring", "k13")),
    ],
)
def test_virtual_sensors_depend_on_parameters_directly_too(made, names: list[str], wanted: Virtual) -> None:
    """The force in a pin by masses, the tension of a spring by its stiffness: at one state, against machines with other values."""
    machine = made()
    coordinate = next(iter(CASES["four-bar" if made is shipped_fourbar else "with elements"][2]))
    setup = ObserverSetup(
        EKF(),
        ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(acceleration=1.0),
            independents=(coordinate,),
            unknown=(),
            rates={coordinate: 1.3},
            start={coordinate: 0.9},
        ),
    )
    sensed = machine.with_formulation("natural").with_sensors([vd.Sensor("encoder", "coordinate", coordinate, 1e-3)])
    system, q, qd = setup.system(known(sensed, names))
    x = system.belief(q, qd).x
    _, G = quantity_of(system, wanted).at(x, system.instant(x, np.zeros(0)), np.zeros(0))
    for k, name in enumerate(names):
        h, ends = 1e-3 * max(abs(machine.parameters[name]), 0.05), []
        for way in (h, -h):
            other = setup.system(changed(sensed, name, way))[0]
            y = other.belief(q, qd).x
            ends.append(quantity_of(other, wanted).at(y, other.instant(y, np.zeros(0)), np.zeros(0))[0])
        slope = (ends[0] - ends[1]) / (2.0 * h)
        assert G[:, 2 * system.f + k] == pytest.approx(slope, rel=1e-5, abs=1e-8), name


def test_a_spatial_body_is_carried_whole() -> None:
    """M is the sum of its parameters' shares, and the weight too, for every body of a machine in space."""
    machine = vd.load_model(shipped("veridyn:arm.yaml"))
    plain = machine.without_elements(machine.element_names).with_formulation("natural")
    system = system_of(mechanism_of(plain))
    p = plain.parameters
    slopes = slopes_of(system, plain, p.names)
    assert np.einsum("i,ijk->jk", p.values, slopes.mass) == pytest.approx(system.mass, abs=1e-9)
    assert p.values @ slopes.force == pytest.approx(system.forces.weight[:-1], abs=1e-9)


def test_what_cannot_be_carried_is_refused_by_name() -> None:
    crane = vd.load_model(shipped("veridyn:crane.yaml"))
    for name in ("ZZ_load", "MX_trolley"):
        with pytest.raises(ModelError, match=f"cannot carry '{name}'"):
            with_parameter_slopes(system_of(mechanism_of(crane)), known(crane, [name]))
    linkage = sprung()
    rest = replace(next(e for e in linkage.elements if e.parameter_name == "k13"), constants={"rest": 0.3})
    resting = replace(linkage, elements=(*linkage.elements[:-1], rest))
    loose = resting.with_uncertainty(Uncertainty(("k13.rest",), np.eye(1)))
    with pytest.raises(ModelError, match=r"constant 'k13.rest' cannot be considered in natural coordinates"):
        with_parameter_slopes(system_of(mechanism_of(resting)), loose)
