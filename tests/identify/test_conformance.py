"""What every estimator must do: one suite for all of them, on the same data through the same door."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import veridyn.identify.observation as streaming
from identify import hanging_arm
from identify.smooth_arm import NOISE, clean, drawn, forces, noisy, path, shaken, spoilt, truth
from strangers.random_trees import random_motion
from veridyn.errors import IdentificationError
from veridyn.identify.estimate import ESTIMATORS, identify
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.gauss_markov import GaussMarkov
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.estimators.likelihood import Likelihood
from veridyn.identify.estimators.output_error import OutputError
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.observation import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.validate import validate
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree
from veridyn.signals.trajectory import FourierTrajectory, JointLimits

pytest.importorskip("cvxpy")


@dataclass(frozen=True)
class World:
    """A machine and the noise that an estimator is made for: on forces, on accelerations too, or on positions alone."""

    truth: Callable[[], Tree]
    drawn: Callable[[], Tree]
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
    """One estimator with its settings. By machine code, so that many logs take little time, unless the engine is named."""

    estimator: str
    settings: object = None
    covariance: str = "white"
    world: World = ARM

    def __call__(self, motion: Motion | list[Motion], tree: object = None, **more: object) -> Fit:
        how = {"estimator": self.estimator, "settings": self.settings, "covariance": self.covariance}
        how["engine"] = "compiled"
        return identify(tree or self.world.truth(), motion, **{**how, **more})


SIMULATED = OutputError(horizon=1.0, friction_speed=hanging_arm.SOFT, start="tree")
CASES = {
    "ols": Case("ols"),
    "wls": Case("wls"),
    "wls hac": Case("wls", covariance="hac"),
    "huber": Case("robust"),
    "tukey": Case("robust", Robust("tukey")),
    "huber hac": Case("robust", covariance="hac"),
    "flat prior": Case("map", Prior(relative=1e4)),
    "consistent": Case("consistent"),
    "consistent, flat prior": Case("consistent", Consistent(Prior(relative=1e4))),
    "gauss-markov": Case("gauss_markov"),
    "prewhitened": Case("gauss_markov", GaussMarkov(order=3)),
    "iv": Case("iv", Instrumental(reference=path()), world=SHAKEN),
    "iv hac": Case("iv", Instrumental(reference=path()), "hac", SHAKEN),
    "oe": Case("oe", SIMULATED, world=HANGING),
    "oe hac": Case("oe", SIMULATED, "hac", HANGING),
}
every = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def errors_of(fit: Fit, machine: Tree | None = None) -> np.ndarray:
    return fit.values - fit.base.reduce((machine or truth()).parameters.values)


def test_all_estimators_are_tried() -> None:
    """All but "likelihood", which takes whole periods of one motion and has a test of its own below."""
    assert {case.estimator for case in CASES.values()} == set(ESTIMATORS) - {"likelihood"}


@every
def test_exact_on_exact_data(case: Case) -> None:
    """Noise-free: every base parameter to 1e-7 of the largest of its kind of unit, whatever the drawing says."""
    world = case.world
    fit = case(world.clean(), world.drawn())
    sizes = np.array([fit.tree.parameters.typical[c] for c in fit.base.columns])
    assert np.abs(errors_of(fit, world.truth()) / sizes).max() < 1e-7
    other = world.clean(300, 5)
    predicted = inverse_dynamics(world.truth(), other, "all", fit.standard)
    assert predicted == pytest.approx(inverse_dynamics(world.truth(), other), rel=1e-5, abs=1e-6)


@every
def test_unbiased_and_calibrated(case: Case) -> None:
    """Over 30 logs with the noise the estimator is made for the mean error is within chance of zero and error over σ has mean square 1.

    In "ols" rows of one deviation each, since it claims nothing where rows differ. Constraints bring estimates nearer to the truth
    than σ says, never farther; what they hold at a bound is biased by nature and not claimed, so only its scatter is looked at. What
    looks for memory where there is none finds some by chance, and in 6 s of log more so.
    """
    scores = []
    world, samples = case.world, 300 if case.world is HANGING else 600
    for seed in range(30):
        rng = np.random.default_rng(seed)
        motion = world.noisy(rng, world.clean(samples), 0.1)
        if case.estimator == "ols":
            motion = replace(clean(600), forces=forces(clean(600)) + 0.05 * rng.normal(size=(600, 4)))
        fit = case(motion)
        scores.append(errors_of(fit, world.truth()) / fit.sigma)
    found = np.nanmean(np.square(scores))
    bias = np.nanmean(scores, axis=0) * np.sqrt(30.0)
    print(f"mean square score {found:.3f}, mean square of bias over chance {np.mean(bias**2):.2f}")
    assert 0.75 < found < 1.2 if case.estimator == "consistent" else 0.88 < found < 1.2
    # 30 parameters: the mean of their χ² has deviation 0.26 if they were independent, and they are not.
    assert np.mean(bias**2) < 2.0


def test_whole_periods_exact_unbiased_and_calibrated() -> None:
    """Maximum likelihood on three periods of 4 s: exact without noise; over 16 logs without bias, and with deviations that are true."""
    limits = JointLimits(np.full(4, -2.5), np.full(4, 2.5), np.full(4, 4.0), np.full(4, 15.0))
    drive = FourierTrajectory.random(np.random.default_rng(0), limits, harmonics=5, frequency=0.25, fill=0.9)
    t = 0.01 * np.arange(1200)
    exact = Motion(t, *drive.at(t))
    exact = replace(exact, forces=inverse_dynamics(truth(), exact))
    how = {"estimator": "likelihood", "settings": Likelihood(frequency=0.25, highest=8)}
    assert np.abs(errors_of(identify(drawn(), exact, **how))).max() < 1e-9
    scores = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        shift = 1e-5 * rng.normal(size=exact.q.shape)
        log = replace(exact, q=exact.q + shift, forces=forces(exact) + 0.1 * NOISE * rng.normal(size=exact.q.shape))
        fit = identify(truth(), log, **how)
        scores.append(errors_of(fit) / fit.sigma)
    found, bias = np.mean(np.square(scores)), np.mean(scores, axis=0) * 4.0
    print(f"mean square score {found:.3f}, mean square of bias over chance {np.mean(bias**2):.2f}")
    assert 0.85 < found < 1.25 and np.mean(bias**2) < 2.0


@every
def test_the_same_in_blocks_and_threads(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    motion = case.world.spoilt(np.random.default_rng(0))
    whole = case(motion)
    monkeypatch.setattr(streaming, "SPAN", 401)
    with ThreadPoolExecutor(2) as pool:
        for fit in (case(motion, sampling=Sampling(block=64)), case(motion, executor=pool, engine="numpy")):
            assert np.abs((fit.values - whole.values) / whole.sigma)[np.isfinite(whole.sigma)].max() < 1e-4
            assert fit.sigma == pytest.approx(whole.sigma, rel=1e-4, nan_ok=True)
            assert fit.names == whole.names and fit.estimator == ESTIMATORS[case.estimator]


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
    near = 0.05 if isinstance(case.settings, GaussMarkov) else 1e-4
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
    assert fit.residual_sigma == pytest.approx(0.4 if case.estimator == "ols" else 1.0, abs=0.15)
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


@pytest.mark.parametrize("name", ["huber hac", "consistent", "flat prior", "iv"])
def test_memory_does_not_grow_with_the_log(name: str) -> None:
    """Beside the motion: the same at 16 000 and at 48 000 samples, whose W would take 53 MB."""
    few, many = peak(CASES[name], 16_000), peak(CASES[name], 48_000)
    print(f"{name}: {few / 1e6:.1f} MB and {many / 1e6:.1f} MB")
    assert many < 1.1 * few + (
        8e6 if name == "iv" else 1e6
    )  # the instruments' motion, 10 numbers a sample more, is its own
    assert many < (45e6 if name == "iv" else 40e6)


@every
def test_what_is_refused_is_refused_by_all(case: Case) -> None:
    tree = case.world.truth()
    few = random_motion(np.random.default_rng(0), tree, 4, wrenches=False)
    few = replace(few, forces=inverse_dynamics(tree, few))
    with pytest.raises(IdentificationError, match=r"fewer (samples|equations) than parameters"):
        case(few)
    still = Motion(0.01 * np.arange(50), *np.zeros((3, 50, tree.n)), forces=np.zeros((50, tree.n)))
    with pytest.raises(IdentificationError, match="the measured side is zero everywhere"):
        case(still)
    with pytest.raises(IdentificationError, match="sigma: 'fx' is not one of the rows"):
        case(case.world.clean(), sigma={"fx": 1.0})


def test_unknown_names_and_strange_settings_are_refused() -> None:
    with pytest.raises(IdentificationError, match=r"there is no estimator 'robus'\.[\s\S]*Did you mean 'robust'"):
        identify(truth(), clean(), "robus")
    with pytest.raises(IdentificationError, match=r"not those of estimator 'wls'\.\nExpected none, found Prior"):
        identify(truth(), clean(), Prior())
    with pytest.raises(IdentificationError, match=r"not those of estimator 'map'\.\nExpected Prior, found Robust"):
        identify(truth(), clean(), Robust())


# The table of docs/estimators.md: the same data through each.

SHOWN = {
    "`ols`": Case("ols"),
    "`wls`": Case("wls"),
    '`wls`, `covariance="hac"`': Case("wls", covariance="hac"),
    "`robust`": Case("robust"),
    '`robust`, `Robust("tukey")`': Case("robust", Robust("tukey")),
    "`map`": Case("map"),
    "`consistent`": Case("consistent"),
    "`consistent`, `Consistent(Prior())`": Case("consistent", Consistent(Prior())),
    "`gauss_markov`, `GaussMarkov(order=3)`": Case("gauss_markov", GaussMarkov(order=3)),
    "`iv`, `Instrumental(reference=path)`": Case("iv", Instrumental(reference=path())),
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
