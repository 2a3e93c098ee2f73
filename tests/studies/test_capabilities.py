"""Every cell of the table of capabilities is run on a machine of its kind: it works, or raises the error that the cell lists.

Code that is made ahead is found by the verbs that need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veridyn as vd
from strangers.bicycle_drive import Bicycle
from strangers.machines import branched_arm, free_machine
from veridyn.errors import CapabilityError, VeridynError
from veridyn.files.machine.load import load_model
from veridyn.identify.regression.observation import stream
from veridyn.mechanics.formulated import formulated
from veridyn.mechanics.formulation import Ability
from veridyn.mechanics.tree.dynamics import formula
from veridyn.model.elements.element import Element, coulomb, drag, drive_gain, law, maxwell
from veridyn.model.experiment import Channel
from veridyn.model.single_track import CarNoise, PriorValue, car_machine
from veridyn.studies.capabilities import (
    METHODS,
    PARTS,
    capabilities,
    part_machines,
    shown_machines,
    some_motion,
    table,
    warm,
)

KINDS = tuple(shown_machines())
DRIVE = Bicycle(duration=6.0, rate=25.0)
READ = (vd.Sensor("yaw_rate", "reading", "yaw_rate", 0.003), vd.Sensor("ay", "reading", "ay", 0.1))
NOISE = {"force": 1.0, "acceleration": 1.0, "start": 0.1, "start_force": 1.0, "start_parameter": 0.1}
UNITS = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2"}
SOFT = {"coulomb", "stribeck"}


@cache
def machine(kind: str) -> vd.Machine:
    """The machine of a column, with sensors; friction that jumps is left out, so that short logs are smooth."""
    if kind == "single_track":
        tyres = {"front_stiffness": PriorValue(11.0, 4.0), "rear_stiffness": PriorValue(20.0, 6.0)}
        body = {"mass": DRIVE.mass, "front": DRIVE.front, "rear": DRIVE.rear, "yaw_inertia": DRIVE.inertia}
        return car_machine("car", {**body, **tyres}, sensors=READ)
    found = (
        two_joints()
        if kind == "tree"
        else two_joints().with_formulation("natural")
        if kind == "natural"
        else shown_machines()[kind]
    )
    found = found.without_elements([e.parameter_name for e in found.elements if e.kind in SOFT])
    encoders = [vd.Sensor(f"at_{c}", "coordinate", c, 1e-3) for c in found.coordinates]
    more = [vd.Sensor("place", "position", found.root, 1e-2), vd.Sensor("gyro", "gyroscope", found.root, 1e-3)]
    return found.with_sensors([*encoders, *(more if found.base == "free" else [])])


def two_joints() -> vd.Machine:
    """A small arm, which is computed in both formulations."""
    ten = [0.2, 0.0, 0.0, 0.2, 0.0, 0.1, 0.3, 0.0, 0.0, 2.0]
    bodies = [
        vd.model.Body("1", placement=vd.spatial.MDH(alpha=np.pi / 2)),
        vd.model.Body("2", "1", placement=vd.spatial.MDH(d=0.4)),
    ]
    return vd.Machine.of_bodies(
        bodies, name="small", inertia={"1": ten, "2": ten}, elements=[vd.elements.damper("q1", 0.5)]
    )


@cache
def log(kind: str) -> vd.Experiment:
    """A short log: released from rest, or a drive."""
    if kind == "single_track":
        d = DRIVE.drive(5)
        return vd.Experiment({n: Channel(n, d["t"], d[n], u) for n, u in UNITS.items()}, "drive")
    made = machine(kind)
    base = vd.dynamics.BaseState(omega=np.array([0.3, 0.2, 0.1])) if made.base == "free" else None
    fall = vd.manoeuvres.Driven(duration=0.1, rate=100.0, q=home(kind), qd=np.zeros(made.n), base=base)
    return vd.simulate(made, fall, rng=np.random.default_rng(1))


@cache
def motion(kind: str) -> vd.Motion:
    """A smooth motion of two periods with the forces that it takes, and a little noise of them; of a free base, a simulated one."""
    made, rng = machine(kind), np.random.default_rng(2)
    t = np.arange(800) / 100.0
    if kind == "single_track":
        return vd.Motion(t, *(np.zeros((len(t), made.n)) for _ in range(3)))
    if made.base == "free":
        pushed = vd.dynamics.Inputs(lambda time, *_: np.array([0.3 * np.sin(3.0 * time)]))
        base = vd.dynamics.BaseState(omega=np.array([0.3, 0.2, 0.1]))
        found = vd.dynamics.integrate(made, t, [0.1], [0.0], pushed, base=base).motion
        forces = np.asarray(found.forces)
        return replace(found, forces=forces + 1e-3 * rng.standard_normal(forces.shape))
    n = len(made.independent)
    w, phase, size = 2.0 * np.pi * np.array([0.5, 1.25]), rng.uniform(0, 6, (2, n)), rng.uniform(0.1, 0.3, (2, n))
    angle = w[:, None, None] * t[:, None] + phase[:, None]
    waves = (np.sin(angle), np.cos(angle), -np.sin(angle))
    q, qd, qdd = (np.einsum("kn,ktn->tn", size * w[:, None] ** d, wave) for d, wave in enumerate(waves))
    if made.closed:
        whole = vd.dynamics.closed_motion(made, t, home(kind)[list(made.independent)] + q, qd, qdd)
        q, qd, qdd = whole.q, whole.qd, whole.qdd
    still = vd.Motion(t, q, qd, qdd)
    forces = np.full((len(t), made.n), np.nan)
    forces[:, list(made.independent)] = vd.inverse_dynamics(made, still) + 1e-3 * rng.standard_normal((len(t), n))
    return replace(still, forces=forces)


def home(kind: str) -> np.ndarray:
    made = machine(kind)
    return vd.dynamics.closed_home(made) if made.closed else np.zeros(made.n)


def identified(kind: str, method: str) -> object:
    made = machine(kind)
    if kind == "single_track":
        return vd.identify(made, log(kind), method)
    words = {
        "iv": vd.estimators.Instrumental(reference="measured"),
        "likelihood": vd.estimators.Likelihood(frequency=0.25),
        "oe": vd.estimators.OutputError(horizon=0.2),
    }
    m = motion(kind)[:120] if method == "oe" else motion(kind)  # each of its trials simulates the whole
    return vd.identify(made, m, words.get(method, method), diagnose="off")


def designed(kind: str, _: str) -> object:
    made = machine(kind)
    n = len(made.independent) if made.closed else made.n
    limits = vd.signals.JointLimits([-0.3] * n, [0.3] * n, [1.0] * n, [5.0] * n)
    return vd.design_excitation(made, limits, vd.Fourier(harmonics=2, frequency=0.5), starts=1)


def simulated(kind: str, _: str) -> object:
    """Released from rest, as the logs are; a car steered."""
    if kind != "single_track":
        return log(kind)
    drive = vd.manoeuvres.Steered(1.0, 50.0, 15.0, 0.02)
    return vd.simulate(machine(kind), drive, rng=np.random.default_rng(3))


def forward(kind: str, _: str) -> object:
    m = motion(kind)[:3]
    return vd.dynamics.forward_dynamics(machine(kind), replace(m, forces=np.nan_to_num(m.forces, nan=0.0)))


def observed(kind: str, method: str, **more: Any) -> object:
    """With stated noise, so that none is searched for."""
    how = {} if kind == "single_track" else {"process_noise": vd.ProcessNoise(**NOISE), "step": 0.01}
    return vd.observe(machine(kind), log(kind), method, vd.ObserveSettings(**how, **more))


def validated(kind: str, by: str) -> object:
    if kind == "single_track":
        return vd.validate(machine(kind), log(kind), by=by)
    return vd.validate(machine(kind), motion(kind)[:60], by=by)


def streamed(kind: str, method: str) -> object:
    """The first two samples of the log, one by one."""
    if kind == "single_track":
        observer = vd.Observer(machine(kind), method, vd.ObserveSettings(process_noise=CarNoise()))
        observer.step(0.0, {"yaw_rate": 0.0}, [20.0, 0.0])
    else:
        observer = vd.Observer(
            machine(kind), method, vd.ObserveSettings(process_noise=vd.ProcessNoise(**NOISE), step=0.01)
        )
        for k in range(2):
            read = {n: float(log(kind)[n].values[k]) for n in observer.system.outputs}
            observer.step(0.01 * k, read)
    return observer.belief


def prepared(kind: str, _: str) -> object:
    """The motion of a log of positions."""
    if kind == "single_track":
        return vd.motion(machine(kind), log(kind))
    made, m = machine(kind), motion(kind)
    read = {f"q.{c}": m.q[:, k] for k, c in enumerate(made.coordinates)}
    if m.base is not None:
        read |= {f"base.omega.{a}": m.base.omega[:, k] for k, a in enumerate("xyz")}
        read |= {f"base.acceleration.{a}": m.base.acceleration[:, k] for k, a in enumerate("xyz")}
    units = {n: "rad" if n.startswith("q.") else "rad/s" if "omega" in n else "m/s^2" for n in read}
    return vd.motion(made, vd.Experiment.from_arrays(m.t, read, units))


CALLS: dict[str, Callable[[str, str], object]] = {
    "motion": prepared,
    "validate": validated,
    "Observer": streamed,
    "inverse_dynamics": lambda kind, _: vd.inverse_dynamics(machine(kind), motion(kind)),
    "forward_dynamics": forward,
    "regressor": lambda kind, _: vd.regressor(machine(kind), motion(kind)),
    "base_parameters": lambda kind, _: vd.base_parameters(machine(kind)),
    "design_excitation": designed,
    "c_source": lambda kind, _: vd.dynamics.c_source(machine(kind)),
    "simulate": simulated,
    "identify": identified,
    "observe": lambda kind, method: observed(kind, method),
    "observe, parameters estimated": lambda kind, method: observed(kind, method, parameters=estimated(kind)),
}


def estimated(kind: str) -> list[str]:
    names = machine(kind).parameters.names
    return ["front_stiffness"] if kind == "single_track" else [next(n for n in names if n.startswith("M"))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("verb", "method"), [(verb, m) for verb, methods in METHODS.items() for m in methods])
def test_a_cell_is_true(kind: str, verb: str, method: str) -> None:
    cell = capabilities(machine(kind))[verb, method]
    if cell.limit is None:
        assert CALLS[verb](kind, method) is not None
        return
    with pytest.raises(CapabilityError) as caught:
        CALLS[verb](kind, method)
    assert caught.value.reason == cell.limit.reason


SIX = ("fx", "fy", "fz", "mx", "my", "mz")
MASS = "M1"
UNIT_OF = {"rate": "rad/s", "specific": "m/s^2", "qd": "rad/s", "qdd": "rad/s^2"}


def moved(kind: str, elements: Sequence[Element] = (), speed: float = 0.0, **inputs: Any) -> object:
    """A machine of the second table with further elements, for two samples."""
    made = part_machines()[kind].with_elements(elements)
    led = {"prescribed": lambda t: dict.fromkeys(made.prescribed, (0.0, 0.0, 0.0))} if made.prescribed else {}
    acting = vd.dynamics.Inputs(**led, **inputs)
    method = vd.dynamics.Method("RK4", step=5e-3, friction_speed=speed)
    return vd.manoeuvres.Driven(0.02, 100.0, np.zeros(made.n), np.zeros(made.n), acting, method=method).run(made)


def watched(
    kind: str, method: Any = "ekf", uncertain: bool = False, channels: Sequence[str] = (), **more: Any
) -> object:
    """A machine of the second table observed for three samples."""
    made = part_machines()[kind]
    sensors = [vd.Sensor("at_q1", "coordinate", "q1", 1e-3), vd.Sensor("rate", "gyroscope", "1", 1e-2)]
    made = made.with_sensors([*sensors, vd.Sensor("specific", "accelerometer", vd.Marker("1", (0.0, 0.0, 0.0)), 1e-2)])
    if uncertain:
        made = made.with_uncertainty(vd.model.Uncertainty((MASS,), np.eye(1)))
    names = ["at_q1", *(f"rate.{a}" for a in "xyz"), *(f"specific.{a}" for a in "xyz"), *channels]
    names += [f"{symbol}.{c}" for symbol in ("q", "qd", "qdd") for c in made.prescribed]
    t = np.arange(3) / 100.0
    log = vd.Experiment({n: Channel(n, t, np.zeros(3), UNIT_OF.get(n.partition(".")[0], "rad")) for n in names}, "rest")
    noise = vd.ProcessNoise(**NOISE)
    return vd.observe(made, log, method, vd.ObserveSettings(process_noise=noise, step=0.01, model_error="off", **more))


HAVING: dict[str, Callable[[str], object]] = {
    "estimated parameters": lambda kind: watched(kind, parameters=[MASS]),
    "considered parameters": lambda kind: watched(kind, uncertain=True),
    "considered parameters in an unscented filter": lambda kind: watched(kind, "ukf", uncertain=True),
    "attitude rows": lambda kind: watched(kind, vd.filters.ErrorEKF(accelerometer="attitude")),
    "wrenches": lambda kind: watched(kind, channels=[f"wrench.1.{row}" for row in SIX]),
    "tyres": lambda kind: load_model("veridyn:buggy.yaml").with_formulation(kind.partition(",")[0]),
    "prescribed coordinates": moved,
    "signals": lambda kind: moved(kind, [drive_gain("q1", "i", 1.0)], signals=lambda *_: {"i": 1.0}),
    "laws of measured signals": lambda kind: moved(
        kind, [law("q1", "c*signal(i)", 1.0)], signals=lambda *_: {"i": 1.0}
    ),
    "dry friction, rounded off": lambda kind: moved(kind, [coulomb("q1", 1.0)], 0.05),
    "dry friction that holds": lambda kind: moved(kind, [coulomb("q1", 1.0)]),
    "elements with states of their own": lambda kind: moved(kind, [maxwell("q1", 1.0, 1.0)]),
    "laws of a body's motion": lambda kind: moved(kind, [drag("2.fx", 1.0)]),
    "control laws": lambda kind: (
        kind == "tree" or moved(kind, sampled=object())
    ),  # of trees in tests/simulate/test_commanded.py
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", tuple(part_machines()))
@pytest.mark.parametrize("part", PARTS)
def test_a_cell_of_what_machines_may_have_is_true(kind: str, part: Ability) -> None:
    limit = formulated(part_machines()[kind]).capabilities[part]
    if limit is None:
        assert HAVING[part](kind) is not None
        return
    with pytest.raises(CapabilityError) as caught:
        HAVING[part](kind)
    assert (caught.value.reason, caught.value.instead) == limit


def test_the_page_is_what_the_command_prints() -> None:
    page = Path(__file__).parents[2] / "docs" / "capabilities.md"
    rows = {heading: capabilities(shown) for heading, shown in shown_machines().items()}
    assert page.read_text(encoding="utf-8") == table(rows) + "\n"


def test_a_row_in_words_says_what_to_use() -> None:
    text = capabilities(machine("single_track")).summary()
    assert "identify wls" in text and "Use 'innovations'" in text


def test_what_is_no_machine_is_refused() -> None:
    with pytest.raises(VeridynError, match="it is no machine"):
        vd.capabilities("arm.yaml")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ["branched", "free", "veridyn:palletizer.yaml"])
def test_the_equations_are_there_afterwards(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of few samples takes the reference unless its code is there; what is there afterwards is not made again."""
    machine = {"branched": branched_arm, "free": free_machine}.get(name, lambda: load_model(name))()
    labels: list[str] = []
    warm(machine, lambda label, done, total: labels.append(label))
    assert labels[0] == "compiling: equations of the rows" and labels[-1] == "compiling"

    def refused(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(formula, "formula", refused)
    assert stream(machine, some_motion(machine)).plan.compile
    assert stream(machine, some_motion(machine)).observe().samples > 0
