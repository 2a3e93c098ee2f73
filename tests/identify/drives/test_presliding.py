"""A servo whose friction yields before it slides, by an integrator of SciPy, and one with Coulomb friction, by steps written here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import odeint

import veridyn as vd

Array = NDArray[np.float64]
INERTIA, LINK, VISCOUS, DRY = 0.012, 0.008, 0.05, 0.6  # kg m² of the drive and of the link, N m s/rad, N m
YIELDS = 0.02  # rad: σ0 = 30 N m/rad, between stiff gears (1e-3) and belts
KP, KD, RATE, NOISE = 20.0, 0.6, 1000, 1e-4
TICKS = 8 * RATE


def command() -> Array:
    """Slow and fast reversals, held every 5 ms."""
    t = np.arange(TICKS + 1) / RATE
    path = 0.5 * np.sin(1.3 * t) + 0.25 * np.sin(2.0 * np.pi * 0.9 * t) + 0.06 * np.sin(2.0 * np.pi * 3.0 * t + 0.4)
    return np.repeat(path[::5], 5)[: TICKS + 1]


def force(r: float, q: float, v: float) -> float:
    return KP * (r - q) - KD * v


def by_scipy() -> Array:
    """LuGre's equations without damping of the bristles, from tick to tick by LSODA."""

    def rate(y: Array, _: float, held: float) -> list[float]:
        slip = y[1] - abs(y[1]) * y[2] / YIELDS
        return [y[1], (held - DRY * y[2] / YIELDS - VISCOUS * y[1]) / (INERTIA + LINK), slip]

    y, out = np.zeros(3), []
    for r in command().tolist():
        out.append(float(y[0]))
        y = np.asarray(odeint(rate, y, [0.0, 1.0 / RATE], args=(force(r, y[0], y[1]),), rtol=1e-9, atol=1e-11))[-1]
    return np.array(out)


def by_small_steps() -> Array:
    """Coulomb friction: a speed that would turn against it within a step of 20 µs ends there, until the force exceeds friction."""
    q, v, out, parts = 0.0, 0.0, [], 50
    h = 1.0 / (RATE * parts)
    for r in command().tolist():
        out.append(q)
        held = force(r, q, v)
        for _ in range(parts):
            push = held - VISCOUS * v
            if v == 0.0:
                new = h * max(abs(push) - DRY, 0.0) * np.sign(push) / (INERTIA + LINK)
            else:
                new = v + h * (push - DRY * np.sign(v)) / (INERTIA + LINK)
                new = new if new * v > 0.0 else 0.0
            q, v = q + 0.5 * h * (v + new), new
    return np.array(out)


def servo() -> vd.Machine:
    elements = [
        vd.elements.motor_inertia("arm", 0.02, "Ia"),
        vd.elements.damper("arm", 0.1, "h"),
        vd.elements.coulomb("arm", 0.4, "fs"),
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
    t = np.arange(TICKS + 1)[::5] / RATE
    read = path[::5] + NOISE * rng.normal(size=len(t))
    return vd.Experiment.from_arrays(
        t, {"command.arm": command()[::5], "position.arm": read}, {"command.arm": "rad", "position.arm": "rad"}
    )


def fitted(path: Array, **how: object) -> vd.estimators.DrivesFit:
    found = vd.identify(servo(), recorded(path), vd.estimators.Drives(kp=KP, kd=KD, until=6.0, **how))  # pyright: ignore[reportArgumentType]
    assert isinstance(found, vd.estimators.DrivesFit)
    return found


@pytest.fixture(scope="module")
def yielding() -> vd.estimators.DrivesFit:
    return fitted(by_scipy())


def test_friction_that_yields_is_found(yielding: vd.estimators.DrivesFit) -> None:
    assert [(t.joint, t.term) for t in yielding.terms if t.kept] == [("arm", "presliding")]
    assert "presliding" in " ".join(yielding.notes)
    for name, true in {"fs.deflection": YIELDS, "fs": DRY, "Ia": INERTIA}.items():
        one = yielding.drive(name)
        assert abs(one.value - true) < 3.0 * one.sigma + 0.02 * true, name
    assert yielding.drive("fs.deflection").determined
    # What is left is the noise of the encoder, on samples that were not fitted too.
    assert yielding.rms_held_out < 1.5 * NOISE
    assert fitted(by_scipy(), friction="coulomb").rms_held_out > 10.0 * NOISE


def test_the_machine_has_it(yielding: vd.estimators.DrivesFit) -> None:
    soft = next(e for e in yielding.machine().elements if e.parameter_name == "fs")
    assert soft.kind == "lugre" and soft.constant("deflection") == yielding["fs.deflection"].value
    assert yielding.machine().parameters["fs"] == yielding["fs"].value


def test_coulomb_friction_stays_what_it_is() -> None:
    fit = fitted(by_small_steps())
    assert not [t for t in fit.terms if t.kept]
    assert fit.drive("fs").value == pytest.approx(DRY, rel=0.02) and fit.rms_held_out < 1.5 * NOISE


def test_it_is_saved_and_simulated_again(yielding: vd.estimators.DrivesFit, tmp_path: Path) -> None:
    vd.save(yielding, tmp_path / "fit.json")
    again = vd.load(tmp_path / "fit.json")
    assert isinstance(again, vd.estimators.DrivesFit)
    assert again.drive("fs.deflection") == yielding.drive("fs.deflection")
    log = recorded(by_scipy())
    assert again.simulate(log).rms(6.0) == yielding.simulate(log).rms(6.0)
    vd.save_model(yielding.machine(), tmp_path / "servo.yaml")
    assert vd.load_model(tmp_path / "servo.yaml").elements == yielding.machine().elements
