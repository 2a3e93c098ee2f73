"""Bounds of estimated parameters: the projection against a quadratic program, and settings that do not fit by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from observe.test_machine_trees import arm
from veridyn.errors import ModelError
from veridyn.mechanics.compiled import Bound, compiled, opened
from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.model.elements.element import Element, damper, offset
from veridyn.model.experiment import Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.correction import Corrected, corrected_of, project
from veridyn.observe.filters.methods import EKF, UKF
from veridyn.observe.machine import MachineSystem
from veridyn.observe.observe import observe
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.result import Belief
from veridyn.observe.settings import Estimated, ObserveSettings, ParameterBounds, read_parameters
from veridyn.observe.streaming.observer import Observer
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH


def bounds(*held: tuple[int, float, float]) -> ParameterBounds:
    return ParameterBounds(
        names=tuple(f"p{i}" for i, _, _ in held),
        places=np.array([i for i, _, _ in held]),
        changes=np.array([i for i, _, _ in held]),
        lower=np.array([low for _, low, _ in held]),
        upper=np.array([high for _, _, high in held]),
    )


def random_case(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((4, 4))
    return rng.standard_normal(4), rng.standard_normal(4), root @ root.T


@pytest.mark.parametrize("seed", range(5))
def test_one_bound_is_the_nearest_state_within_it(seed: int) -> None:
    """min (x − x̂)ᵀ P⁻¹ (x − x̂) under x₂ ≤ bound, by a general optimiser."""
    x, d, P = random_case(seed)
    high = float(x[2] + d[2] - 0.5)
    found = x + bounds((2, -np.inf, high)).project(x, d, P, None)
    W = np.linalg.inv(P)
    goal = minimize(
        lambda z: (z - x - d) @ W @ (z - x - d),
        x + d,
        jac=lambda z: 2.0 * W @ (z - x - d),
        constraints={"type": "ineq", "fun": lambda z: high - z[2]},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(found, goal.x, atol=1e-5)
    assert found[2] == pytest.approx(high, abs=1e-14)


def test_within_the_bounds_nothing_changes_and_considered_states_stay() -> None:
    x, d, P = random_case(7)
    b = bounds((1, -10.0, 10.0), (2, -10.0, 10.0))
    np.testing.assert_array_equal(b.project(x, d, P, None), d)
    tight = bounds((1, float(x[1] + d[1] + 0.3), 10.0))
    moved = tight.project(x, d, P, np.array([False, False, True, False]))
    assert moved[2] == d[2] and moved[0] != d[0]


@pytest.mark.parametrize("seed", range(5))
def test_machine_code_projects_as_the_reference(seed: int) -> None:
    x, d, P = random_case(seed)
    b = bounds((1, -0.2, 0.3), (3, 0.1, np.inf))
    considered = np.array([True, False, False, False])
    room = corrected_of(4, 1, considered)
    room.dx[:], room.P[:] = d, P
    run(Bound(room).address, x, b.places, b.changes, b.lower, b.upper)
    np.testing.assert_allclose(room.dx, b.project(x, d, P, considered), rtol=1e-13, atol=1e-15)
    assert (x[[1, 3]] + room.dx[[1, 3]] >= b.lower - 1e-12).all()


@compiled
def run(address, x, places, changes, lower, upper):
    from_record = opened(address, Corrected)
    project(x, from_record, places, changes, lower, upper)


def test_what_was_held_is_counted() -> None:
    b = bounds((1, 0.0, 2.0))
    assert b.held(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])) == {"p1": (0.0, 2)}
    assert b.held(np.array([[0.0, 0.5]])) == {}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"M_lower": (0.2, 0.0, 3.0, 1.0)}, "bounds leave nothing"),
        ({"M_lower": (-0.2,)}, "deviation or walk is not usable"),
        ({"M_lower": "wide"}, "does not say how it is estimated"),
        ({"M_lower": (0.2, 0.0, 3.0, 4.0)}, "own value is beyond its bounds"),
        ({"M_lowr": (0.2,)}, "there is no parameter 'M_lowr'"),
    ],
)
def test_settings_that_do_not_fit_are_named(parameters: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        machine_system(arm(), ObserveSettings(model_error="off", unknown=(), parameters=parameters, step=0.01))


def test_deviations_and_walks_of_each_parameter() -> None:
    """Those given with a parameter count; the others' are those of `process_noise`."""
    assert read_parameters(("a", "b")) == (("a", "b"), {})
    given = {"M_lower": Estimated(0.2, 0.01, 0.5, 5.0), "fv1": (0.1,)}
    system, q, qd = machine_system(
        arm(),
        ObserveSettings(
            model_error="off", process_noise=ProcessNoise(start_parameter=7.0), unknown=(), parameters=given, step=0.01
        ),
    )
    at = [system.states.index(f"parameter.{name}") for name in given]
    assert np.sqrt(
        np.diag(np.diag(system.belief(q, qd).P) if system.belief(q, qd).P.ndim == 1 else system.belief(q, qd).P)
    )[at] == (pytest.approx([0.2, 0.1]))
    assert system.density[at] == pytest.approx([0.01, 0.0])
    assert system.bounds is not None and system.bounds.names == ("M_lower",)


def pendulum() -> Machine:
    """A rod with friction of 0.4 N*m*s/rad and a torque of 0.4 N*m in its joint, and an encoder."""
    ten = from_centre(2.0, (0.4, 0.0, 0.0), 0.02 * np.eye(3))
    return Machine.of_bodies(
        [Body("rod", placement=MDH(alpha=-np.pi / 2), coordinate="q")],
        inertia={"rod": ten},
        gravity=(0.0, 0.0, -9.81),
        elements=[damper("q", 0.4, "fv"), offset("q", 0.4, "off")],
        sensors=[Sensor("encoder", "coordinate", "q", 1e-4)],
    )


def swung(tree: Machine) -> Experiment:
    """Small swings about the lowest position, with exact readings."""
    t = np.arange(0.0, 3.0, 0.02)
    path = integrate(tree, t, [np.pi / 2 + 0.05], [0.0], method=Method("RK4", step=0.01)).motion
    return Experiment.from_arrays(t, {"encoder": path.q[:, 0]}, {"encoder": "rad"})


FILTERS = ("ekf", "error_ekf", "error_ekf_force", "ukf", "linear", "smoother")
APPROXIMATE = (
    "error_ekf",
    "error_ekf_force",
)  # their errors of acceleration do not depend on the pose, so parameters wander


@pytest.mark.parametrize("method", FILTERS)
@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
@pytest.mark.filterwarnings(
    "ignore:.*(reads beside what the model expects|the filter is|disagrees with all else|is farther off than stated)"
)  # the bounds keep it from the truth
def test_every_filter_honours_bounds(method: str) -> None:
    """The true value, 0.4, lies beyond the bounds: the estimate ends at the nearer one, and without bounds near the truth.

    Friction, but for the linear filter a torque: along the tangent at rest friction does nothing.
    """
    name = "off" if method == "linear" else "fv"
    model = pendulum().with_parameters({name: 0.1})
    noise = ProcessNoise(start=1e-3, start_rate=1e-3)
    common = ObserveSettings(
        model_error="off", process_noise=noise, unknown=(), start={"q": np.pi / 2 + 0.05}, step=0.005
    )
    log = swung(pendulum())
    held = observe(model, log, method, replace(common, parameters={name: (0.3, 0.0, 0.02, 0.2)}))
    values = held.state(f"parameter.{name}")
    assert values.min() >= 0.02 - 1e-12 and values.max() <= 0.2 + 1e-12
    if method != "smoother":  # which ends where its filter does, and comes from within the bounds
        assert any(f"parameter '{name}' stood at its bound 0.2" in text for text in held.bounded())
    if method in APPROXIMATE:
        return
    assert values[-1] == pytest.approx(0.2, abs=1e-3)
    free = observe(model, log, method, replace(common, parameters={name: (0.3, 0.0)}))
    assert free.state(f"parameter.{name}")[-1] == pytest.approx(0.4, abs=0.02)
    assert free.bounded() == ()


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
def test_points_of_the_unscented_filter_stay_where_a_law_has_a_meaning() -> None:
    """A constant that must be positive, uncertain by more than its value: no point is evaluated below its bound."""
    law = Element(kind="tanh_friction", on={"q": 1.0}, value=0.3, name="ft", constants={"speed": 0.05})
    model = pendulum().without_elements(["fv", "off"]).with_elements([law])
    seen: list[float] = []
    system, q, qd = machine_system(
        model,
        ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(start=1e-3, start_rate=1e-3),
            unknown=(),
            parameters={"ft.speed": (0.2, 0.0, 0.01, 1.0)},
            start={"q": 1.5},
            step=0.005,
        ),
    )
    at = system.nq + system.nv
    inside = system.bounds.inside if system.bounds is not None else None
    assert inside is not None
    watched = replace(system)
    object.__setattr__(watched, "move", lambda x, u, t, dt: seen.extend(x[:, at]) or system.move(x, u, t, dt))
    x, P, _ = UKF().predict(watched, starting(system, q, qd), np.zeros(0), 0.0, 0.02)
    assert min(seen) == 0.01 and max(seen) > 0.2
    assert x[at] == pytest.approx(0.05, abs=1e-12)  # the parameter itself does not drift
    assert P[2 * system.f, 2 * system.f] == pytest.approx(0.2**2, rel=1e-9)


def starting(system: MachineSystem, q: np.ndarray, qd: np.ndarray) -> Belief:
    belief = system.belief(q, qd)
    return Belief(belief.x, np.diag(belief.P) if belief.P.ndim == 1 else belief.P, 0.0)


def test_a_step_reports_parameters_at_their_bounds() -> None:
    model, log = pendulum().with_parameters({"fv": 0.1}), swung(pendulum())
    observer = Observer(
        model,
        EKF(gate=None),  # held from the truth, the filter would refuse it
        ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(start=1e-3, start_rate=1e-3),
            unknown=(),
            start={"q": np.pi / 2 + 0.05},
            parameters={"fv": (0.3, 0.0, 0.02, 0.2)},
            step=0.005,
        ),
    )
    channel = log["encoder"]
    steps = [observer.step(t, {"encoder": y}) for t, y in zip(channel.t, channel.values, strict=True)]
    said = [message for step in steps for message in step.messages]
    for step in steps:
        value = step.values["parameter.fv"]
        at = [bound for bound in (0.02, 0.2) if abs(value - bound) < 1e-12]
        assert step.bounded == ({"fv": at[0]} if at else {})
    assert sum(bool(step.bounded) for step in steps) > 5 and not steps[0].bounded
    came = sum("'fv' stands at its bound 0.2" in message for message in said)
    went = sum("'fv' has left its bound" in message for message in said)
    assert came - went == bool(steps[-1].bounded) and came + went == len(said)  # told when it comes and when it goes
