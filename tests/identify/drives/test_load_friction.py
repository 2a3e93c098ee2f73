"""A servo that lifts a constant load through a gear whose friction grows with its force, by the closed form of its motion, tick by tick."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import veridyn as vd
from veridyn.errors import DataError
from veridyn.identify.drives.drive_log import drive_records
from veridyn.identify.drives.drive_result import replayed

Array = NDArray[np.float64]
INERTIA, LINK, VISCOUS, DRY, WEIGHT = 0.012, 0.008, 0.05, 0.3, 1.5  # kg m² of drive and link, N m s/rad, N m, N m
KP, KD, RATE, NOISE = 20.0, 0.6, 1000, 1e-4
TICKS = 8 * RATE


def command() -> Array:
    """Slow and fast reversals, held every 5 ms."""
    t = np.arange(TICKS + 1) / RATE
    path = 0.5 * np.sin(1.3 * t) + 0.25 * np.sin(2.0 * np.pi * 0.9 * t) + 0.12 * np.sin(2.0 * np.pi * 3.0 * t + 0.4)
    return np.repeat(path[::5], 5)[: TICKS + 1]


def slide(q: float, v: float, push: float, h: float) -> tuple[float, float]:
    """m v̇ = push − d v after h seconds."""
    rate, end = VISCOUS / (INERTIA + LINK), push / VISCOUS
    fade = np.exp(-rate * h)
    return q + end * h + (v - end) * (1.0 - fade) / rate, end + (v - end) * fade


def by_closed_form(load: float, backdrive: float, weight: float = WEIGHT) -> Array:
    """Friction DRY + load |Γ|, and backdrive |Γ| more where Γ acts against the motion; it holds what it can."""
    q, v, out = 0.0, 0.0, []
    for r in command().tolist():
        out.append(q)
        force, left = KP * (r - q) - KD * v, 1.0 / RATE
        limit = {way: DRY + abs(force) * (load + (backdrive if force * way < 0.0 else 0.0)) for way in (1.0, -1.0)}
        push = force - weight
        if v != 0.0:
            way = float(np.sign(v))
            end = (push - way * limit[way]) / VISCOUS
            stop = np.log((v - end) / -end) * (INERTIA + LINK) / VISCOUS if end * way < 0.0 else np.inf
            if stop < left:
                q, v, left = slide(q, v, end * VISCOUS, stop)[0], 0.0, left - stop
            else:
                q, v = slide(q, v, end * VISCOUS, left)
                continue
        way = float(np.sign(push))
        if abs(push) > limit[way]:
            q, v = slide(q, v, push - way * limit[way], left)
    return np.array(out)


def servo(weight: float = WEIGHT) -> vd.Machine:
    elements = [
        vd.elements.motor_inertia("arm", 0.02, "Ia"),
        vd.elements.damper("arm", 0.1, "h"),
        vd.elements.coulomb("arm", 0.4, "fs"),
        vd.elements.offset("arm", weight, "weight"),
    ]
    return vd.Machine.of_bodies(
        [vd.model.Body("arm")],
        name="servo",
        gravity=(0.0, 0.0, 0.0),
        inertia={"arm": [LINK, 0, 0, LINK, 0, LINK, 0, 0, 0, 0.2]},
        elements=elements,
    )


def recorded(path: Array) -> vd.Experiment:
    rng = np.random.default_rng(5)
    t = np.arange(0, TICKS + 1, 5) / RATE
    values = {"command.arm": command()[::5], "position.arm": path[::5] + rng.normal(0.0, NOISE, len(t))}
    return vd.Experiment.from_arrays(t, values, dict.fromkeys(values, "rad"), "servo")


def identified(load: float, backdrive: float) -> vd.estimators.DrivesFit:
    fit = vd.identify(servo(), recorded(by_closed_form(load, backdrive)), vd.estimators.Drives(kp=KP, kd=KD))
    assert isinstance(fit, vd.estimators.DrivesFit)
    return fit


def kept(fit: vd.estimators.DrivesFit) -> set[str]:
    return {t.term for t in fit.terms if t.kept}


def true_machine(load: float, backdrive: float) -> vd.Machine:
    """The servo with the values that the closed form has."""
    values = {"Ia": INERTIA, "h": VISCOUS, "fs": DRY}
    constants = {"kp": KP, "kd": KD, "load_friction": load, "backdrive_friction": backdrive}
    drive = vd.model.Controller(name="arm_drive", kind="pd", on="arm", rate=float(RATE), constants=constants)
    return servo().with_parameters(values).with_controllers([drive])


class Held:
    """The command as drives read it: held, without a rate."""

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        r = command()[np.clip(np.round(t * RATE).astype(int), 0, TICKS)][:, None]
        return r, np.zeros_like(r), np.zeros_like(r)


@pytest.mark.parametrize(("load", "backdrive"), [(0.0, 0.0), (0.2, 0.0), (0.1, 0.25), (0.2, -0.15)])
def test_simulations_are_the_closed_form(load: float, backdrive: float) -> None:
    machine, path = true_machine(load, backdrive), by_closed_form(load, backdrive)
    follow = vd.manoeuvres.Commanded(Held(), duration=TICKS / RATE, rate=200.0, q=[0.0])
    # RK4 in a tick of 1 ms is exact to (h d/m)⁵/120 of a speed, 3e-15; instants of stops are found to 1e-9 of the speeds around.
    assert np.abs(follow.run(machine).motion.q[:, 0] - path[::5]).max() < 1e-7
    # The midpoint rule of the fits is exact to h² d²/(6 m²) of a speed, 1e-6.
    replay = replayed(machine, drive_records(machine, recorded(path))[0])
    assert np.abs(replay.simulated[:, 0] - path[::5]).max() < 1e-5 + abs(replay.measured[0, 0])


@pytest.fixture(scope="module")
def loaded() -> vd.estimators.DrivesFit:
    return identified(0.2, 0.0)


def test_friction_by_load_is_found(loaded: vd.estimators.DrivesFit) -> None:
    assert kept(loaded) == {"load_friction"}
    for name, true in {"arm_drive.load_friction": 0.2, "fs": DRY, "Ia": INERTIA}.items():
        one = loaded.drive(name)
        assert one.determined and abs(one.value - true) < 3.0 * one.sigma, name
    # What is left is the noise of the encoder.
    assert loaded.replay.rms_of_all() < 1.2 * NOISE
    assert "arm (load)" in " ".join(loaded.notes)


def test_more_of_it_in_the_backdriven_gear_is_found_where_gains_are_known() -> None:
    """With gains that are free, (1 − μ) kp and (1 + μ + μ_b) kp are two numbers of three: 1.125 kp and μ = 0.2 are the same motion."""
    log, wide = recorded(by_closed_form(0.1, 0.25)), identified(0.1, 0.25)
    assert kept(wide) == {"load_friction"} and wide.drive("arm_drive.kp").value == pytest.approx(1.125 * KP, rel=1e-3)
    assert wide.drive("arm_drive.load_friction").value == pytest.approx(0.2, rel=0.01)
    assert not wide.drive("arm_drive.kp").determined
    # Under one load the backdriven gear is friction of its own in one direction; under its opposite in the other one.
    gains = {"kp": KP, "kd": KD}
    sigma = {key: 1e-3 * x for key, x in gains.items()}
    drive = vd.model.Controller(name="arm_drive", kind="pd", on="arm", rate=float(RATE), constants=gains, sigma=sigma)
    machines = [servo(weight).with_controllers([drive]) for weight in (WEIGHT, -WEIGHT)]
    runs = tuple(vd.estimators.DriveRun(machine=machine) for machine in machines)
    logs = [log, recorded(by_closed_form(0.1, 0.25, -WEIGHT))]
    fit = vd.identify(machines[0], logs, vd.estimators.Drives(runs=runs))
    assert isinstance(fit, vd.estimators.DrivesFit) and kept(fit) == {"load_friction", "backdrive_friction"}
    for name, true in {"arm_drive.load_friction": 0.1, "arm_drive.backdrive_friction": 0.25, "fs": DRY}.items():
        one = fit.drive(name)
        assert one.determined and abs(one.value - true) < 3.0 * one.sigma, name
    assert fit.replay.rms_of_all() < 1.2 * NOISE


def test_coulomb_friction_stays_what_it_is() -> None:
    fit = identified(0.0, 0.0)
    assert not kept(fit) and abs(fit.drive("fs").value - DRY) < 3.0 * fit.drive("fs").sigma


def test_the_machine_has_it(loaded: vd.estimators.DrivesFit, tmp_path: Path) -> None:
    vd.save_model(loaded.machine(), tmp_path / "servo.yaml")
    again = vd.load_model(tmp_path / "servo.yaml")
    assert again.controllers == loaded.machine().controllers
    assert again.controllers[0].constant("load_friction") == loaded["arm_drive.load_friction"].value
    vd.save(loaded, tmp_path / "fit.json")
    fit = vd.load(tmp_path / "fit.json")
    assert isinstance(fit, vd.estimators.DrivesFit)
    assert fit.drive("arm_drive.load_friction") == loaded.drive("arm_drive.load_friction")


def test_where_it_cannot_be_simulated_is_named() -> None:
    machine = true_machine(0.2, 0.0)
    rounded = vd.manoeuvres.Commanded(
        Held(), duration=0.1, rate=200.0, method=vd.dynamics.Method("RK4", 1e-3, friction_speed=0.01)
    )
    with pytest.raises(DataError, match="needs dry friction that holds"):
        rounded.run(machine)
    with pytest.raises(DataError, match="simulated on open machines that are held, by RK4"):
        vd.manoeuvres.Commanded(Held(), duration=0.1, rate=200.0, method=vd.dynamics.Method("DOP853")).run(machine)
    smooth = replace(machine, elements=tuple(e for e in machine.elements if e.kind != "coulomb"))
    with pytest.raises(DataError, match="adds to dry friction of its joint, which has none"):
        rounded.run(smooth)
