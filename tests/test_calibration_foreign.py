"""Foreign truth of the calibration: two descriptions of one machine agree, and deviations are tested on it in a quick form."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pinocchio as pin
import pytest
from benchmarks.calibration import FOREIGN_FORM, calibrate, cases_named, main, table
from benchmarks.calibration_foreign import (
    CIRCUMSTANCES,
    FOREIGN,
    METHODS,
    QUANTUM,
    RATE,
    Circumstances,
    Waves,
    drawing,
    exact,
    first_order,
    fitted,
    joint_square,
    memory_samples,
    model,
    recorded,
    run,
)
from benchmarks.foreign.machines import LAWS, SUBJECTS, SYMBOLS, Subject, drawn, physical
from numpy.typing import NDArray

import veridyn as vd

Array = NDArray[np.float64]
ROUNDING = 1e-9  # of the torques: two codes in double precision
SUBJECT_NAMES = list(SUBJECTS)
EVERY = vd.IdentifySettings(covariance="white", sampling=vd.estimators.Sampling())


def made(name: str, seed: int) -> tuple[Subject, dict[str, float], Waves]:
    subject, rng = SUBJECTS[name], np.random.default_rng(seed)
    return subject, drawn(subject, drawing(name), 0.1, rng), Waves.drawn(rng, subject.reach, (0.1, 1.2))


def regressor(subject: Subject, names: list[str], q: Array, qd: Array, qdd: Array) -> Array:
    """Joint torques over the parameters of the file (N n, parameters), by Pinocchio's regressor and the laws of rotors and friction."""
    A, n = subject.combined, q.shape[1]
    model = subject.pin_model(drawing(subject.file.stem))
    data = model.createData()
    rigid = np.vstack([pin.computeJointTorqueRegressor(model, data, *x) for x in zip(q, qd, qdd, strict=True)])
    laws = {"Ia": qdd @ A.T, "h": qd @ A.T, "fs": np.sign(qd @ A.T)}
    columns = []
    for name in names:
        law = next((x for x in LAWS if name in subject.names[x]), None)
        if law is not None:
            k = subject.names[law].index(name)
            columns.append((laws[law][:, k, None] * A[k]).ravel())
            continue
        unit = {f"{s}{b}": 0.0 for s in SYMBOLS for b in range(1, n + 1)} | {name: 1.0}
        columns.append(rigid @ np.concatenate(subject.ten(unit)))
    return np.column_stack(columns)


@pytest.mark.parametrize("name", SUBJECT_NAMES)
def test_the_file_and_pinocchio_describe_one_machine(name: str) -> None:
    subject, truth, along = made(name, 0)
    t = np.linspace(0.0, 20.0, 200)
    q, qd, qdd = along.at(t)
    true = model(name).with_parameters([truth[n] for n in model(name).parameters.names])
    ours = vd.inverse_dynamics(true, vd.Motion(t, q, qd, qdd)) @ np.linalg.inv(subject.gears)
    theirs = subject.torques(truth, q, qd, qdd)
    np.testing.assert_allclose(ours, theirs, atol=ROUNDING * np.abs(theirs).max())


@pytest.mark.parametrize("name", SUBJECT_NAMES)
def test_base_values_are_those_of_pinocchios_regressor(name: str) -> None:
    """Kept columns of Pinocchio's regressor alone explain its torques, with the values that the relations of the fit give."""
    subject = SUBJECTS[name]
    fit, truth = fitted(Circumstances(subject=name, samples=1500), "wls", np.random.default_rng(1))
    names = list(fit.base.parameters.names)
    along = Waves.drawn(np.random.default_rng(2), subject.reach, (0.1, 2.0))
    W = regressor(subject, names, *along.at(np.linspace(0.0, 60.0, 400)))
    phi = np.array([truth[n] for n in names])
    kept = W[:, list(fit.base.columns)]
    chi, residual, rank, _ = np.linalg.lstsq(kept, W @ phi, rcond=None)
    assert rank == len(fit.names) == np.linalg.matrix_rank(W, tol=1e-8 * np.linalg.norm(W))
    assert float(residual[0]) < ROUNDING**2 * float(np.sum((W @ phi) ** 2))
    np.testing.assert_allclose(fit.base.reduce(phi), chi, rtol=1e-7, atol=1e-7)


def test_drawn_machines_are_physical_and_centred_on_their_drawing() -> None:
    """Of 400 machines the mean of each parameter is within 4.5 standard errors of its drawing; masses deviate by a tenth, as asked."""
    subject, mean, rng = SUBJECTS["arm"], drawing("arm"), np.random.default_rng(3)
    many = [drawn(subject, mean, 0.1, rng) for _ in range(400)]
    assert all(physical(np.array([m[f"{s}{k}"] for s in SYMBOLS])) for m in many for k in range(1, 5))
    errors = np.array([[m[n] - mean[n] for n in mean] for m in many])
    assert (np.abs(errors.mean(axis=0)) < 4.5 * errors.std(axis=0) / 20.0).all()
    ratio = errors[:, list(mean).index("M3")].std() / mean["M3"]
    assert ratio == pytest.approx(0.1, rel=0.15)
    assert not physical(np.array([3.0, 0, 0, 1.0, 0, 1.0, 0, 0, 0, 1.0]))  # XX above YY + ZZ


def test_mujoco_moves_as_pinocchio_says() -> None:
    """Differences over 2 ms are off by (ω h)²/12, .12 % at the controller's 60 rad/s; what the start excited is gone in .3 s."""
    subject, truth, along = made("arm", 4)
    t = np.arange(1000) / RATE
    q, tau = exact(subject, truth, along, t, "mujoco")
    assert np.abs(q - along.at(t)[0]).max() < 0.05
    qd, qdd = (q[2:] - q[:-2]) * RATE / 2.0, (q[2:] - 2.0 * q[1:-1] + q[:-2]) * RATE**2
    theirs = subject.torques(truth, q[1:-1], qd, qdd)
    steady = (t[1:-1] > 0.3)[:, None] & (np.abs(qd) > 0.02)
    error = np.where(steady, theirs - tau[1:-1], 0.0)
    assert (np.sqrt((error**2).mean(axis=0)) < 2e-3 * np.abs(tau).max(axis=0)).all()
    with pytest.raises(ValueError, match="gears"):
        exact(SUBJECTS["geared"], truth, along, t, "mujoco")


def test_noise_and_encoders_are_what_the_circumstances_say() -> None:
    noise = first_order(np.random.default_rng(5), 200_000, np.array([2.0]), 0.9)[:, 0]
    assert noise.std() == pytest.approx(2.0, rel=0.03)
    assert np.mean(noise[1:] * noise[:-1]) / noise.var() == pytest.approx(0.9, abs=0.01)
    means = noise.reshape(-1, 2000).mean(axis=1)  # of 2000 samples, a hundred memories
    assert means.var() * 2000 / noise.var() == pytest.approx(memory_samples(0.9), rel=0.45)  # of 100 means: 14 %
    assert CIRCUMSTANCES["short log"].samples == 990  # ten memories of 99 samples
    subject, truth, along = made("geared", 6)
    log = recorded(subject, truth, along, 0.0, Circumstances(subject="geared", samples=50), np.random.default_rng(7))
    angles = np.column_stack([np.asarray(log[f"q_motor.m{k}"].values) for k in (1, 2, 3)])
    np.testing.assert_allclose(angles / QUANTUM, np.round(angles / QUANTUM), atol=1e-6)
    q = along.at(np.arange(50) / RATE)[0]
    np.testing.assert_allclose(angles[:, 2], 60.0 * (q[:, 1] + q[:, 2]), atol=QUANTUM)


def test_motion_and_its_slopes_agree() -> None:
    along = Waves.drawn(np.random.default_rng(8), np.array([1.0, 0.5]), (0.1, 1.2))
    t, h = np.linspace(0.0, 30.0, 301), 1e-4
    q, qd, qdd = along.at(t)
    np.testing.assert_allclose(qd, (along.at(t + h)[0] - along.at(t - h)[0]) / (2.0 * h), atol=1e-6)
    np.testing.assert_allclose(qdd, (along.at(t + h)[1] - along.at(t - h)[1]) / (2.0 * h), atol=1e-6)
    assert (np.abs(q) <= 1.25 * np.array([1.0, 0.5])).all()


def test_the_joint_square_is_that_of_the_whole_covariance() -> None:
    """Its mean is 1 per parameter where C is true, and large where correlation is left out; without a covariance matrix it is infinite."""
    rng = np.random.default_rng(9)
    C = np.array([[1.0, 0.99], [0.99, 1.0]])
    errors = rng.multivariate_normal([0.0, 0.0], C, 4000)
    assert np.mean([joint_square(e, C) for e in errors]) == pytest.approx(1.0, abs=0.08)
    opposite = np.array([[1.0, -0.99], [-0.99, 1.0]])
    assert np.mean([joint_square(e, opposite) for e in errors]) > 50.0
    assert joint_square(np.ones(2), np.ones((2, 2))) == float("inf")
    assert joint_square(np.array([1.0, 5.0]), np.diag([1.0, np.nan])) == pytest.approx(1.0)


def test_every_case_has_its_name() -> None:
    assert len(FOREIGN) == len(CIRCUMSTANCES) * len(METHODS)
    assert {"white, ols", "AR .98, iv", "encoder noise, map", "two logs, robust", "short log, consistent"} <= set(
        FOREIGN
    )
    bands = {
        "inside_one_sigma": (0.60, 0.76),
        "inside_two_sigma": (0.90, 0.98),
        "mean_z2": (0.0, 1.5),
        "joint": (0.0, 2.0),
    }
    assert FOREIGN_FORM.bands == bands and FOREIGN_FORM.runs == 60


def test_cases_are_chosen_by_a_part_of_their_names() -> None:
    assert cases_named("AR .9, wls", FOREIGN) == ["AR .9, wls"]
    assert cases_named("AR .9", FOREIGN) == [f"AR .9, {word}" for word in METHODS]
    assert len(cases_named("iv", FOREIGN)) == len(CIRCUMSTANCES) and cases_named("AR", FOREIGN) == []


@pytest.mark.parametrize("name", ["white, wls", "AR .9, wls", "short log, map"])
def test_deviations_hold_on_foreign_truth(name: str) -> None:
    """Six machines a case, seed 7; the full form is ``benchmarks.calibration --foreign``."""
    found = calibrate(name, FOREIGN[name], 6, 7, FOREIGN_FORM)
    print(table([found])[-1])
    assert found.within and found.failed == 0


def test_deviations_of_white_noise_are_found_too_small_on_coloured() -> None:
    """Of every sample: far below its corner, noise of .9 has 19 times the density of white noise of its variance, so σ is near 1/√19 of
    the spread."""
    found = calibrate("white", partial(run, CIRCUMSTANCES["AR .9"], "wls", settings=EVERY), 6, 7, FOREIGN_FORM)
    assert not found.within
    assert found.sigma_over_spread < 0.5 and found.joint is not None and found.joint > 5.0


def test_the_door(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--foreign", "--runs", "3", "--seed", "3", "--case", "gears, wls", "--json"]) in (0, 1)
    content = json.loads(capsys.readouterr().out)
    assert content["quick"] is True and content["cases"][0]["case"] == "gears, wls"
    assert content["cases"][0]["joint"] > 0.0
