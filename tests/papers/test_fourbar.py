"""The four-bar linkage: the mechanism of the thesis, its run, the noise that the likelihood of other logs chooses, and filters' scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.small_crane import SHORT, small_crane, study_log
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.mechanics.natural.equations.dynamics import NaturalState, initial_state
from veridyn.mechanics.natural.equations.freedoms import mobility
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, constraint_errors, integrate_natural
from veridyn.observe.filters.methods import ErrorEKF
from veridyn.observe.measurements import measurements_of
from veridyn.observe.noise_choice import tuned
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.pipeline import observe_with
from veridyn.observe.settings import ObserveSettings
from veridyn.papers.fourbar import (
    LABELS,
    MODEL_START,
    PRINTED,
    SHOWN_SAMPLES,
    SKIP,
    STEP,
    TRUE_START,
    TUNED,
    FourbarRun,
    ObservationStudy,
    fourbar,
    fourbar_run,
    fourbar_settings,
    fourbar_study,
    observation,
    wrong_fourbar,
)
from veridyn.papers.fourbar_page import fourbar_page, printed_correction


@pytest.fixture(scope="module")
def run() -> FourbarRun:
    return fourbar_run()


def test_it_is_the_mechanism_of_the_thesis() -> None:
    """Initial acceleration −2.0233 rad/s² from 60° and 1 rad/s, −27.041 of the wrong model, in the upper assembly."""
    system = natural_system(fourbar())
    state = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    assert state.qdd[system.mechanism.index("phi")] == pytest.approx(-2.0233, abs=5e-5)
    assert state.q[system.mechanism.index("2.y")] > 0.0
    assert mobility(system, state.q).degrees_of_freedom == 1
    wrong = natural_system(wrong_fourbar())
    assert initial_state(wrong, *MODEL_START).qdd[wrong.mechanism.index("phi")] == pytest.approx(-27.041, abs=5e-3)


def test_the_encoder_makes_the_error_observable() -> None:
    """Equation 63: with the errorEKF's transition the encoder's rows over two steps are [1 0; 1 Δt], of rank 2."""
    how = fourbar_settings()["error_ekf"]
    system, q, qd = how.system(wrong_fourbar())
    x = system.belief(q, qd).x
    F = system.move_and_jacobian(x, np.zeros(0), 0.0, STEP)[1]
    H = system.sense_and_jacobian(x, np.zeros(0), 0.0)[1]
    found = np.vstack([H, H @ F])[:, :2]
    assert system.states[:2] == ("phi", "phi_dot")
    assert found == pytest.approx(np.array([[1.0, 0.0], [1.0, STEP]]), abs=1e-12)
    assert np.linalg.matrix_rank(found) == 2


def test_a_correction_by_the_velocity_problem_opens_the_linkage() -> None:
    """Equation 58: q + R Δφ. The crank's end moves along its tangent, so its bar of 2 m is too long by (2 Δφ)² in m²: 1.1 m² at 30°."""
    system = natural_system(wrong_fourbar())
    start = initial_state(system, *MODEL_START)
    R = start.qd / MODEL_START[1]["phi"]  # q̇ = R φ̇
    wrong = TRUE_START[0]["phi"] - MODEL_START[0]["phi"]
    opened = np.abs(system.constraints.values(start.q + R * wrong))
    assert np.abs(system.constraints.values(start.q)).max() < 1e-9
    assert np.isclose(opened, (2.0 * wrong) ** 2, rtol=1e-9).any() and opened.max() > 1.0


def test_the_model_left_to_itself(run: FourbarRun) -> None:
    """The plain model: largest error of x1 3.95 to 4.00 m, rms 1.83 to 1.93 m; constraints closed throughout."""
    off = (run.plain.q - run.truth.q)[SKIP:, 0]
    assert 3.95 <= np.abs(off).max() <= 4.0
    assert 1.83 <= np.sqrt((off**2).mean()) <= 1.93
    assert (constraint_errors(natural_system(fourbar()), run.truth) < 1e-9).all()
    assert run.log(np.random.default_rng(0))["encoder"].unit == "rad"


def test_the_settings_are_those_that_are_told() -> None:
    settings = fourbar_settings()
    assert list(settings) == ["error_ekf", "error_ekf_force", "ekf", "ukf", "smoother"]
    assert settings["ekf"].settings.process_noise == TUNED


@pytest.mark.slow
def test_the_torques_walk_is_the_most_likely_one_on_other_seeds(run: FourbarRun) -> None:
    model = wrong_fourbar()
    settings = ObserverSetup(
        settings=ObserveSettings(process_noise=replace(TUNED, force=0.0), start=MODEL_START[0], rates=MODEL_START[1])
    )
    system = settings.system(model)[0]
    logs = [measurements_of(system, run.log(np.random.default_rng(k))) for k in (1000, 1001, 1002)]
    found, tuning = tuned(settings, model, logs, samples=2000)
    print("\n" + tuning.summary(), found)
    assert isinstance(found.force, dict)
    assert found.force["phi"] == pytest.approx(float(np.asarray(TUNED.force)), rel=0.01)


@pytest.mark.slow
def test_errors_and_consistency_over_twenty_seeds() -> None:
    study = fourbar_study(0)
    columns = [study.column(label) for label in study.labels]
    print(
        "\nfilter            x1      y1      x2      y2      phi     xd1    yd1    phid   NIS   NEES  white inside us/step"
    )
    for s in study.scores.values():
        rms, rate = s.rms[columns], s.rms_rate[columns]
        print(
            f"{s.name:<16}"
            + "".join(f"{v:8.4f}" for v in rms)
            + "".join(f"{v:7.3f}" for v in rate[[0, 1, 4]])
            + f"{s.nis:6.3f} {s.nees:6.3f} {s.share_white:6.2f}{s.share_inside:6.2f} {s.step_microseconds:7.0f}"
        )
    print(f"plain model       x1 {study.plain_rms('x1'):.3f} m rms, {study.plain_largest('x1'):.3f} m at most")
    assert 3.95 <= study.plain_largest("x1") <= 4.0 and 1.83 <= study.plain_rms("x1") <= 1.93
    printed = study.scores["error_ekf"]
    x1, phi = study.column("x1"), study.column("phi")
    assert 0.0085 <= printed.rms[x1] <= 0.0115
    assert 0.0060 <= printed.rms[phi] <= 0.0075
    assert 0.14 <= printed.rms_rate[x1] <= 0.18
    assert 0.85 <= printed.nis <= 1.0
    for name in ("error_ekf_force", "ekf", "ukf", "smoother"):
        s = study.scores[name]
        assert s.rms[x1] <= 0.0092 and s.rms_rate[phi] <= 0.10
        assert s.share_white >= 0.9 and 0.75 <= s.nees <= 1.25
    assert study.scores["smoother"].rms[x1] < 0.5 * study.scores["ekf"].rms[x1]
    assert np.abs(study.best.example.constraint_errors()).max() < 1e-9


@pytest.fixture(scope="module")
def study() -> ObservationStudy:
    run, setups = fourbar_run(), {"error_ekf": fourbar_settings()["error_ekf"]}
    log = run.log(np.random.default_rng([0, 0]))
    return observation(wrong_fourbar(), run.truth, run.plain, [log], setups, LABELS, chosen="error_ekf", skip=SKIP)


def test_the_printed_correction_opens_the_linkage(study: ObservationStudy) -> None:
    """The crank's end moves along its tangent: its bar of 2 m is open by (2 Δφ)² in m² after a correction by Δφ, whatever the rest does.

    The crank itself, which is the independent coordinate, is the same to what the sensor reads.
    """
    found = printed_correction(study)
    e = study.scores["error_ekf"].example.estimates
    turned = (e.x - e.x_predicted)[:SHOWN_SAMPLES, study.column("phi")]
    assert found.open_closed.max() < 1e-9
    assert (found.open_printed >= (2.0 * turned) ** 2 * (1.0 - 1e-6) - 1e-12).all()
    assert found.open_printed.max() > 0.5  # m²; 30° off at the start
    phi = study.column("phi")
    assert found.error_printed[:, phi] == pytest.approx(found.error_closed[:, phi], abs=1e-6)


def least_iterations(state: NaturalState) -> int:
    """With how many iterations at least one step of the integrator converges."""
    system = natural_system(wrong_fourbar())
    for count in range(1, 20):
        how = NaturalMethod(step=STEP)
        how = replace(how, stabilisation=replace(how.stabilisation, iterations=count))
        try:
            integrate_natural(system, [0.0, STEP], state, method=how)
        except SimulationError:
            continue
        return count
    raise AssertionError("no step")


@pytest.mark.parametrize("turned", [0.3, 0.5, -0.5])
def test_the_integrator_works_longer_from_a_linkage_that_is_open(turned: float) -> None:
    """Section 4.5.4: dependent coordinates moved by the velocity problem leave it to the next step to close them."""
    system, (start, rates) = natural_system(wrong_fourbar()), MODEL_START
    before = initial_state(system, start, rates)
    along = initial_state(system, start, {"phi": 1.0}).qd  # of a radian of the crank, by the velocity problem
    opened = replace(before, q=before.q + turned * along)
    closed = initial_state(system, {"phi": start["phi"] + turned}, rates, guess=before.q)
    assert least_iterations(opened) - least_iterations(closed) >= 2
    small = replace(before, q=before.q + 1e-4 * along)
    assert (
        least_iterations(small) - least_iterations(before) == 0
    )  # as small as corrections are once the start is forgotten


def test_the_page_shows_it(study: ObservationStudy) -> None:
    text = fourbar_page(study, study.result("demo fourbar", seed=0, quick=True, inputs={}), "veridyn demo fourbar")
    assert "Correction as printed (58)" in text and "largest constraint error" in text


def test_a_tree_has_no_such_correction(study: ObservationStudy) -> None:
    made_by = study.scores["error_ekf"].example.made_by
    assert made_by is not None
    settings = ObserveSettings(process_noise=PRINTED, start=MODEL_START[0], rates=MODEL_START[1], model_error="off")
    tree = wrong_fourbar().with_formulation("tree")
    with pytest.raises(ModelError, match=r"ErrorEKF\.correction"):
        observe_with(ObserverSetup(ErrorEKF(correction="velocity"), settings), tree, made_by.readings)


def test_figures_and_scores() -> None:
    study = small_crane()
    figures = study.figures
    for name in ("rms_x", "rms_swing", "rms_x_dot", "rms_model_x", "nees", "nis", "share_white", "step_microseconds"):
        assert np.isfinite(figures[name]), name
    assert figures["rms_model_x"] == 0.0  # the truth stands for the plain model here
    off = study.best.example.q[10:, study.column("x")] - study.truth.q[10:, study.column("x")]
    assert figures["rms_x"] < 3e-3 and np.sqrt((off**2).mean()) < 3e-3
    assert study.scores["smoother"].rms[study.column("x")] < figures["rms_x"]
    assert study.scores["smoother"].example.estimates is study.scores["ekf"].example.estimates
    result = study.result("small", seed=1, quick=True, inputs={})
    assert "ekf: x" in result.validation and result.parameters[0].name == "x"


def test_what_is_refused() -> None:
    study = small_crane()
    settings = {"ekf": SHORT.setup("ekf")}
    with pytest.raises(DataError, match="there is no filter 'efk'"):
        observation(study.machine, study.truth, study.plain, [], settings, study.labels, chosen="efk")
    late = replace(study.truth, t=study.truth.t + 0.5)
    with pytest.raises(DataError, match="on different clocks"):
        observation(study.machine, late, study.plain, [study_log()], settings, study.labels, chosen="ekf")
