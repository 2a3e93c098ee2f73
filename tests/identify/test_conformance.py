"""What every estimator must do: one suite for all of them, on the same data through the same door."""

from __future__ import annotations

import pickle
import re
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import veridyn.identify.regression.equation_plan as streaming
from identify import hanging_arm
from identify.smooth_arm import NOISE, clean, drawn, forces, noisy, path, shaken, spoilt, truth
from strangers.random_trees import random_motion
from veridyn.errors import DataError, IdentificationError, ModelError
from veridyn.identify.estimate import ESTIMATORS, identify
from veridyn.identify.estimator import OLS, WLS, Estimator, FitProblem
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.gauss_markov import GaussMarkov
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.estimators.likelihood import Likelihood
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.output_error.output_error import OutputError
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import Hac, IdentifySettings
from veridyn.identify.validate import validate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.settings import names, required, values_of
from veridyn.signals.trajectory import FourierTrajectory, JointLimits

pytest.importorskip("cvxpy")


@dataclass(frozen=True)
class World:
    """A machine and the noise that an estimator is made for: on forces, on accelerations too, or on positions alone."""

    truth: Callable[[], Machine]
    drawn: Callable[[], Machine]
    clean: Callable[..., Motion]
    noisy: Callable[..., Motion]
    spoilt: Callable[[np.random.Generator], Motion]


ARM = World(truth, drawn, clean, noisy, spoilt)
SHAKEN = replace(ARM, noisy=shaken, spoilt=shaken)
HANGING = World(
    hanging_arm.truth, hanging_arm.drawn, hanging_arm.clean, hanging_arm.noisy, lambda rng: hanging_arm.noisy(rng)
)


@dataclass(frozen=True)
class Case:
    """One method. By machine code, so that many logs take little time, unless the engine is named."""

    method: Estimator
    covariance: str = "white"
    world: World = ARM

    @property
    def name(self) -> str:
        return self.method.name

    def __call__(self, motion: Motion | list[Motion], machine: object = None, **more: object) -> Fit:
        how = {"covariance": self.covariance, "engine": "compiled"}
        of_settings = {name: more.pop(name) for name in names(IdentifySettings) if name in more}
        settings = IdentifySettings(**{**how, **of_settings})
        # Data are spoilt on purpose, and need no diagnosis.
        return identify(machine or self.world.truth(), motion, self.method, settings, diagnose="off", **more)


SIMULATED = OutputError(horizon=1.0, friction_speed=hanging_arm.SOFT, start="tree")
CASES = {
    "ols": Case(OLS()),
    "wls": Case(WLS()),
    "wls auto": Case(WLS(), "auto"),
    "wls hac": Case(WLS(), "hac"),
    "huber": Case(Robust()),
    "tukey": Case(Robust("tukey")),
    "huber auto": Case(Robust(), "auto"),
    "huber hac": Case(Robust(), "hac"),
    "flat prior": Case(Prior(relative=1e4)),
    "flat prior auto": Case(Prior(relative=1e4), "auto"),
    "flat prior hac": Case(Prior(relative=1e4), "hac"),
    "consistent": Case(Consistent()),
    "consistent auto": Case(Consistent(), "auto"),
    "consistent hac": Case(Consistent(), "hac"),
    "consistent, flat prior": Case(Consistent(Prior(relative=1e4))),
    "gauss-markov": Case(GaussMarkov()),
    "prewhitened": Case(GaussMarkov(order=3)),
    "iv": Case(Instrumental(reference=path()), world=SHAKEN),
    "iv auto": Case(Instrumental(reference=path()), "auto", SHAKEN),
    "iv hac": Case(Instrumental(reference=path()), "hac", SHAKEN),
    "oe": Case(SIMULATED, world=HANGING),
    "oe auto": Case(SIMULATED, "auto", HANGING),
    "oe hac": Case(SIMULATED, "hac", HANGING),
}
# An estimator with a covariance that others are tried with as well: slow, but for those whose sandwich is their own.
PRODUCTS = (
    "huber auto",
    "flat prior auto",
    "flat prior hac",
    "consistent auto",
    "consistent hac",
    "iv auto",
    "oe auto",
)
every = pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow if n in PRODUCTS else (), id=n) for n, c in CASES.items()]
)


def errors_of(fit: Fit, machine: Machine | None = None) -> np.ndarray:
    return fit.values - fit.base.reduce((machine or truth()).parameters.values)


def test_all_estimators_are_tried() -> None:
    """All but "likelihood", which takes whole periods of one motion and has a test of its own below."""
    assert {case.name for case in CASES.values()} == set(ESTIMATORS) - {"likelihood"}


@every
def test_exact_on_exact_data(case: Case) -> None:
    """Noise-free: every base parameter to 1e-7 of the largest of its kind of unit, whatever the drawing says."""
    world = case.world
    fit = case(world.clean(), world.drawn())
    sizes = np.array([fit.described.parameters.typical[c] for c in fit.base.columns])
    assert np.abs(errors_of(fit, world.truth()) / sizes).max() < 1e-7
    other = world.clean(300, 5)
    predicted = inverse_dynamics(world.truth(), other, "all", fit.standard)
    assert predicted == pytest.approx(inverse_dynamics(world.truth(), other), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("logs", [10, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize(  # "oe" differs from "oe hac" by its covariance alone, and takes two seconds
    "case",
    [pytest.param(c, marks=pytest.mark.slow if n in ("oe", *PRODUCTS) else (), id=n) for n, c in CASES.items()],
)
def test_unbiased_and_calibrated(case: Case, logs: int) -> None:
    """Over many logs with the noise the estimator is made for the mean error is within chance of zero and error over σ has mean square 1.

    In "ols" rows of one deviation each, since it claims nothing where rows differ. Constraints bring estimates nearer to the truth
    than σ says, never farther; what they hold at a bound is biased by nature and not claimed, so only its scatter is looked at. What
    looks for memory where there is none finds some by chance, and in 6 s of log more so.
    """
    scores = []
    world, samples = case.world, 300 if case.world is HANGING else 600
    for seed in range(logs):
        rng = np.random.default_rng(seed)
        motion = world.noisy(rng, world.clean(samples), 0.1)
        if case.name == "ols":
            motion = replace(clean(600), forces=forces(clean(600)) + 0.05 * rng.normal(size=(600, 4)))
        fit = case(motion)
        scores.append(errors_of(fit, world.truth()) / fit.sigma)
    found = np.nanmean(np.square(scores))
    bias = np.nanmean(scores, axis=0) * np.sqrt(logs)
    print(f"mean square score {found:.3f}, mean square of bias over chance {np.mean(bias**2):.2f}")
    chance = np.sqrt(30.0 / logs)  # beside that of 30 logs, for which the limits are
    below = 0.25 if case.name == "consistent" else 0.12
    assert 1.0 - below * chance < found < 1.0 + 0.2 * chance
    # The mean χ² of p independent parameters has deviation √(2/p), 0.26 of 30 and 0.45 of ten; they are not independent.
    assert np.mean(bias**2) < 1.0 + 4.0 * np.sqrt(2.0 / len(bias))


def test_whole_periods_exact_unbiased_and_calibrated() -> None:
    """Maximum likelihood on three periods of 4 s: exact without noise; over 16 logs without bias, and with deviations that are true."""
    limits = JointLimits(np.full(4, -2.5), np.full(4, 2.5), np.full(4, 4.0), np.full(4, 15.0))
    drive = FourierTrajectory.random(np.random.default_rng(0), limits, harmonics=5, frequency=0.25, fill=0.9)
    t = 0.01 * np.arange(1200)
    exact = Motion(t, *drive.at(t))
    exact = replace(exact, forces=inverse_dynamics(truth(), exact))
    method = Likelihood(frequency=0.25, highest=8)
    assert np.abs(errors_of(identify(drawn(), exact, method))).max() < 1e-9
    scores = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        shift = 1e-5 * rng.normal(size=exact.q.shape)
        log = replace(exact, q=exact.q + shift, forces=forces(exact) + 0.1 * NOISE * rng.normal(size=exact.q.shape))
        fit = identify(truth(), log, method, diagnose="off")
        scores.append(errors_of(fit) / fit.sigma)
    found, bias = np.mean(np.square(scores)), np.mean(scores, axis=0) * 4.0
    print(f"mean square score {found:.3f}, mean square of bias over chance {np.mean(bias**2):.2f}")
    assert 0.85 < found < 1.25 and np.mean(bias**2) < 2.0


@every
def test_the_same_in_blocks_and_threads(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    motion = case.world.spoilt(np.random.default_rng(0))
    whole = case(motion)
    monkeypatch.setattr(streaming, "JOB_SAMPLES", 401)
    with ThreadPoolExecutor(2) as pool:
        for fit in (case(motion, sampling=Sampling(block=64)), case(motion, executor=pool, engine="numpy")):
            assert np.abs((fit.values - whole.values) / whole.sigma)[np.isfinite(whole.sigma)].max() < 1e-4
            assert fit.sigma == pytest.approx(whole.sigma, rel=1e-4, nan_ok=True)
            assert fit.names == whole.names and fit.estimator == case.method.title


@pytest.mark.parametrize("name", ["huber hac", "iv hac", "prewhitened"])
def test_the_same_in_processes(name: str) -> None:
    """What estimators that pass over the samples again hand to an executor can travel."""
    case = CASES[name]
    motion = case.world.spoilt(np.random.default_rng(0))
    with ProcessPoolExecutor(1) as pool:
        assert case(motion, executor=pool).values == pytest.approx(case(motion).values, rel=1e-12)


@every
def test_the_same_by_machine_code(case: Case) -> None:
    motion = case.world.noisy(np.random.default_rng(0), size=0.3)
    a, b = case(motion, engine="numpy"), case(motion, engine="compiled")
    assert np.abs((a.values - b.values) / a.sigma)[np.isfinite(a.sigma)].max() < 1e-4


@every
def test_two_logs_are_one(case: Case) -> None:
    """Values from two halves given as a list are those of the whole; noise that remembers does not across them."""
    motion = case.world.noisy(np.random.default_rng(0), size=0.3)
    cut = len(motion) // 2
    whole, halves = case(motion), case([motion[:cut], motion[cut:]])
    near = 0.05 if isinstance(case.method, GaussMarkov) else 1e-4
    assert np.abs((whole.values - halves.values) / whole.sigma)[np.isfinite(whole.sigma)].max() < near


@every
def test_a_fit_is_whole(case: Case) -> None:
    world = case.world
    fit = case(world.noisy(np.random.default_rng(0)), world.drawn())
    count = len(fit.names)
    assert fit.values.shape == fit.sigma.shape == (count,) and fit.covariance.shape == (count, count)
    assert fit.correlation == pytest.approx(fit.correlation.T, abs=1e-12, nan_ok=True)
    assert fit.base.reduce(fit.standard) == pytest.approx(fit.values, rel=1e-9, abs=1e-12)
    assert np.isfinite(fit.standard).all() and np.isfinite(fit.values).all()
    assert [r.row for r in fit.rows] == list(world.truth().rows)
    assert fit.residual_sigma == pytest.approx(0.4 if case.name == "ols" else 1.0, abs=0.15)
    assert validate(fit, world.clean(300, 5)).relative_error < 0.05
    for name in fit.names:
        assert name in fit.summary()


def peak(case: Case, samples: int) -> int:
    motion = noisy(np.random.default_rng(0), clean(samples))
    case(motion[:2000], drawn())  # imports, and what is kept between calls
    tracemalloc.start()
    try:
        case(motion, drawn())
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", [pytest.param("huber hac", marks=pytest.mark.slow), "consistent", "flat prior", "iv"])
def test_memory_does_not_grow_with_the_log(name: str) -> None:
    """Beside the motion: the same at 16 000 and at 32 000 samples, whose W would take 18 MB more."""
    few, many = peak(CASES[name], 16_000), peak(CASES[name], 32_000)
    print(f"{name}: {few / 1e6:.1f} MB and {many / 1e6:.1f} MB")
    assert many < 1.1 * few + (
        4e6 if name == "iv" else 1e6
    )  # the instruments' motion, 10 numbers a sample more, is its own
    assert many < (43e6 if name == "iv" else 40e6)


@every
def test_what_is_refused_is_refused_by_all(case: Case) -> None:
    machine = case.world.truth()
    few = random_motion(np.random.default_rng(0), machine, 4, wrenches=False)
    few = replace(few, forces=inverse_dynamics(machine, few))
    with pytest.raises(IdentificationError, match=r"fewer (samples|equations) than parameters"):
        case(few)
    still = Motion(0.01 * np.arange(50), *np.zeros((3, 50, machine.n)), forces=np.zeros((50, machine.n)))
    with pytest.raises(IdentificationError, match="the measured side is zero everywhere"):
        case(still)
    with pytest.raises(IdentificationError, match="sigma: 'fx' is not one of the rows"):
        case(case.world.clean(), sigma={"fx": 1.0})


# The objects: one protocol, settings declared once.

EXAMPLES: dict[str, Estimator] = {
    "ols": OLS(),
    "wls": WLS(),
    "robust": Robust(loss="tukey", iterations=9),
    "map": Prior({"M1": 2.0}, {"M1": 0.1}, relative=0.2),
    "consistent": Consistent(prior=Prior(relative=0.1), margin=1e-5),
    "iv": Instrumental(reference="measured", substeps=2),
    "oe": OutputError(horizon=2.0, start="tree"),
    "gauss_markov": GaussMarkov(noise=np.eye(4), order=2),
    "likelihood": Likelihood(frequency=0.25, highest=8),
}
NONSENSE: dict[str, dict[str, object]] = {
    "robust": {"loss": "cauchy", "tuning": 0.0, "iterations": "many", "tolerance": float("nan")},
    "map": {"values": 3.0, "sigma": {"M1": -1.0}, "relative": True},
    "consistent": {"prior": 0.3, "weight": 0.0, "metric": 2, "margin": "small", "unsigned": "fs_q1"},
    "iv": {"law": 3.0, "reference": "planned", "start": None, "friction_speed": -1.0, "substeps": 0, "iterations": 1.5},
    "oe": {"horizon": 0.0, "initial": "zero", "hold": "cubic", "tolerance": float("inf"), "iterations": True},
    "gauss_markov": {"noise": "white", "order": -1, "periodic": 1},
    "likelihood": {"frequency": 0.0, "highest": 0, "criterion": "dic", "order": 0.5, "skip": -1},
}
each_object = pytest.mark.parametrize("method", EXAMPLES.values(), ids=EXAMPLES.keys())


@each_object
def test_an_estimator_is_an_object_with_a_name_and_a_title(method: Estimator) -> None:
    kind = type(method)
    assert ESTIMATORS[method.name] is kind and method.title and is_dataclass(kind)
    assert set(EXAMPLES) == set(ESTIMATORS)
    with pytest.raises(AttributeError):
        method.name = "other"  # pyright: ignore[reportAttributeAccessIssue]
    assert pickle.loads(pickle.dumps(method)).title == method.title


@each_object
def test_settings_round_trip_and_the_representation_shows_what_differs(method: Estimator) -> None:
    kind, values = type(method), values_of(method)
    again = kind(**values)
    assert all(values_of(again)[name] is value for name, value in values.items())
    assert again == method or kind is GaussMarkov  # which may hold an array
    plain = {f.name: f.default for f in fields(kind)}
    shown = repr(method)
    for name, value in values.items():
        differs = isinstance(value, np.ndarray) or value != plain[name]
        assert (f"{name}=" in shown) == differs, (name, shown)
    if not required(kind):
        assert repr(kind()) == f"{kind.__name__}()"


@pytest.mark.parametrize(("name", "setting"), [(n, s) for n, all_of in NONSENSE.items() for s in all_of])
def test_settings_of_the_wrong_type_or_size_are_named(name: str, setting: str) -> None:
    kind = ESTIMATORS[name]
    given = {"frequency": 0.1} if kind is Likelihood else {}
    with pytest.raises(
        IdentificationError, match=rf"{kind.__name__}\.{setting}[.\w]*: .*\nExpected .*, found "
    ) as caught:
        kind(**{**given, setting: NONSENSE[name][setting]})
    assert len(caught.value.faults) == 1


@each_object
def test_check_refuses_rows_that_are_not_there(method: Estimator) -> None:
    with pytest.raises(ModelError, match="nowhere"):
        method.check(truth(), ["nowhere"], None)


@pytest.mark.parametrize("name", ["gauss_markov", "likelihood"])
def test_check_refuses_a_covariance_that_a_method_has_not(name: str) -> None:
    with pytest.raises(IdentificationError, match=f"covariance: estimator '{name}' "):
        EXAMPLES[name].check(truth(), "all", Hac())


def test_check_refuses_before_any_sample_is_streamed() -> None:
    """The motion has no sample at all, so whatever looked at it first would complain of that."""
    nothing: list[Motion] = []
    empty = truth().with_parameters(np.full(len(truth().parameters), np.nan))
    for machine, method, rows, said in (
        (truth(), Instrumental(), "all", "instruments need a motion without noise"),
        (truth(), GaussMarkov(np.eye(2)), "all", "not that of these rows"),
        (truth(), OutputError(), ["q1"], "every row"),
        (empty, Prior(), "all", "a prior needs values"),
        (truth(), Consistent(unsigned=("fs_q9",)), "all", "'fs_q9' is not an element"),
    ):
        with pytest.raises(IdentificationError, match=said):
            identify(machine, nothing, method, rows=rows)


def test_a_fit_comes_from_the_problem_alone() -> None:
    problem = FitProblem(machine=truth(), motion=noisy(np.random.default_rng(0)))
    fit = WLS().fit(problem)
    assert isinstance(fit, Fit)
    assert fit.values.tolist() == identify(truth(), problem.motion, "wls").values.tolist()


def test_what_is_not_a_method_is_refused_by_name() -> None:
    def refused(match: str, *args: object, **more: object) -> None:
        with pytest.raises(IdentificationError, match=match):
            identify(truth(), clean(), *args, **more)  # pyright: ignore[reportArgumentType, reportCallIssue]

    refused(r"identify: there is no method 'robus'\.\n.*Did you mean 'robust'", "robus")
    refused(r"'all' names rows, not a method\.\n.*rows='all'", "all")
    refused(r"there is no method 'q1'\.\n.*rows='q1'", "q1")
    refused(r"\['q1', 'q2'\] names rows, not a method\.\n.*rows=\['q1', 'q2'\]", ["q1", "q2"])
    refused(r"the class Robust is given, not an object of it\.\nExpected Robust\(\), found Robust", Robust)
    refused(r"the class Likelihood is given.*\nExpected Likelihood\(frequency=…\)", Likelihood)
    refused(r"'likelihood' has no default settings\.\nExpected Likelihood\(frequency=…\)", "likelihood")
    refused(r"not a method of this verb\.\nExpected one of OLS, WLS, .* found Hac", Hac())
    refused(r"there is no argument 'estimator'\.\nThe method is the third argument", estimator="wls")
    with pytest.raises(
        DataError, match=r"argument 'settings'.*\nExpected an IdentifySettings or None, found a Robust\."
    ):
        identify(truth(), clean(), settings=Robust())  # pyright: ignore[reportArgumentType]


# The table of docs/estimators.md: the same data through each.

SHOWN = {
    "`OLS()`": Case(OLS(), "auto"),
    "`WLS()`": Case(WLS(), "auto"),
    '`WLS()`, `covariance="white"`': Case(WLS()),
    '`WLS()`, `covariance="hac"`': Case(WLS(), "hac"),
    "`Robust()`": Case(Robust(), "auto"),
    '`Robust("tukey")`': Case(Robust("tukey"), "auto"),
    "`Prior()`": Case(Prior(), "auto"),
    "`Consistent()`": Case(Consistent(), "auto"),
    "`Consistent(Prior())`": Case(Consistent(Prior()), "auto"),
    '`Consistent(Prior())`, `covariance="white"`': Case(Consistent(Prior())),
    "`GaussMarkov(order=3)`": Case(GaussMarkov(order=3), "auto"),
    "`Instrumental(reference=path)`": Case(Instrumental(reference=path()), "auto"),
}
LOGS: dict[str, Callable[[np.random.Generator], Motion]] = {
    "white noise": noisy,
    "5 % gross errors": spoilt,
    "coloured noise": lambda rng: noisy(rng, clean(5000), memory=0.9),
    "short and noisy": lambda rng: noisy(rng, clean(250), 3.0),
    "noisy accelerations": shaken,
}


def shown(case: Case, log: Callable[[np.random.Generator], Motion]) -> tuple[float, float]:
    """Error of the forces predicted along another motion, in per cent, and root mean square of error over σ; 4 logs."""
    check, predictions, scores = clean(400, 7), [], []
    for seed in range(4):
        fit = case(log(np.random.default_rng(seed)), drawn(seed))
        error = (inverse_dynamics(truth(), check, "all", fit.standard) - check.forces) / NOISE
        predictions.append(np.sum(error**2) / np.sum((check.forces / NOISE) ** 2))
        scores.append(np.square(errors_of(fit) / fit.sigma))
    return 100.0 * float(np.sqrt(np.mean(predictions))), float(np.sqrt(np.nanmean(scores)))


@pytest.mark.slow
def test_the_table_of_the_documentation() -> None:
    """Its numbers are these; 5 % for other processors and solvers."""
    page = (Path(__file__).parents[2] / "docs" / "estimators.md").read_text(encoding="utf-8")
    lines = ["| | " + " | ".join(LOGS) + " |", "|---" * (len(LOGS) + 1) + "|"]
    wrong = []
    for name, case in SHOWN.items():
        found = [shown(case, log) for log in LOGS.values()]
        lines.append(f"| {name} | " + " | ".join(f"{a:.2f} % · {b:.2f}" for a, b in found) + " |")
        printed = next((line for line in page.splitlines() if line.startswith(f"| {name} | ")), "")
        numbers = [float(x) for x in re.findall(r"\d+\.\d+", printed)]
        if numbers != pytest.approx([x for pair in found for x in pair], rel=0.05, abs=0.011):
            wrong.append(name)
    print("\n".join(lines))
    assert not wrong, f"docs/estimators.md says otherwise of {wrong}"
