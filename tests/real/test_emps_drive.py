"""The positioning axis EMPS as a drive: from its reference and its encoder alone, without the control voltage.

Janot, Gautier, Brunot: Data set and reference models of EMPS, Workshop on Nonlinear System Identification Benchmarks, 2019: the reference
is held by u = kv (kp (r − q) − v), the force is gtau u; M 95.11 ± 0.11 kg, Fv 203.5 ± 1.1 N s/m, Fc 20.39 ± 0.10 N from the voltage.
"""

from __future__ import annotations

import pytest

import veridyn as vd
from real_logs import folder

MICRON = 1e-6


@pytest.fixture(scope="module")
def fits() -> dict[str, vd.estimators.DrivesFit]:
    units = {"t": "s", "qm": "m", "qg": "m"}
    log = vd.load_log(folder("emps") / "DATA_EMPS.mat", {"command.q1": "qg", "position.q1": "qm"}, units)
    kp, kv, gain = (float(log.notes[key]) for key in ("kp", "kv", "gtau"))
    elements = [
        vd.elements.motor_inertia("q1", 80.0, "M"),
        vd.elements.damper("q1", 200.0, "Fv"),
        vd.elements.coulomb("q1", 15.0, "Fc"),
        vd.elements.offset("q1", -3.16, "off"),
    ]
    axis = vd.Machine.of_bodies(
        [vd.model.Body("1", joint="sliding")],
        name="EMPS",
        gravity=(0.0, 0.0, 0.0),
        inertia={"1": [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1.0]},
        elements=elements,
    )
    found = {}
    for word in ("coulomb", "auto"):
        fit = vd.identify(axis, log, vd.estimators.Drives(kp=gain * kv * kp, kd=gain * kv, until=16.0, friction=word))
        assert isinstance(fit, vd.estimators.DrivesFit)
        found[word] = fit
    return found


def test_the_encoder_is_followed_to_a_micron(fits: dict[str, vd.estimators.DrivesFit]) -> None:
    """Behind the fitted 16 s, over a way of 0.25 m; friction and mass agree with those of the voltage where they are determined."""
    assert fits["auto"].rms_held_out < 1.6 * MICRON
    assert fits["auto"].rms_held_out < fits["coulomb"].rms_held_out
    dry = fits["coulomb"].drive("Fc")
    assert dry.determined and abs(dry.value - 20.39) < 2.0 * dry.sigma
    assert not fits["coulomb"].drive("Fv").determined  # only its sum with kd acts


def test_its_friction_yields_over_microns_at_most(fits: dict[str, vd.estimators.DrivesFit]) -> None:
    """The ladder asks for Dahl's law; what it keeps is as short as the errors of the simulation, and is named as not determined."""
    asked = [t for t in fits["auto"].terms if t.term == "presliding"]
    assert asked
    for d in fits["auto"].drives:
        if d.key == "presliding":
            assert d.value + 2.0 * d.sigma < 20.0 * MICRON and not d.determined
            assert any(d.name in one.names for one in fits["auto"].open)
