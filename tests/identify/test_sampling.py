"""Rows with filters of their own, and rows projected on a path: against dense tables and a closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.cars import TEN_ROWS, car_20, estimated_33
from strangers.random_trees import random_motion
from veridyn.errors import DataError
from veridyn.identify.estimate import identify
from veridyn.identify.observation import observation
from veridyn.identify.sampling import Sampling
from veridyn.identify.validate import predicted, validate
from veridyn.mechanics.inverse import external_rows
from veridyn.mechanics.regressor import regressor
from veridyn.model.body import Body
from veridyn.model.elements import spring
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.spatial.transforms import MDH

N = 400
RATE = 100.0


def logged(machine: Machine) -> Motion:
    motion = random_motion(np.random.default_rng(3), machine, N)
    rng = np.random.default_rng(4)
    signals = {"a": rng.normal(size=N), "b": rng.normal(size=N)}
    return replace(motion, t=np.arange(N) / RATE, signals=signals)


def dense(machine: Machine, motion: Motion, row: str) -> np.ndarray:
    """[W | Y] of one row over the estimated parameters, known ones being zero in these cars."""
    r, estimated = machine.rows.index(row), list(machine.parameters.select("estimated"))
    D = regressor(machine, replace(motion, wrenches={}))[:, r]
    known = np.setdiff1d(np.arange(D.shape[1]), estimated)
    y = -external_rows(machine, motion)[:, r] - D[:, known] @ machine.parameters.values[known]
    return np.column_stack([D[:, estimated], y])


def test_each_row_may_have_its_own_filter() -> None:
    machine = estimated_33(car_20("unsprung", elements=True))
    motion = logged(machine)
    slow, fast = Butterworth(3.0), Butterworth(20.0)
    how = Sampling(filter=fast, filters={"fx": slow, "z2": None}, decimate=2, trim=5)
    assert how.filtering and how.filter_of("fx") is slow and how.filter_of("z1") is fast and how.filter_of("z2") is None
    seen = {f.row: f for f in observation(machine, motion, TEN_ROWS, how).rows}
    for row, low in (("fx", slow), ("z1", fast), ("z2", None)):
        A = dense(machine, motion, row)
        A = (A if low is None else zero_phase(A, RATE, low))[5:-5][1::2]
        felt = [list(machine.parameters.select("estimated")).index(c) for c in seen[row].columns]
        kept = A[:, [*felt, -1]]
        R = seen[row].R
        assert seen[row].samples == len(kept)
        assert pytest.approx(kept.T @ kept, rel=1e-9, abs=1e-9 * float((kept**2).sum())) == R.T @ R


def test_rows_along_a_path_are_sums_of_rows() -> None:
    """Dense: row + Σ s · other row, wrenches and all, and the traces of a plot say the same; with machine code and without."""
    machine = estimated_33(car_20("unsprung", elements=True))
    motion = logged(machine)
    how = Sampling(along={"z1": {"beta1": "a", "fy": "b"}, "fy": {"z1": "b"}})
    a, b = motion.signals["a"][:, None], motion.signals["b"][:, None]
    own = {row: dense(machine, motion, row) for row in ("z1", "beta1", "fy")}
    wanted = {"z1": own["z1"] + a * own["beta1"] + b * own["fy"], "fy": own["fy"] + b * own["z1"]}
    for engine in ("numpy", "compiled"):
        for f in observation(machine, motion, ("fy", "z1"), how, engine=engine).rows:
            felt = [list(machine.parameters.select("estimated")).index(c) for c in f.columns]
            kept = wanted[f.row][:, [*felt, -1]]
            assert pytest.approx(kept.T @ kept, rel=1e-9, abs=1e-9 * float((kept**2).sum())) == f.R.T @ f.R
            left_out = np.delete(wanted[f.row][:, :-1], felt, axis=1)
            assert not left_out.any()
    fit = identify(machine, motion, rows=("fy", "z1", "z2"), sampling=how)
    names, measured, model = predicted(fit, motion, sampling=how)
    check = validate(fit, motion, sampling=how)
    for k, row in enumerate(names):
        assert np.sqrt(np.mean((measured - model)[:, k] ** 2)) == pytest.approx(check[row].rms, rel=1e-9)
        if row in wanted:
            assert measured[:, k] == pytest.approx(wanted[row][:, -1])


def test_a_block_on_an_incline() -> None:
    """z = x tan θ: along x the row is m (1 + tan²θ) ẍ + m g tan θ + k x = 0, whatever the incline presses with."""
    mass, stiffness, tan, g = 3.0, 70.0, 0.75, 9.81
    along_x, up = MDH(gamma=np.pi / 2, alpha=np.pi / 2), MDH(alpha=-np.pi / 2)
    bodies = [
        Body("cart", "ground", "sliding", along_x, coordinate="x", real=False, actuated=False),
        Body("block", "cart", "sliding", up, coordinate="z", actuated=True),
    ]
    machine = Machine.of_bodies(bodies, inertia={"block": [0.0] * 9 + [mass]}, elements=[spring("x", stiffness)])
    t = np.linspace(0.0, 2.0, N)
    omega = np.sqrt(stiffness / (mass * (1 + tan**2)))
    still = -mass * g * tan / stiffness
    x = still + 0.2 * np.cos(omega * t)
    xd, xdd = -0.2 * omega * np.sin(omega * t), -0.2 * omega**2 * np.cos(omega * t)
    q, qd, qdd = (np.column_stack([a, tan * a]) for a in (x, xd, xdd))
    motion = Motion(t, q, qd, qdd, signals={"dz/dx": np.full(N, tan)})
    known = machine.with_parameters(machine.parameters.known({"k_x": stiffness}))
    how = Sampling(along={"x": {"z": "dz/dx"}})
    seen = observation(known, motion, ("x",), how).rows[0]
    M = seen.columns.index(machine.parameters.index("M_block"))
    W, y = seen.R[:, M], seen.R[:, -1]
    assert float(W @ y / (W @ W)) == pytest.approx(mass, rel=1e-12)


def test_paths_and_filters_that_cannot_be_are_refused() -> None:
    machine = estimated_33(car_20("unsprung", elements=True))
    motion = logged(machine)
    how = Sampling(filters={"fq": None}, along={"z9": {}, "z1": {"beta9": "a", "beta1": "slope"}})
    with pytest.raises(DataError) as caught:
        observation(machine, motion, TEN_ROWS, how)
    text = str(caught.value)
    assert "sampling.filters: 'fq' is not one of the rows" in text
    assert "sampling.along: 'z9' is not one of the rows" in text
    assert "sampling.along['z1']: there is no row 'beta9'" in text
    assert "sampling.along['z1']: the motion has no signal 'slope'" in text


def test_counts_of_samples_are_whole_numbers() -> None:
    with pytest.raises(
        DataError, match=r"trim: it counts samples\.\nExpected a whole number, found 0\.5\. Signals\(trim=…\)"
    ):
        Sampling(trim=0.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="decimate: it counts samples"):
        Sampling(decimate=2.0)  # pyright: ignore[reportArgumentType]
    assert Sampling(trim=np.int64(3)).trim == 3  # pyright: ignore[reportArgumentType]
