"""Streaming: the factors of a log are those of the dense observation matrix, however the samples are cut and shared out."""

from __future__ import annotations

import multiprocessing
import resource
import subprocess
import sys
import textwrap
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from strangers.cars import TEN_ROWS, car_20, estimated_33
from strangers.random_trees import random_inertia, random_motion
from veridyn.errors import DataError, IdentificationError, ModelError
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.least_squares import Solution, solve
from veridyn.identify.observation import RowFactors, Sampling, driven, observation
from veridyn.mechanics.inverse import external_rows, inverse_dynamics
from veridyn.mechanics.regressor import regressor
from veridyn.model.elements import coulomb, damper, drive_gain, motor_inertia, offset, spring
from veridyn.model.joint import Body
from veridyn.model.motion import Motion
from veridyn.model.parameters import Tie
from veridyn.model.tree import Tree
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.spatial.transforms import MDH

RIGHT = np.pi / 2
NOISE = np.array([0.05, 0.4, 0.1])


@cache
def arm() -> Tree:
    """Three joints with friction, a rotor and an offset; ZZ2 known and fs_q3 tied to fs_q2, so that every path is walked."""
    rng = np.random.default_rng(7)
    bodies = [
        Body("1"),
        Body("2", "1", placement=MDH(alpha=RIGHT, d=0.1)),
        Body("3", "2", "sliding", MDH(alpha=RIGHT, d=0.3, theta=0.2)),
    ]
    elements = [
        coulomb("q1", 0.3),
        damper("q1", 0.6),
        coulomb("q2", 0.4),
        motor_inertia("q2", 0.05),
        coulomb("q3", 0.8),
        offset({"q3": 1.0}, 0.2),
    ]
    tree = Tree.build(bodies, inertia={b.name: random_inertia(rng) for b in bodies}, elements=elements)
    return tree.with_parameters(tree.parameters.known(["ZZ2"]).tied({"fs_q3": Tie("fs_q2", 2.0)}))


def log(samples: int, seed: int = 0, rate: float = 200.0, wrenches: bool = True) -> Motion:
    """A smooth motion at `rate` Hz with noisy forces and a wrench on the last body."""
    tree, rng = arm(), np.random.default_rng(seed)
    t = np.arange(samples) / rate
    w = rng.uniform(1.0, 9.0, (4, 3))
    a, phase = rng.normal(size=(4, 3)) / w, rng.uniform(0, 6, (4, 3))
    x = t[:, None, None] * w + phase
    q, qd, qdd = ((a * f).sum(axis=1) for f in (np.sin(x), w * np.cos(x), -(w**2) * np.sin(x)))
    felt = {"3": np.column_stack([np.sin((k + 1) * t) for k in range(6)])} if wrenches else {}
    motion = Motion(t, q, qd, qdd, wrenches=felt)
    forces = inverse_dynamics(tree, motion) + NOISE * rng.normal(size=(samples, 3))
    return replace(motion, forces=forces)


Tables = list[tuple[np.ndarray, np.ndarray]]


def dense(tree: Tree, motion: Motion, rows: Sequence[str]) -> Tables:
    """W_j (N, parameters) and Y_j (N,) of each row from the whole regressor: ties added, known values taken off."""
    p = tree.parameters
    D = regressor(tree, motion, rows)
    T = p.tie_matrix()
    off = list(p.select("known"))
    taken = D @ T[:, off] @ p.values[off]
    T[:, off] = 0.0
    numbers = tree.select_rows(rows)
    outside = external_rows(tree, motion)[:, numbers]
    first = len(tree.rows) - tree.n
    out = []
    for j, r in enumerate(numbers):
        acted = motion.forces[:, r - first] if r >= first and tree.actuated[r - first] else 0.0
        out.append((D[:, j] @ T, acted - outside[:, j] - taken[:, j]))
    return out


def expected(tables: Tables, columns: Sequence[int], typical: np.ndarray) -> tuple[np.ndarray, ...]:
    """Weighted least squares by LAPACK's lstsq on everything at once: values, σ, rms of each row, σ_j."""
    deviations = []
    for W, y in tables:
        S = W * typical
        x, _, rank, _ = np.linalg.lstsq(S, y, rcond=1e-9)
        deviations.append(np.linalg.norm(y - S @ x) / np.sqrt(len(y) - rank))
    A = np.vstack([W[:, list(columns)] / s for (W, _), s in zip(tables, deviations, strict=True)])
    b = np.concatenate([y / s for (_, y), s in zip(tables, deviations, strict=True)])
    values = np.linalg.lstsq(A, b, rcond=None)[0]
    variance = ((b - A @ values) ** 2).sum() / (len(b) - len(values))
    R = np.linalg.qr(A, mode="r")
    inverse = np.linalg.inv(R)
    sigma = np.sqrt(variance * (inverse**2).sum(axis=1))
    rms = [np.sqrt(np.mean((y - W[:, list(columns)] @ values) ** 2)) for W, y in tables]
    return values, sigma, np.array(rms), np.array(deviations)


def check(tree: Tree, s: Solution, tables: Tables, tolerance: float = 1e-10) -> None:
    values, sigma, rms, deviations = expected(tables, s.columns, tree.parameters.typical)
    assert np.abs(s.values - values).max() <= tolerance * np.abs(values).max()
    assert np.sqrt(np.diag(s.covariance)) == pytest.approx(sigma, rel=tolerance * 10)
    assert s.row_sigma == pytest.approx(deviations, rel=tolerance * 10)
    x = np.zeros(len(tree.parameters))
    x[list(s.columns)] = s.values
    found = [f.residual(x[list(f.columns)]) / np.sqrt(f.samples) for f in s.observation.rows]
    assert found == pytest.approx(rms, rel=tolerance * 10)


def gram(o: RowFactors) -> list[np.ndarray]:
    return [f.R.T @ f.R for f in o.rows]


def same(a: RowFactors, b: RowFactors, tolerance: float = 1e-12) -> None:
    assert [f.samples for f in a.rows] == [f.samples for f in b.rows]
    for x, y in zip(gram(a), gram(b), strict=True):
        assert np.abs(x - y).max() <= tolerance * np.abs(y).max()


@pytest.mark.parametrize("seed", range(6))
def test_streaming_equals_the_dense_solution(seed: int) -> None:
    """Random block sizes: values to 1e-10 of the largest, σ, σ_j and residuals to 1e-9 of themselves."""
    tree, motion = arm(), log(900, seed)
    block = int(np.random.default_rng(seed).integers(1, 400))
    s = solve(observation(tree, motion, sampling=Sampling(block=block)))
    assert len(s.columns) >= 10
    check(tree, s, dense(tree, motion, tree.rows))


def test_rows_may_be_chosen() -> None:
    tree, motion = arm(), log(600)
    s = solve(observation(tree, motion, ["q3", "q2"]))
    assert [f.row for f in s.observation.rows] == ["q3", "q2"]
    check(tree, s, dense(tree, motion, ["q3", "q2"]))


def test_a_row_holds_only_the_columns_it_can_feel() -> None:
    """The last joint's factor has parameters of body 3 and its own elements, the tied one under the name of the other."""
    tree = arm()
    names = tree.parameters.names
    row = observation(tree, log(50), ["q3"]).rows[0]
    held = {names[c] for c in row.columns}
    assert held <= {n for n in names if n.endswith("3") and n != "fs_q3"} | {"fs_q2"}
    D = regressor(tree, log(50), ["q3"])[:, 0]
    felt = {n for n, size in zip(names, np.abs(D).max(axis=0), strict=True) if size > 0}
    assert felt - {"fs_q3"} <= held and "fs_q2" in held


@pytest.mark.parametrize("seed", range(3))
def test_merging_in_any_order(seed: int) -> None:
    tree, motion = arm(), log(1000)
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(1, 1000), 5, replace=False))
    parts = [observation(tree, motion[a:b]) for a, b in zip([0, *cuts], [*cuts, 1000], strict=True)]
    order = rng.permutation(6)
    total = parts[order[0]]
    for k in order[1:]:
        total = total.merge(parts[k])
    whole = observation(tree, motion)
    same(total, whole)
    assert solve(total).values == pytest.approx(solve(whole).values, rel=1e-10)


def test_several_motions_are_one_log() -> None:
    tree, motions = arm(), [log(300, 1), log(500, 2), log(40, 3)]
    o = observation(tree, motions)
    assert o.samples == 3 * 840
    tables = [dense(tree, m, tree.rows) for m in motions]
    joined = [(np.vstack([t[j][0] for t in tables]), np.concatenate([t[j][1] for t in tables])) for j in range(3)]
    check(tree, solve(o), joined)


@cache
def long_log() -> tuple[Motion, RowFactors]:
    motion = log(40000)
    return motion, observation(arm(), motion)


def test_threads_share_the_samples() -> None:
    motion, alone = long_log()
    with ThreadPoolExecutor(2) as pool:
        same(observation(arm(), motion, executor=pool), alone)


def test_processes_share_the_samples() -> None:
    """Spawned, so that everything that travels is pickled; the motion is longer than one job."""
    motion, alone = long_log()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        same(observation(arm(), motion, executor=pool), alone)


def test_an_error_in_a_worker_arrives_whole() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(DataError, match="no force of it is measured"):
        observation(arm(), replace(log(50), forces=None), executor=pool)


def test_progress_is_told() -> None:
    told: list[tuple[float, float | None]] = []
    motion, _ = long_log()
    observation(arm(), motion, progress=lambda task, done, total: told.append((done, total)))
    assert told[0] == (0.0, 40000.0) and told[-1] == (40000.0, 40000.0) and len(told) == 4


def thinned(tables: Tables, used: Sequence[np.ndarray]) -> Tables:
    return [(W[u], y[u]) for (W, y), u in zip(tables, used, strict=True)]


def test_dead_zones_masks_gaps_trim_and_decimation() -> None:
    """Each row drops samples of its own; every third of the rest stays, less 10 at either end."""
    tree, motion = arm(), log(1500)
    rng = np.random.default_rng(1)
    forces = motion.forces.copy()
    forces[rng.random(1500) < 0.1, 1] = np.nan
    motion = replace(motion, forces=forces)
    drop = rng.random(1500) < 0.2
    how = Sampling(dead_zone={"q1": 0.2, "q3": 0.5}, drop={"q3": drop}, decimate=3, trim=10, block=111)
    o = observation(tree, motion, sampling=how)
    k = np.arange(1500)
    thin = (k % 3 == 0) & (k >= 10) & (k < 1490)
    used = [
        thin & (np.abs(motion.qd[:, 0]) >= 0.2),
        thin & np.isfinite(forces[:, 1]),
        thin & (np.abs(motion.qd[:, 2]) >= 0.5) & ~drop,
    ]
    assert [f.samples for f in o.rows] == [int(u.sum()) for u in used]
    check(tree, solve(o), thinned(dense(tree, motion, tree.rows), used))


def test_masks_run_on_over_several_motions() -> None:
    """One mask over two motions is the mask of each of them."""
    tree, parts = arm(), [log(700, 1), log(400, 2)]
    drop = np.random.default_rng(41).random(1100) < 0.3
    both = observation(tree, parts, sampling=Sampling(drop={"q2": drop}, block=128))
    one, other = (
        observation(tree, part, sampling=Sampling(drop={"q2": mask}, block=128))
        for part, mask in zip(parts, (drop[:700], drop[700:]), strict=True)
    )
    assert [f.samples for f in both.rows] == [1100, int((~drop).sum()), 1100]
    for a, b in zip(both.rows, one.merge(other).rows, strict=True):
        np.testing.assert_allclose(a.R.T @ a.R, b.R.T @ b.R, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("samples", "cutoff", "decimate", "trim"),
    [(1200, 8.0, 5, 100), (1200, 8.0, 1, 0), (16387, 30.0, 7, 0), (40000, 25.0, 5, 100)],
)
def test_parallel_filtering_equals_filtering_the_dense_matrix(
    samples: int, cutoff: float, decimate: int, trim: int
) -> None:
    """Columns and measurements through one zero-phase filter, in overlapping blocks, to 1e-8; one job and several."""
    tree, motion = arm(), log(samples, 5)
    low = Butterworth(cutoff, 4)
    how = Sampling(filter=low, decimate=decimate, trim=trim, block=300)
    o = observation(tree, motion, sampling=how)
    k = np.arange(samples)
    thin = (k % decimate == 0) & (k >= trim) & (k < samples - trim)
    for f, (W, y) in zip(o.rows, dense(tree, motion, tree.rows), strict=True):
        A = zero_phase(np.column_stack([W[:, list(f.columns)], y]), 200.0, low)[thin]
        G = A.T @ A
        assert f.samples == thin.sum()
        assert np.abs(f.R.T @ f.R - G).max() <= 1e-8 * np.abs(G).max()
    filtered = [
        (zero_phase(W, 200.0, low)[thin], zero_phase(y, 200.0, low)[thin]) for W, y in dense(tree, motion, tree.rows)
    ]
    values = expected(filtered, (s := solve(o)).columns, tree.parameters.typical)[0]
    assert np.abs(s.values - values).max() <= 1e-8 * np.abs(values).max()


def test_parallel_filtering_keeps_the_equations_true() -> None:
    """Noise-free data stay noise-free: y = W χ holds after filtering, dry friction included."""
    tree, motion = arm(), log(2000)
    exact = replace(motion, forces=inverse_dynamics(tree, motion))
    o = observation(tree, exact, sampling=Sampling(filter=Butterworth(10.0)))
    s = solve(o)
    truth = tree.parameters.tie_matrix() @ tree.parameters.values
    for f in o.rows:
        assert f.residual(truth[list(f.columns)]) < 1e-9 * f.measurement_norm
    assert s.sigma > 0


def test_gram_equals_qr_on_well_conditioned_data() -> None:
    """A slide with friction, damping and a spring: nothing to group within a row."""
    bodies = [Body("1", joint="sliding", placement=MDH(alpha=RIGHT))]
    tree = Tree.build(bodies, elements=[damper("q1", 2.0), spring("q1", 5.0), coulomb("q1", 1.0)])
    asked = tree.parameters.known(dict.fromkeys(tree.parameters.names[:9], 0.0)).replacing({"M1": 3.0})
    tree = tree.with_parameters(asked)
    rng = np.random.default_rng(0)
    motion = random_motion(rng, tree, 3000, wrenches=False)
    motion = replace(motion, forces=inverse_dynamics(tree, motion) + 0.1 * rng.normal(size=(3000, 1)))
    a, b = (solve(observation(tree, motion, sampling=Sampling(method=m))) for m in ("qr", "gram"))
    assert b.values == pytest.approx(a.values, rel=1e-10)
    assert np.diag(b.covariance) == pytest.approx(np.diag(a.covariance), rel=1e-9)


def test_gram_is_refused_on_badly_conditioned_data() -> None:
    """All standard parameters of an arm are dependent within each row."""
    with pytest.raises(IdentificationError, match=r"row 'q\d': sums of products are unsafe here[\s\S]*Use method='qr'"):
        observation(arm(), log(500), sampling=Sampling(method="gram"))


# Paper 001, section 5.2: Γ by type of joint.


def suspended(known: float | None = None, actuated: bool = False) -> Tree:
    """A mass on a vertical slide: a spring of known stiffness, or none and a motor that stands for it."""
    elements = [damper("q1", name="h")] + ([spring("q1", known, "k")] if known else [])
    tree = Tree.build([Body("1", joint="sliding", actuated=actuated)], elements=elements)
    p = tree.parameters.known(dict.fromkeys(tree.parameters.names[:9], 0.0))
    return tree.with_parameters(p.known(["k"]) if known else p)


def test_known_stiffness_goes_to_the_measured_side() -> None:
    """Γ = −k q for an elastic joint of known stiffness: the same estimate as a motor that exerts −k q."""
    rng = np.random.default_rng(0)
    motion = Motion(np.arange(400.0), *rng.normal(size=(3, 400, 1)))
    elastic = solve(observation(suspended(500.0), motion), sigma={"q1": 1.0})
    driven_by = replace(motion, forces=-500.0 * motion.q)
    motor = solve(observation(suspended(actuated=True), driven_by), sigma={"q1": 1.0})
    assert elastic.values == pytest.approx(motor.values, rel=1e-12)
    assert elastic.sigma == pytest.approx(motor.sigma, rel=1e-12)


def test_unknown_stiffness_is_a_column_and_the_force_zero() -> None:
    """Γ = 0 for an elastic joint of unknown stiffness; a wrench that acts makes the measured side."""
    tree = Tree.build(
        [Body("1", joint="sliding", actuated=False)], elements=[spring("q1", name="k"), damper("q1", name="h")]
    )
    tree = tree.with_parameters(tree.parameters.known(dict.fromkeys(tree.parameters.names[:9], 0.0)))
    rng = np.random.default_rng(1)
    motion = Motion(np.arange(300.0), *rng.normal(size=(3, 300, 1)))
    total = 7.0 * (motion.qdd[:, 0] + 9.81) + 40.0 * motion.q[:, 0] + 3.0 * motion.qd[:, 0]
    push = np.zeros((300, 6))
    push[:, 2] = total
    s = solve(observation(tree, replace(motion, wrenches={"1": push})))
    assert s.values == pytest.approx([7.0, 40.0, 3.0], rel=1e-10)


def test_a_passive_joint_and_the_base_measure_zero() -> None:
    tree = estimated_33(car_20(elements=True))
    motion = random_motion(np.random.default_rng(0), tree, 30)
    o = observation(tree, motion, TEN_ROWS)
    outside = external_rows(tree, motion)[:, tree.select_rows(TEN_ROWS)]
    assert [f.measurement_norm for f in o.rows] == pytest.approx(list(np.linalg.norm(outside, axis=0)), rel=1e-12)


# Drive gains.


def winch(load: bool) -> Tree:
    """A drum on a horizontal axis with a current and, hung on it, a load whose mass is known, or not."""
    bodies = [Body("1", placement=MDH(alpha=RIGHT))]
    tree = Tree.build(bodies, elements=[drive_gain("q1", "amps", name="K"), damper("q1", name="h")])
    p = tree.parameters.known({n: 0.0 for n in tree.parameters.names[:10] if n not in ("ZZ1", "MX1")})
    return tree.with_parameters(p.known({"MX1": 2.0}) if load else p)


def winch_log() -> Motion:
    """ZZ 0.5, MX 2, h 0.3, K 1.7: the current that makes a random motion."""
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 300, 1))
    motion = Motion(np.arange(300.0), q, qd, qdd, signals={"amps": np.zeros(300)})
    truth = {"ZZ1": 0.5, "MX1": 2.0, "h": 0.3, "K": 1.7}
    asked = inverse_dynamics(winch(True), motion, parameters=winch(True).parameters.replacing(truth).values)
    return replace(motion, signals={"amps": asked[:, 0] / 1.7})


def test_drive_gain_is_found_with_a_known_load() -> None:
    s = solve(observation(winch(True), winch_log()))
    names = [winch(True).parameters.names[c] for c in s.columns]
    assert dict(zip(names, s.values, strict=True)) == pytest.approx({"ZZ1": 0.5, "K": 1.7, "h": 0.3}, rel=1e-9)


def test_drive_gain_is_refused_without_a_load() -> None:
    with pytest.raises(IdentificationError, match=r"measured side is zero everywhere[\s\S]*Drive gains need a load"):
        solve(observation(winch(False), winch_log()))
    assert driven(winch(False)) == {"q1"}


# Memory.


def car_motion(tree: Tree, samples: int) -> Motion:
    """Built sample by sample in place: nothing is left behind but the motion."""
    rng = np.random.default_rng(0)

    def filled(width: int) -> np.ndarray:
        x = np.empty((samples, width))
        for k in range(0, samples, 10000):
            x[k : k + 10000] = rng.normal(size=x[k : k + 10000].shape)
        return x

    from veridyn.model.motion import BaseMotion

    base = BaseMotion(filled(3), filled(3), filled(3), filled(3))
    wrenches = {b: filled(6) for b in ("3", "7", "13", "18")}
    return Motion(np.arange(samples) / 500.0, filled(tree.n), filled(tree.n), filled(tree.n), base, wrenches=wrenches)


def traced_peak(samples: int) -> int:
    """Bytes of arrays and objects alive at the worst moment of streaming the 33 parameters of paper 000 over its ten rows."""
    tree = estimated_33(car_20(elements=True))
    motion = car_motion(tree, samples)
    tracemalloc.start()
    try:
        observation(tree, motion, TEN_ROWS)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_log() -> None:
    """20 000 and 50 000 samples of the 20-dof car: the same peak, far below the 136 MB of 50 000 × 10 × 34 numbers."""
    few, many = traced_peak(20_000), traced_peak(50_000)
    print(f"peak {few / 1e6:.1f} MB at 20 000 samples, {many / 1e6:.1f} MB at 50 000")
    assert many < 1.1 * few + 1e6
    assert many < 30e6


@pytest.mark.slow
def test_memory_at_a_million_samples() -> None:
    """The 20-dof car, all 90 parameters of its nine real bodies and its 19 elements over all 20 rows: below 150 MB beside the motion.

    A process of its own; its largest resident size less what it held once the motion was built.
    """
    here = Path(__file__).parent.parent
    script = textwrap.dedent(f"""
        import importlib.util, resource, sys
        sys.path.insert(0, {str(here)!r})
        spec = importlib.util.spec_from_file_location("here", {__file__!r})
        here = importlib.util.module_from_spec(spec)
        sys.modules["here"] = here
        spec.loader.exec_module(here)
        print(here.resident_growth(1_000_000))
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    growth = float(done.stdout)
    print(f"{growth / 1e6:.0f} MB beside the motion")
    assert growth < 150e6


def resident_growth(samples: int) -> float:
    """Bytes by which the largest resident size exceeds the size held before streaming."""
    tree = car_20("wheels", elements=True)
    motion = car_motion(tree, samples)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * resource.getpagesize()
    observation(tree, motion)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0 - before


# What is refused.


def test_an_actuated_joint_without_force_is_refused() -> None:
    forces = log(50).forces.copy()
    forces[:, 1] = np.nan
    with pytest.raises(
        DataError, match=r"row 'q2': the joint is actuated, and no force of it is measured[\s\S]*rows=…"
    ):
        observation(arm(), replace(log(50), forces=forces))
    assert observation(arm(), replace(log(50), forces=forces), ["q1", "q3"]).samples == 100


def test_a_passive_joint_with_a_force_is_refused() -> None:
    tree = suspended(500.0)
    motion = Motion(np.arange(9.0), *np.ones((3, 9, 1)), forces=np.full((9, 1), 3.5))
    with pytest.raises(
        DataError, match=r"row 'q1': the joint is passive, and yet a force of it is given[\s\S]*found up to 3\.5"
    ):
        observation(tree, motion)
    quiet = replace(motion, forces=np.full((9, 1), np.nan))
    assert observation(tree, quiet).samples == 9


def test_gaps_cannot_be_filtered() -> None:
    forces = log(300).forces.copy()
    forces[7, 0] = np.nan
    with pytest.raises(DataError, match=r"row 'q1': its measured force has gaps \(NaN\), which a filter would smear"):
        observation(arm(), replace(log(300), forces=forces), sampling=Sampling(filter=Butterworth(10.0)))


def test_an_unknown_row_is_refused() -> None:
    with pytest.raises(ModelError, match="there is no row 'q9'"):
        observation(arm(), log(50), ["q9"])


def test_wrong_settings_are_reported_all_at_once() -> None:
    how = Sampling(dead_zone={"q7": 1.0}, drop={"q1": np.zeros(3, dtype=bool)}, decimate=0, method="svd")
    with pytest.raises(DataError) as caught:
        observation(arm(), log(50), sampling=how)
    text = str(caught.value)
    assert len(caught.value.faults) == 4
    for part in (
        "sampling.dead_zone: 'q7' is not one of the rows.",
        "sampling.drop['q1']: a mask has one entry for each sample of all motions",
        "decimate and block must be at least 1, trim at least 0.",
        "there is no method 'svd'.",
    ):
        assert part in text


def test_a_base_row_has_no_dead_zone() -> None:
    tree = car_20()
    motion = random_motion(np.random.default_rng(0), tree, 20)
    with pytest.raises(DataError, match="row 'fx' has no speed of its own"):
        observation(tree, motion, sampling=Sampling(dead_zone={"fx": 1.0}))


def test_no_motion_and_other_models_are_refused() -> None:
    with pytest.raises(DataError, match="there is no motion to identify from"):
        observation(arm(), [])
    other = observation(suspended(500.0), Motion(np.arange(9.0), *np.ones((3, 9, 1))))
    with pytest.raises(DataError, match="observations of different models or rows cannot be merged"):
        observation(arm(), log(50)).merge(other)


def test_a_short_log_cannot_be_filtered() -> None:
    with pytest.raises(DataError, match="row 'q1'"):
        observation(arm(), log(10), sampling=Sampling(filter=Butterworth(10.0)))


def test_an_uneven_clock_cannot_be_filtered() -> None:
    motion = log(300)
    t = motion.t.copy()
    t[100:] += 0.5
    with pytest.raises(DataError, match=r"motion\.t"):
        observation(arm(), replace(motion, t=t), sampling=Sampling(filter=Butterworth(10.0)))


def test_identify_is_the_same_door() -> None:
    tree, motion = arm(), log(700)
    assert identify(tree, motion).values == pytest.approx(solve(observation(tree, motion)).values, rel=1e-12)
