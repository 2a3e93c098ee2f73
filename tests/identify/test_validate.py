"""What a fit predicts on a motion, seen or not: rows by inverse dynamics and by simulation, against closed forms."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import veridyn as vd
from identify.hanging_arm import SOFT, clean, drawn, truth
from identify.test_payload import GAINS, LOAD, driven, unknown
from identify.test_payload import truth as loaded_arm
from identify.undiagnosed import identify
from strangers.random_trees import random_inertia, random_motion
from veridyn.errors import DataError, ModelError
from veridyn.identify.base import generic_motion
from veridyn.identify.payload import carrying
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import predicted, replay, validate
from veridyn.identify.validation import Validation
from veridyn.inference.error_measures import RowReport
from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import coulomb, damper, drive_gain
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.rotations import MDH

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
    fit = identify(machine, replace(m, forces=forces), "ols")
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
    fit = identify(pendulum(), recorded(4.0, 2.0), vd.estimators.OutputError(friction_speed=0.0))
    other = recorded(2.0, 1.5)
    found = fit.predict(other)
    np.testing.assert_allclose(found, other.q, atol=1e-4)
    error = np.sqrt(np.mean((other.q - found) ** 2))
    assert error == pytest.approx(validate(fit, other).rows[0].rms, rel=1e-9)
    short = identify(pendulum(), recorded(4.0, 2.0), vd.estimators.OutputError(horizon=0.3, friction_speed=0.0))
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
    """A motion, a list or tuple of them, logs beside motions, and motions that are made when they are needed."""
    t, torque, x = swing(4.0, 2.0)
    units = {"q.hinge": "rad", "force.hinge": "N*m"}
    log = vd.Experiment.from_arrays(t, {"q.hinge": x[:, 0], "force.hinge": torque}, units, "bench")
    motion = vd.motion(pendulum(), log)
    made = vd.estimators.MadeMotions([motion, motion], lambda m: m)
    for data, count in ((motion, 1), ([log, motion], 2), ((motion,), 1), (made, 2)):
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


NOISE = np.array([0.1, 0.5])


@cache
def arm() -> Machine:
    rng = np.random.default_rng(3)
    bodies = [Body("1"), Body("2", "1", placement=MDH(alpha=np.pi / 2, d=0.2))]
    elements = [coulomb("q2", 0.5), damper("q1", 0.2)]
    machine = Machine.of_bodies(bodies, inertia={b.name: random_inertia(rng) for b in bodies}, elements=elements)
    return machine.with_parameters(machine.parameters.known(["h_q1"]))


@cache
def log(seed: int = 0, noise: bool = True) -> Motion:
    rng = np.random.default_rng(seed)
    motion = random_motion(rng, arm(), 500)
    return replace(motion, forces=inverse_dynamics(arm(), motion) + noise * NOISE * rng.normal(size=(500, 2)))


@cache
def fitted() -> Fit:
    return identify(arm(), log())


def test_errors_on_another_motion_are_those_of_the_noise() -> None:
    check = validate(fitted(), log(1))
    for row, noise in zip(("q1", "q2"), NOISE, strict=True):
        assert check[row].samples == 500
        assert check[row].rms == pytest.approx(noise, rel=0.12)


def test_numbers_are_those_of_the_residual_computed_whole() -> None:
    """r = (Γ − Γ_ext) − D φ sample by sample, y = Γ − Γ_ext with known parameters not subtracted."""
    fit, other = fitted(), log(2)
    assert other.forces is not None
    error = other.forces - inverse_dynamics(fit.described.with_parameters(fit.standard), other)
    y = other.forces - external_rows(arm(), other)
    check = validate(fit, other)
    assert [r.rms for r in check.rows] == pytest.approx(np.sqrt((error**2).mean(axis=0)), rel=1e-9)
    assert [r.measured_rms for r in check.rows] == pytest.approx(np.sqrt((y**2).mean(axis=0)), rel=1e-9)
    assert check.relative_error == pytest.approx(np.linalg.norm(error) / np.linalg.norm(y), rel=1e-9)
    varying = y - y.mean(axis=0)
    assert check.std_error == pytest.approx(np.linalg.norm(error) / np.linalg.norm(varying), rel=1e-9)


def test_exact_data_validate_exactly() -> None:
    fit = identify(arm(), log(0, noise=False))
    check = validate(fit, log(1, noise=False))
    assert check.relative_error < 1e-10


def test_a_wrong_model_is_seen() -> None:
    wrong = replace(fitted(), values=1.2 * fitted().values)
    assert validate(wrong, log(1)).relative_error > 3 * validate(fitted(), log(1)).relative_error


def test_rows_sampling_several_motions_and_executors() -> None:
    one = validate(fitted(), log(1), rows=["q2"], settings=IdentifySettings(sampling=Sampling(decimate=2)))
    assert [r.row for r in one.rows] == ["q2"] and one["q2"].samples == 250
    with ThreadPoolExecutor(2) as pool:
        both = validate(fitted(), [log(1), log(2)], executor=pool)
    assert both["q1"].samples == 1000
    with pytest.raises(ModelError, match="there is no row 'q5'"):
        validate(fitted(), log(1), rows=["q5"])


def test_worst_and_summary() -> None:
    rows = (RowReport("fx", 10, 1.0, 10.0), RowReport("fy", 10, 1.0, 2.0), RowReport("mz", 10, 5.0, 0.0))
    check = Validation(rows)
    assert check.worst is not None and check.worst.row == "fy"
    assert check.worst_relative_error == 0.5
    assert check.relative_error == pytest.approx(np.sqrt(27.0 / 104.0))
    lines = check.summary().splitlines()
    assert len(lines) == 4 and lines[2].split()[5] == "50.00"
    assert np.isnan(Validation((rows[2],)).relative_error)


def test_where_nothing_is_measured_there_is_no_worst_row() -> None:
    """As in a log at rest, all of whose samples lie in the dead zone: it says nothing of the model, and is no error."""
    still = log(1)
    resting = replace(still, q=still.q[:1].repeat(500, 0), qd=np.zeros((500, 2)), qdd=np.zeros((500, 2)))
    check = validate(fitted(), resting, settings=IdentifySettings(sampling=Sampling(dead_zone=0.05)))
    assert [r.samples for r in check.rows] == [0, 0]
    assert check.worst is None and check.worst_judged is None
    assert np.isnan([check.worst_relative_error, check.relative_error, check.std_error]).all()
    assert not any(r["judged"] for r in check.table.values()) and "nan" in check.summary()


def test_a_given_model_is_validated_without_a_fit() -> None:
    other = log(1)
    assert other.forces is not None
    check = validate(arm(), other)
    error = other.forces - inverse_dynamics(arm(), other)
    assert [r.rms for r in check.rows] == pytest.approx(np.sqrt(np.mean(error**2, axis=0)))
    with pytest.raises(DataError, match=r"parameters have no value, so it predicts nothing: XX1"):
        validate(arm().with_parameters({"XX1": np.nan}), other)


def test_the_error_of_a_fit_over_all_rows() -> None:
    fit = fitted()
    own = validate(fit, log())
    assert fit.relative_error == pytest.approx(own.relative_error, rel=1e-9)


def test_what_is_compared_can_be_chosen_and_nothing_is_ignored() -> None:
    """A machine is compared by forces, or simulated with the defaults of replay; rows belong to forces."""
    other = log(1)
    simulated = validate(arm(), other, by="simulation")
    assert simulated.by == "simulation" and simulated == replay(arm(), other)
    assert validate(arm(), other) == validate(arm(), other, by="forces") and validate(arm(), other).by == "forces"
    with pytest.raises(DataError, match="a simulation compares coordinates, not rows"):
        validate(arm(), other, by="simulation", rows=["q1"])
    with pytest.raises(DataError, match=r"there is no comparison 'power'(.|\n)*'fit', 'forces' or 'simulation'"):
        validate(arm(), other, by="power")  # pyright: ignore[reportArgumentType]


def test_the_true_machine_follows_its_log() -> None:
    found = replay(truth(), [clean(), clean(400, 1)], horizon=2.0, friction_speed=SOFT)
    assert [r.row for r in found.rows] == ["q1", "q2"]
    assert found.rows[0].samples == 1000
    assert found.relative_error < 1e-9


def test_another_machine_strays_as_an_integration_of_its_own_says() -> None:
    """One run of 3 s, against the general integrator."""
    machine, motion = drawn(), clean()[:300]
    forces = motion.forces

    def between(time: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return np.array([np.interp(time, motion.t, forces[:, k]) for k in range(2)])

    method = Method("RK4", step=0.01, friction_speed=SOFT)
    alone = integrate(machine, motion.t, motion.q[0], motion.qd[0], between, method=method).motion
    expected = np.sqrt(((alone.q - motion.q) ** 2).mean(axis=0))
    found = replay(machine, motion, friction_speed=SOFT)
    assert [r.rms for r in found.rows] == pytest.approx(expected, rel=1e-6)
    assert found["q1"].rms > 5.0 * replay(machine, motion, horizon=0.25, friction_speed=SOFT)["q1"].rms


def test_a_machine_without_values_is_refused() -> None:
    empty = Machine.of_bodies(tree_of(truth()).bodies, name="arm")
    with pytest.raises(ModelError, match="these parameters have no value"):
        replay(empty, clean())
