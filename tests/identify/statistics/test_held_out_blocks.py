"""Held-out errors from R factors: against dense least squares, and standard errors against the scatter of many logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

from strangers.random_trees import random_motion, random_open_machine
from veridyn.errors import IdentificationError
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.statistics.held_out_blocks import HeldOutBlocks, fall, held_out_blocks
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth

FOLDS = 5


def test_sums_of_squares_are_those_of_dense_fits() -> None:
    """Each fold predicted by a fit to the others, with the whole regressor in memory."""
    rng = np.random.default_rng(1)
    machine = random_open_machine(rng, bodies=2, base="fixed", kinds=("turning",))
    machine = machine.with_elements([damper(machine.coordinates[0], 0.4), coulomb(machine.coordinates[1], 0.7)])
    m = random_motion(rng, machine, 600, wrenches=False)
    m = replace(m, forces=inverse_dynamics(machine, m) + 0.1 * rng.normal(size=(600, 2)))
    sigma = np.array([0.5, 2.0])
    held = held_out_blocks(machine, [m], "joints", IdentifySettings(), sigma, blocks=20, folds=FOLDS)
    D = regressor(machine, m) / sigma[:, None]
    y = np.asarray(m.forces) / sigma
    columns = [
        *range(len(machine.parameters) - 2, len(machine.parameters)),
        machine.parameters.index("ZZ1" if "ZZ1" in machine.parameters.names else machine.parameters.names[5]),
    ]
    found = held.squares(columns)
    expected = []
    for b in range(20):
        f = b * FOLDS // 20
        own = slice(30 * b, 30 * (b + 1))
        rest = np.ones(600, dtype=bool)
        rest[120 * f : 120 * (f + 1)] = False
        x = np.linalg.lstsq(D[rest][:, :, columns].reshape(-1, 3), y[rest].reshape(-1), rcond=None)[0]
        expected.append(np.sum((y[own] - D[own][:, :, columns] @ x) ** 2))
    assert found == pytest.approx(np.array(expected), rel=1e-9)
    x, rest = np.linalg.lstsq(D[:, :, columns].reshape(-1, 3), y.reshape(-1), rcond=None)[:2]
    assert held.training_square(columns) == pytest.approx(float(rest[0]), rel=1e-9)
    assert held.measured == pytest.approx(float(np.sum(y**2)), rel=1e-9)
    assert held.separates(columns, 1) and not held.separates([*columns, columns[0]], 1)


@pytest.mark.parametrize("logs", [100, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_the_standard_error_is_the_scatter_over_many_logs(memory: float, logs: int) -> None:
    """Stated σ of the fall over its standard deviation in many logs of 2000 samples in 40 blocks, white and AR(1) noise. That of 100 logs
    is known to 7 %, that of 300, which is slow, to 4 %."""
    rng = np.random.default_rng(2)
    t = np.arange(2000)
    A = np.column_stack([np.sin(0.11 * t), np.cos(0.017 * t)])
    fold = np.arange(40) * FOLDS // 40
    falls = []
    for _ in range(logs):
        noise = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], rng.normal(size=2000))
        rows = np.column_stack([A, A @ [1.0, 0.3] + noise]).reshape(40, 50, 3)
        held = HeldOutBlocks((0, 1), np.linalg.qr(rows, mode="r"), fold)
        before, after = held.squares([0]), held.squares([0, 1])
        assert before is not None and after is not None
        falls.append(fall(before, after))
    share, sigma = (np.array([getattr(f, name) for f in falls]) for name in ("share", "sigma"))
    assert 0.8 < np.median(sigma) / share.std() < 1.25


def short_log(samples: int) -> tuple[Machine, Motion]:
    rng = np.random.default_rng(3)
    machine = random_open_machine(rng, bodies=1, base="fixed", kinds=("turning",))
    m = replace(random_motion(rng, machine, samples, wrenches=False), t=0.01 * np.arange(samples))
    return machine, replace(m, forces=inverse_dynamics(machine, m) + 0.1 * rng.normal(size=(samples, 1)))


@pytest.mark.parametrize(
    ("how", "blocks"),
    [
        (Sampling(filter=Butterworth(5.0), decimate=10), 40),
        (Sampling(filter=Butterworth(2.0)), 28),  # 1/mean |H|⁴ = 27.8: noise is white again at one sample in so many
        (Sampling(decimate=50), 16),
    ],
)
def test_blocks_are_as_many_as_a_short_log_has(how: Sampling, blocks: int) -> None:
    """8 s at 100 Hz. Margins of a filter decide in what pieces equations are computed, and not what is held out."""
    machine, m = short_log(800)
    held = held_out_blocks(machine, [m], "joints", IdentifySettings(sampling=how), np.ones(1), blocks=40, folds=FOLDS)
    assert len(held.blocks) == blocks and set(held.fold.tolist()) == set(range(FOLDS))
    whole = observation(machine, m, "joints", IdentifySettings(sampling=how)).stacked([1.0])
    parts = np.einsum("bij,bik->jk", held.blocks, held.blocks)
    assert parts == pytest.approx(whole.T @ whole, rel=1e-9, abs=1e-9 * np.abs(parts).max())


def test_several_logs_have_blocks_of_their_own() -> None:
    machine, m = short_log(800)
    held = held_out_blocks(machine, [m, m[:400]], "joints", IdentifySettings(), np.ones(1), blocks=12, folds=FOLDS)
    assert len(held.blocks) == 12
    assert held.blocks[0] == pytest.approx(held.blocks[8], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("blocks", "memory"), [(3, 0.0), (3, 0.8), (5, 0.0)])
def test_few_blocks_let_no_more_enter_by_chance(blocks: int, memory: float) -> None:
    """A column without effect enters no more often than a normal variable exceeds one or two deviations. Were the standard error of three
    blocks taken for exact, 6 % would at two."""
    rng = np.random.default_rng(11)
    logs, samples = 400, 25 * blocks
    t = np.arange(samples)
    A = np.column_stack([np.sin(0.11 * t), np.cos(0.31 * t)])
    fold = np.arange(blocks) * min(FOLDS, blocks) // blocks
    noise = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], rng.normal(size=(logs, samples)), axis=1)
    falls = []
    for e in noise:
        R = np.linalg.qr(np.column_stack([A, A[:, 0] + e]).reshape(blocks, 25, 3), mode="r")
        held = HeldOutBlocks((0, 1), R, fold)
        before, after = held.squares([0]), held.squares([0, 1])
        assert before is not None and after is not None
        falls.append(fall(before, after))
    for errors, chance in ((1.0, 0.159), (2.0, 0.0228)):
        assert sum(f.exceeds(errors) for f in falls) < logs * chance + 3.0 * np.sqrt(logs * chance)


def test_one_block_is_refused() -> None:
    machine, m = short_log(40)
    with pytest.raises(IdentificationError, match=r"nothing to hold out[\s\S]*found 1"):
        held_out_blocks(
            machine,
            [m],
            "joints",
            IdentifySettings(sampling=Sampling(filter=Butterworth(1.0))),
            np.ones(1),
            blocks=40,
            folds=FOLDS,
        )
