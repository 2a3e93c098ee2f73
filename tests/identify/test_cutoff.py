from dataclasses import replace

import numpy as np
import pytest

from studies.bench_robot import JOINTS, RATE, recording, robot
from veridyn.errors import DataError
from veridyn.identify.cutoff import Cutoff, CutoffTrial, _compared, _step, _thinned, candidates, propose_cutoff
from veridyn.identify.regression.sampling import Sampling
from veridyn.model.experiment import Experiment
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals, motion

TRIED = (1.0, 3.0, 8.0, 20.0, 60.0)


def proposed(noise: float) -> Cutoff:
    raw, rng = recording(1), np.random.default_rng(5)
    values = {f"q.{c}": raw[c] + noise * rng.normal(size=len(raw["t"])) for c in JOINTS}
    values |= {f"force.{c}": raw[f"tau{k + 1}"] for k, c in enumerate(JOINTS)}
    log = Experiment.from_arrays(raw["t"], values, {n: "rad" if n.startswith("q.") else "N*m" for n in values})

    def motions(cutoff: float):
        return [motion(robot(), log, Signals(rate=RATE, lowpass=cutoff, trim=1.0))]

    return propose_cutoff(robot(), motions, lambda f: Sampling(filter=Butterworth(f), decimate=4), TRIED)


def test_the_proposal_lies_between_lost_motion_and_noise() -> None:
    """Motion reaches to 0.75 Hz with products of it to some hertz; the more noise on positions, the lower the cut-off."""
    quiet, noisy = proposed(1e-5), proposed(2e-3)
    print(quiet.summary())
    print(noisy.summary())
    assert quiet.proposed >= 8.0
    assert 1.0 < noisy.proposed <= 8.0
    assert noisy.proposed <= quiet.proposed
    errors = [t.unfiltered_percent for t in noisy.trials]
    assert errors[0] > min(errors) < errors[-1]


def test_the_widest_band_within_the_noise_of_the_least_is_proposed_and_the_table_says_why() -> None:
    trials = [
        CutoffTrial(1.0, 1.0, 3.0, 50.0, 4.0),
        CutoffTrial(2.0, 1.0, 2.0, 0.2, 0.3),
        CutoffTrial(3.0, 1.0, 2.0, 0.0, 0.0),
        CutoffTrial(4.0, 1.0, 2.09, 4.0, 4.1),
        CutoffTrial(8.0, 1.0, 2.01, 0.5, 0.4),
    ]
    made = Cutoff(tuple(trials))
    assert made.best.cutoff == 3.0 and made.proposed == 4.0
    assert [made.reason(t) for t in trials] == [
        "loses motion",
        "within the noise of the least",
        "least error",
        "proposed: widest within the noise of the least",
        "lets noise in",
    ]
    assert made.proposed not in (trials[0].cutoff, trials[-1].cutoff)
    assert Cutoff(tuple(trials[:4])).proposed == trials[3].cutoff
    assert Cutoff(tuple(trials[:3])).reason(trials[2]) == "proposed: least error"
    assert all(made.reason(t) in made.summary() for t in trials)


def test_every_row_counts_alike_whatever_force_it_carries() -> None:
    """The errors of one row are scaled by a thousand, as another unit would: the comparison stays."""
    rng = np.random.default_rng(1)
    noise = np.abs(rng.normal(1.0, 0.1, (30, 2)))
    count, size = np.full((30, 2), 50.0), np.full((30, 2), 1e4)

    def compared(scale: float) -> Cutoff:
        unit = np.array([1.0, scale**2])
        errors = [((noise * np.array([1.0, f])) * unit, size * unit, count) for f in (1.5, 1.0, 1.2)]
        return _compared((1.0, 2.0, 4.0), [0.0, 0.0, 0.0], errors)

    one, other = compared(1.0), compared(1000.0)
    assert [t.excess_percent for t in other.trials] == pytest.approx([t.excess_percent for t in one.trials])
    assert [t.noise_percent for t in other.trials] == pytest.approx([t.noise_percent for t in one.trials])
    assert one.proposed == other.proposed == 2.0
    # One row with 1.5 times the least squared error and one with the least itself: √((1 + 1.5)/2) times the least root.
    assert one.trials[0].excess_percent == pytest.approx(100.0 * (np.sqrt(1.25) - 1.0))


def test_a_cut_off_is_not_chosen_by_what_it_cuts_off_the_ends() -> None:
    """Filters of the positions that cut the ends of a log differently are compared on the same held-out samples."""
    raw, rng = recording(1), np.random.default_rng(6)
    values = {f"q.{c}": raw[c] + 1e-5 * rng.normal(size=len(raw["t"])) for c in JOINTS}
    values |= {f"force.{c}": raw[f"tau{k + 1}"] + 0.05 * rng.normal(size=len(raw["t"])) for k, c in enumerate(JOINTS)}
    log = Experiment.from_arrays(raw["t"], values, {n: "rad" if n.startswith("q.") else "N*m" for n in values})

    def motions(cutoff: float):
        return [motion(robot(), log, Signals(rate=RATE, lowpass=8.0, trim=2.0 / cutoff))]

    found = propose_cutoff(robot(), motions, lambda f: Sampling(filter=Butterworth(8.0), decimate=14), (2.0, 4.0, 8.0))
    held_out = [
        t.unfiltered_percent for t in found.trials
    ]  # the filter is the same, so all that differs is the fitted share
    assert held_out == pytest.approx([held_out[0]] * 3, rel=0.01)


def test_candidates_follow_the_rate() -> None:
    assert candidates(1000.0) == (1.0, 1.6, 2.7, 4.3, 7.1, 12.0, 19.0, 31.0, 50.0)
    assert candidates(100.0)[-1] == 10.0
    assert candidates(20.0)[0] == 0.25
    assert candidates(1000.0, (7.0, 3.0)) == (3.0, 7.0)
    with pytest.raises(DataError, match="no cut-off to try"):
        propose_cutoff(robot(), lambda f: [], lambda f: Sampling(), ())


def test_the_table_holds_every_trial() -> None:
    made = Cutoff((CutoffTrial(2.0, 1.0, 3.0, 20.0, 1.0), CutoffTrial(4.0, 0.9, 2.5, 0.0, 0.0))).table()
    assert made.splitlines() == [
        "cutoff_hz,training_percent,unfiltered_percent,excess_percent,noise_percent,reason",
        "2.0,1.0,3.0,20.0,1.0,loses motion",
        "4.0,0.9,2.5,0.0,0.0,proposed: least error",
    ]


def test_samples_between_those_that_decimation_keeps_are_left_out_alike_at_every_cutoff() -> None:
    t = np.arange(1000) / 1000.0
    whole = Motion(t, *(np.zeros((1000, 3)) for _ in range(3)))
    how = Sampling(decimate=10, trim=15, drop={"joint1": t > 0.5})
    assert _step([whole], how, 50.0) == 2
    assert _step([whole], how, 20.0) == 5
    assert _step([whole], how, 60.0) == 1
    assert _thinned([whole], how, 1) == ([whole], how)
    times = []
    for start in (0, 1, 250):
        (few, other), less = _thinned(
            [whole[start:], whole], replace(how, drop={"joint1": np.r_[t[start:], t] > 0.5}), 5
        )
        assert (less.decimate, less.trim) == (2, 3)
        np.testing.assert_array_equal(less.dropped("joint1", len(few) + len(other)), np.r_[few.t, other.t] > 0.5)
        times.append(set(few.t))
    assert times[1] < times[0] and times[2] < times[0]


def test_fewer_samples_leave_the_same_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a log of 1 kHz, with four fifths of its samples left out and with all."""
    raw, rng = recording(1), np.random.default_rng(5)
    t = np.arange(raw["t"][0], raw["t"][-1], 0.001)
    values = {f"q.{c}": np.interp(t, raw["t"], raw[c]) + 1e-4 * rng.normal(size=len(t)) for c in JOINTS}
    values |= {f"force.{c}": np.interp(t, raw["t"], raw[f"tau{k + 1}"]) for k, c in enumerate(JOINTS)}
    log = Experiment.from_arrays(t, values, {n: "rad" if n.startswith("q.") else "N*m" for n in values})

    def found() -> Cutoff:
        def motions(cutoff: float):
            return [motion(robot(), log, Signals(rate=1000.0, lowpass=cutoff, trim=1.0))]

        return propose_cutoff(
            robot(), motions, lambda f: Sampling(filter=Butterworth(f), decimate=10), (2.0, 6.0, 20.0)
        )

    few = found()
    monkeypatch.setattr("veridyn.identify.cutoff.RATE_OF_TRIALS", 1e9)
    every = found()
    for a, b in zip(few.trials, every.trials, strict=True):
        assert a.unfiltered_percent == pytest.approx(b.unfiltered_percent, rel=0.05)
        assert a.unfiltered_percent != b.unfiltered_percent
