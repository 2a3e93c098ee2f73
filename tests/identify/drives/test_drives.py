"""Drives of a leg whose truth MuJoCo made: estimates, what is not determined, held-out simulation, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.identify.drives.mujoco_leg import DELAY, KD, KP, TRUE_KP, TRUTH, ZERO, leg, recorded

import veridyn as vd
from veridyn.errors import DataError, IdentificationError

UNTIL = 6.0


@pytest.fixture(scope="module")
def log() -> vd.Experiment:
    return recorded(8.0)


@pytest.fixture(scope="module")
def fit(log: vd.Experiment, tmp_path_factory: pytest.TempPathFactory) -> vd.estimators.DrivesFit:
    machine = leg(tmp_path_factory.mktemp("leg"))
    found = vd.identify(machine, log, vd.estimators.Drives(kp=KP, kd=KD, until=UNTIL))
    assert isinstance(found, vd.estimators.DrivesFit)
    return found


def test_the_truth_is_found(fit: vd.estimators.DrivesFit) -> None:
    """MuJoCo's friction is soft and its steps are others: 4 % of armature and friction, 1 % of gains, 0.2 ms, and the deviations."""
    truth = {
        f"{k}_{j}": TRUTH[f"{t}{n}"] for k, t in (("Ia", "i"), ("fs", "f")) for n, j in enumerate(("thigh", "calf"))
    }
    for name, x in truth.items():
        assert fit[name].value == pytest.approx(x, rel=0.04), name
        assert fit.drive(name).determined
    for n, joint in enumerate(("thigh", "calf")):
        assert fit[f"{joint}_drive.kp"].value == pytest.approx(TRUE_KP[n], rel=0.01)
        zero = fit[f"{joint}_drive.zero"]
        assert zero.value == pytest.approx(ZERO[n], abs=3.0 * zero.sigma + 5e-4)
        both = fit[f"h_{joint}"].value + fit[f"{joint}_drive.kd"].value  # only their sum acts while commands are held
        assert both == pytest.approx(TRUTH[f"h{n}"] + KD, rel=0.02)
    assert fit["thigh.command_delay"].value == pytest.approx(DELAY, abs=2e-4)
    assert fit.terms == () or not any(t.kept for t in fit.terms)  # no term of friction that is not there


def test_kd_is_named_as_not_determined(fit: vd.estimators.DrivesFit) -> None:
    assert {"thigh_drive.kd", "calf_drive.kd"} == {d.name for d in fit.drives if not d.determined}
    assert any("kd" in one.text and "thigh" in one.text for one in fit.open)
    assert "thigh_drive.kd" in fit.summary() and "not determined" in fit.summary()
    assert "gains within 10 %" in "\n".join(fit.notes)


def test_held_out_samples_are_simulated_from_the_start(fit: vd.estimators.DrivesFit, log: vd.Experiment) -> None:
    assert fit.rms_held_out < 0.02 * fit.rms_held_out_defaults
    again = fit.simulate(log)
    assert again.rms(UNTIL) == pytest.approx(fit.replay.rms(UNTIL))
    assert fit.rms_held_out == pytest.approx(np.sqrt(np.mean(np.square(list(again.rms(UNTIL).values())))))


def test_the_machine_has_its_drives(fit: vd.estimators.DrivesFit) -> None:
    machine = fit.machine()
    own = {c.name: c.value for c in machine.controller_constants}
    assert own["thigh_drive.kp"] == fit["thigh_drive.kp"].value
    assert own["calf_drive.command_delay"] == fit["thigh.command_delay"].value
    assert machine.parameters["Ia_calf"] == fit["Ia_calf"].value
    assert machine.uncertainty is not None and set(machine.uncertainty.names) == set(fit.names)


def test_it_is_saved_as_its_machine(fit: vd.estimators.DrivesFit, tmp_path: Path) -> None:
    vd.save_model(fit.machine(), tmp_path / "leg.yaml")
    again = vd.load_model(tmp_path / "leg.yaml")
    assert [c.value for c in again.controller_constants] == pytest.approx(
        [c.value for c in fit.machine().controller_constants]
    )


def test_what_cannot_work_is_refused(log: vd.Experiment, tmp_path: Path) -> None:
    machine = leg(tmp_path)
    with pytest.raises(IdentificationError, match=r"not known how its drives follow"):
        vd.identify(machine, log, "drives")
    with pytest.raises(IdentificationError, match=r"'stiffness' cannot be estimated"):
        vd.identify(machine, log, vd.estimators.Drives(kp=KP, estimate=("stiffness",)))
    with pytest.raises(IdentificationError, match=r"did not converge in 1 iterations"):
        vd.identify(machine, log, vd.estimators.Drives(kp=KP, kd=KD, until=1.0, iterations=1))
    short = vd.Experiment({n: log[n] for n in log.names if n != "position.calf"}, "leg")
    with pytest.raises(DataError, match=r"no channel 'position.calf'"):
        vd.identify(machine, short, vd.estimators.Drives(kp=KP))
    with pytest.raises(IdentificationError, match=r"'rows' belongs to equations"):
        vd.identify(machine, log, vd.estimators.Drives(kp=KP), rows="joints")
