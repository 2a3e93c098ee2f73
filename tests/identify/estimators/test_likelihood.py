"""Maximum likelihood from whole periods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from identify import slow_reversals as bar
from identify.smooth_arm import path, truth
from identify.undiagnosed import identify
from veridyn.errors import DataError, IdentificationError
from veridyn.identify.estimators.gauss_markov import NoiseModel
from veridyn.identify.estimators.likelihood import (
    Likelihood,
    PeriodicData,
    averaged_data,
    force_noise,
    jointly,
    periodic_data,
    scan,
    trajectory_noise,
)
from veridyn.identify.excitation.plant import TreePlant
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import damper
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.frequency import averaged
from veridyn.signals.trajectory import FourierTrajectory, JointLimits
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

RATE, N, PERIODS = 50.0, 500, 3
S = np.array([0.6, 0.6, 0.2, 0.05])
C = (0.5 * np.eye(4) + 0.5) * np.outer(S, S)
NOISE = NoiseModel(0.75 * C, 0.5 * np.eye(4)[None])
LENGTH = 1e-4  # rad


def record(seed: int, length: float = LENGTH, force: float = 1.0) -> Motion:
    """Three periods of five harmonics at 0.1 Hz, with noise on positions and forces; `force`: times that of NOISE."""
    rng = np.random.default_rng(seed)
    t = np.arange(PERIODS * N) / RATE
    exact = Motion(t, *path().at(t))
    gamma = inverse_dynamics(truth(), exact)
    q = exact.q + length * rng.normal(size=exact.q.shape)
    return Motion(t, q, np.zeros_like(q), np.zeros_like(q), forces=gamma + force * NOISE.drawn(len(t), rng)[0])


def data(seed: int) -> PeriodicData:
    return averaged_data(truth(), record(seed), "all", Likelihood(0.1, order=2))[0]


def test_through_the_door() -> None:
    scores = []
    for seed in range(6):
        fit = identify(truth(), record(seed), Likelihood(0.1, highest=8, order=2))
        scores.append((fit.values - fit.base.reduce(truth().parameters.values)) / fit.sigma)
        assert any("5 harmonics by BIC" in note for note in fit.notes)
        assert fit.estimator == "maximum likelihood" and fit.residual_sigma == pytest.approx(1.0, abs=0.1)
    assert 0.7 < np.mean(np.square(scores)) < 1.4


def test_noise_of_positions_is_in_the_deviations() -> None:
    """Two links with positions of a camera, 10 mrad of noise: over 40 logs mean z² is 1 (± .2, three standard errors), and noise of forces
    alone would make it 2 or more."""
    arm = Machine.of_bodies(
        [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.5))],
        inertia={
            "1": from_centre(4.0, [0.25, 0.0, 0.0], np.diag([0.01, 0.1, 0.1])),
            "2": from_centre(2.0, [0.2, 0.02, 0.0], np.diag([0.01, 0.05, 0.05])),
        },
        elements=[damper("q1", 0.8), damper("q2", 0.5)],
    )
    limits = JointLimits([-2.0] * 2, [2.0] * 2, [4.0] * 2, [15.0] * 2)
    along = FourierTrajectory.random(np.random.default_rng(0), limits, harmonics=4, frequency=0.5)
    t = 0.01 * np.arange(800)
    exact = Motion(t, *along.at(t))
    forces = inverse_dynamics(arm, exact)
    scores, alone, largest = [], [], 0.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        q = exact.q + 1e-2 * rng.normal(size=exact.q.shape)
        log = Motion(t, q, np.zeros_like(q), np.zeros_like(q), forces=forces + 0.1 * rng.normal(size=forces.shape))
        fit = identify(arm, log, Likelihood(0.5, highest=4))
        from_log = averaged_data(arm, log, "all", Likelihood(0.5))[0]
        at = [fit.names.index(n) for n in from_log.plant.base.names]
        added, share = trajectory_noise(from_log, 4, fit.values[at])
        largest = max(largest, share)
        off = fit.values - fit.base.reduce(arm.parameters.values)
        scores.append(off / fit.sigma)
        alone.append(
            off / np.sqrt(np.diag(fit.covariance / fit.residual_sigma**2)[at] - np.diag(added))[np.argsort(at)]
        )
        assert any("noise of positions makes deviations up to" in note for note in fit.notes)
    print(
        f"mean z² {np.mean(np.square(scores)):.2f}, by forces alone {np.mean(np.square(alone)):.2f}; {largest:.1f} of the noise of forces"
    )
    assert 0.8 < np.mean(np.square(scores)) < 1.2 and np.mean(np.square(alone)) > 2.0


def test_without_noise_of_positions_it_is_gauss_markov() -> None:
    """Section 5, δ ≈ 0: with exact positions the cost is that of (9), and the trajectory as unknowns moves nothing: values and covariance
    are those of Gauss and Markov, (9) and (10), written out for noise that is white in time and shared by the drives."""
    d = averaged_data(truth(), record(0, length=0.0), "all", Likelihood(0.1, order=0))[0]
    both = jointly(replace(d, position_noise=(1e-9) ** 2 * np.eye(4)), 5)
    A, inverse = d.plant.regressor(d.filtered(5)), np.linalg.inv(d.force_noise.news)
    P = np.linalg.inv(np.einsum("trp,rs,tsq", A, inverse, A))
    values = P @ np.einsum("trp,rs,ts", A, inverse, d.forces)
    sigma = np.sqrt(np.diag(P))
    assert np.abs((both.estimate.values - values) / sigma).max() < 1e-4
    assert both.estimate.sigma / sigma == pytest.approx(1.0, abs=1e-4)


def test_noise_of_forces_from_periods() -> None:
    kept = averaged(np.asarray(record(0).forces), RATE, 0.1)
    found = force_noise(kept, 3)
    assert found.order == 1 and found.coefficients[0] == pytest.approx(0.5 * np.eye(4), abs=0.06)
    assert found.autocovariances(0)[0] == pytest.approx(C, rel=0.15)


def test_refused_by_name() -> None:
    with pytest.raises(IdentificationError, match=r"no default settings\.\nExpected Likelihood\(frequency=…\)"):
        identify(truth(), record(0), "likelihood")
    with pytest.raises(DataError, match="does not fit the sampling"):
        identify(truth(), record(0), Likelihood(0.11))
    with pytest.raises(DataError, match="only one whole period"):
        identify(truth(), record(0)[:600], Likelihood(0.1))
    with pytest.raises(DataError, match="one periodic motion"):
        identify(truth(), [record(0), record(1)], Likelihood(0.1))
    with pytest.raises(
        IdentificationError, match=r"Likelihood.criterion: .*\nExpected 'bic' or 'aic' or 'cost', found 'dic'"
    ):
        Likelihood(0.1, criterion="dic")


def test_bic_finds_the_true_number_of_harmonics() -> None:
    """Fact 4.9: too few are a catastrophe, the bare cost always wants more, BIC stops at the truth; ten records of ten."""
    for seed in range(10):
        found = scan(data(seed), 9)
        assert found.chosen == found.least("bic") == 5
        assert found.least("cost") > 5
        assert found.cost[3] > 1e4 * found.cost[4]
        # cost is ½χ², in the mean one half for each measurement less those spent on the motion
        expected = 0.5 * (8 * N - 4 * 11 - 30)
        assert found.cost[4] == pytest.approx(expected, rel=0.15)
        assert "BIC" in found.summary()


def test_the_cost_is_that_of_equation_24() -> None:
    """White noise, so that Σ⁻¹ can be written down: the cost by hand."""
    motion = record(0)
    kept = averaged(np.column_stack([motion.q, motion.forces]), RATE, 0.1)
    positions, forces = kept.part(kept.names[:4]), kept.part(kept.names[4:])
    d = periodic_data(TreePlant(truth()), positions, forces)
    found = scan(d, 6, "cost")
    X = d.filtered(6)
    A = d.plant.regressor(X)
    eta = d.forces - A @ found.estimate.values
    delta = d.positions - X[0]
    by_hand = 0.5 * np.einsum("ti,ij,tj", delta, np.linalg.inv(kept.covariance[:4, :4] / PERIODS), delta)
    by_hand += 0.5 * np.einsum("ti,ij,tj", eta, np.linalg.inv(kept.covariance[4:, 4:] / PERIODS), eta)
    assert found.chosen == 6 and found.cost[5] == pytest.approx(by_hand)


def test_with_the_trajectory_as_unknowns() -> None:
    """One more step changes nothing; with good positions the parameters are those of the filter, and no worse known than stated."""
    d = data(0)
    both = jointly(d, 5)
    alone = scan(d, 5).estimate
    assert both.steps < 6
    assert np.abs((both.estimate.values - alone.values) / alone.sigma).max() < 0.2
    assert (both.estimate.sigma >= 0.999 * alone.sigma).all()
    assert both.trajectory.sine == pytest.approx(path().sine, abs=2e-5)
    assert both.cost <= scan(d, 5, "cost").cost[-1] * (1.0 + 1e-9)
    again = jointly(d, 5, steps=both.steps + 1, tolerance=1e-9)
    assert again.cost == pytest.approx(both.cost, rel=1e-9)


def test_other_channels_are_refused_by_name() -> None:
    kept = averaged(record(0).q, RATE, 0.1)
    with pytest.raises(DataError, match="not those of this machine"):
        periodic_data(TreePlant(truth()), kept, kept.part(kept.names[:2]))


@pytest.mark.parametrize("rests", [0.0, 0.1])
def test_samples_near_standstill_of_averaged_periods_are_left_out(rests: float) -> None:
    """Harmonics turn the sign of a slow speed some samples early or late: friction −23 to −85 deviations off with noise that remembers."""
    every, machine = [], bar.machine()
    for seed in range(6):
        c = bar.log(seed, rests).channels
        t, q = c["q.hinge"].t, c["q.hinge"].values[:, None]
        motion = Motion(t, q, np.zeros_like(q), np.zeros_like(q), forces=c["force.hinge"].values[:, None])
        every.append(bar.scores(identify(machine, motion, Likelihood(1.0 / bar.PERIOD))))
    assert np.abs(every).max() < 3.5  # of 18 normal numbers one in a hundred times more
