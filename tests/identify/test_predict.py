"""What a fit predicts of its rows, against inverse dynamics and integrations that share no code with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import veridyn as vd
from identify.test_payload import GAINS, LOAD, driven, unknown
from identify.test_payload import truth as loaded_arm
from identify.test_validate import arm, fitted, log
from veridyn.errors import DataError
from veridyn.identify.base import generic_motion
from veridyn.identify.estimate import identify
from veridyn.identify.payload import carrying
from veridyn.identify.predict import predicted
from veridyn.identify.validate import validate
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics
from veridyn.model.elements.element import drive_gain
from veridyn.model.motion import Motion

INERTIA, MOMENT = (
    0.6,
    9.81,
)  # kg*m^2 about the hinge, N*m of the weight: 2 kg at 0.5 m, and 0.1 kg*m^2 about the centre of mass
HANGING = -1.3  # rad: 0.27 from the lowest position, which is stable


def test_forces_are_those_of_the_fitted_machine_with_its_wrenches() -> None:
    fit, other = fitted(), log(1)
    assert other.wrenches and other.forces is not None
    found = fit.predict(other)
    np.testing.assert_allclose(found, inverse_dynamics(fit.described.with_parameters(fit.standard), other), rtol=1e-12)
    rms = np.sqrt(np.mean((other.forces - found) ** 2, axis=0))
    assert rms == pytest.approx([r.rms for r in validate(fit, other).rows], rel=1e-9)
    exact = identify(arm(), log(0, noise=False))
    np.testing.assert_allclose(exact.predict(other), inverse_dynamics(arm(), other), atol=1e-8)  # those of the truth


def test_rows_are_those_of_the_fit_in_its_order() -> None:
    other = log(1)
    one = identify(arm(), log(), rows=["q2"])
    assert one.predict(other).shape == (500, 1)
    np.testing.assert_allclose(
        one.predict(other)[:, 0],
        inverse_dynamics(one.described.with_parameters(one.standard), other, ["q2"])[:, 0],
        rtol=1e-12,
    )


def test_a_machine_with_loops_predicts_its_actuated_rows() -> None:
    machine = vd.load_model("veridyn:linkage.yaml")
    m, other = generic_motion(machine, 300), generic_motion(machine, 40)
    forces = np.full(m.q.shape, np.nan)
    forces[:, list(machine.independent)] = inverse_dynamics(machine, m)
    fit = identify(machine, replace(m, forces=forces), "ols", diagnose="off")
    found = fit.predict(other)
    assert found.shape == (40, len(machine.independent))
    np.testing.assert_allclose(found, inverse_dynamics(machine, other), rtol=1e-6, atol=1e-6)


def test_what_drive_gains_make_of_their_signals_is_not_predicted_but_measured() -> None:
    """Without forces in the log, the force of the motor is predicted: that of the true arm."""
    machine = unknown()
    fit = identify(machine, [driven(), carrying(machine, driven(loaded=True), "4", LOAD)])
    other = driven(np.random.default_rng(5))
    np.testing.assert_allclose(fit.predict(other), inverse_dynamics(loaded_arm(), other), rtol=1e-5, atol=1e-5)
    assert fit["K1"].value == pytest.approx(GAINS[0], rel=1e-7)


def swing(seconds: float, amplitude: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, torque and angle of a pendulum that is pushed, integrated by SciPy from its closed form J q̈ + m g d cos q = τ."""
    t = 0.01 * np.arange(round(100 * seconds))

    def torque(at: np.ndarray) -> np.ndarray:
        return amplitude * np.sin(3.0 * at)

    def rates(at: float, x: np.ndarray) -> list[float]:
        return [x[1], (torque(np.asarray(at)) - MOMENT * np.cos(x[0])) / INERTIA]

    done = solve_ivp(rates, (0.0, t[-1]), [HANGING, 0.0], t_eval=t, rtol=1e-10, atol=1e-10)
    return t, torque(t), done.y.T


def pendulum() -> vd.Machine:
    inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))
    rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    return vd.Machine.build([rod], [hinge], dimension=2)


def recorded(seconds: float, amplitude: float) -> Motion:
    t, torque, x = swing(seconds, amplitude)
    qdd = (torque - MOMENT * np.cos(x[:, 0])) / INERTIA
    return Motion(t, x[:, :1], x[:, 1:], qdd[:, None], forces=torque[:, None])


def test_a_fit_by_output_error_predicts_by_simulation() -> None:
    """From the measured start alone the whole swing follows; a rest shorter than a run has no prediction."""
    fit = identify(pendulum(), recorded(4.0, 2.0), vd.estimators.OutputError(friction_speed=0.0), diagnose="off")
    other = recorded(2.0, 1.5)
    found = fit.predict(other)
    np.testing.assert_allclose(found, other.q, atol=1e-4)
    error = np.sqrt(np.mean((other.q - found) ** 2))
    assert error == pytest.approx(validate(fit, other).rows[0].rms, rel=1e-9)
    short = identify(
        pendulum(), recorded(4.0, 2.0), vd.estimators.OutputError(horizon=0.3, friction_speed=0.0), diagnose="off"
    )
    whole = short.predict(other)  # 2 s in 7 runs of 28 samples
    assert np.isnan(whole[196:]).all() and np.isfinite(whole[:196]).all()
    np.testing.assert_allclose(whole[:196], other.q[:196], atol=1e-4)


def test_a_log_is_prepared_as_elsewhere_in_every_formulation() -> None:
    t, torque, x = swing(4.0, 2.0)
    units = {"q.hinge": "rad", "force.hinge": "N*m"}
    log = vd.Experiment.from_arrays(t, {"q.hinge": x[:, 0], "force.hinge": torque}, units, "bench")
    for machine in (pendulum(), pendulum().with_formulation("natural")):
        fit = vd.identify(machine, recorded(4.0, 2.0))
        np.testing.assert_array_equal(fit.predict(log), fit.predict(vd.motion(machine, log)))


def test_identify_and_validate_accept_the_same_data() -> None:
    """A motion, a log, a list or tuple of them, and motions that are made when they are needed; logs prepared in the same way."""
    t, torque, x = swing(4.0, 2.0)
    units = {"q.hinge": "rad", "force.hinge": "N*m"}
    log = vd.Experiment.from_arrays(t, {"q.hinge": x[:, 0], "force.hinge": torque}, units, "bench")
    motion = vd.motion(pendulum(), log)
    made = vd.estimators.MadeMotions([motion, motion], lambda m: m)
    for data, count in ((motion, 1), (log, 1), ([log, motion], 2), ((log,), 1), (made, 2)):
        fit = vd.identify(pendulum(), data)
        check = vd.validate(fit, data)
        assert fit.rows[0].samples == check.rows[0].samples == count * len(motion)
        assert check.relative_error == pytest.approx(fit.relative_error, rel=1e-9)


def test_other_things_are_refused_by_name() -> None:
    for given in ("run.csv", [log(1)], log(1).q, None):
        with pytest.raises(DataError, match="predict, argument 'data': it is no motion"):
            fitted().predict(given)  # pyright: ignore[reportArgumentType]


def test_predicted_curves_for_plots() -> None:
    fit, other = fitted(), log(1)
    names, measured, told = predicted(fit, other)
    assert names == ("q1", "q2") and measured.shape == told.shape == (500, 2)
    check = validate(fit, other)
    error = measured - told
    assert np.sqrt((error**2).mean(axis=0)) == pytest.approx([r.rms for r in check.rows], rel=1e-9)
    assert predicted(fit, other, ["q2"])[0] == ("q2",)


def test_known_drives_are_measured() -> None:
    """Forces known as a gain times a current are shown as measured, whether or not another force is measured beside them."""
    plain, base = log(1), arm()
    assert plain.forces is not None
    machine = base.with_elements([drive_gain(c, f"i{k}", 2.5, f"K{k}") for k, c in enumerate(("q1", "q2"))])
    machine = machine.with_parameters(machine.parameters.known(["K0", "K1"]))
    currents = {f"i{k}": plain.forces[:, k] / 2.5 for k in range(2)}
    driven = replace(plain, forces=None, signals=currents)
    fit = identify(machine, driven)
    _, measured, model = predicted(fit, driven)
    np.testing.assert_allclose(measured, (plain.forces - external_rows(base, plain))[:, [0, 1]], atol=1e-9)
    rms = np.sqrt(np.mean((measured - model) ** 2, axis=0))
    assert rms == pytest.approx([fit.rows[k].rms for k in range(2)], rel=1e-6)
    np.testing.assert_allclose(fit.predict(driven), model + external_rows(base, plain), atol=1e-9)
