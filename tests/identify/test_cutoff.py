import numpy as np
import pytest

from studies.bench_robot import JOINTS, RATE, recording, robot
from veridyn.errors import DataError
from veridyn.identify.cutoff import Cutoff, CutoffTrial, candidates, propose_cutoff
from veridyn.identify.sampling import Sampling
from veridyn.model.experiment import Experiment
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


def test_the_widest_band_within_5_percent_of_the_least_is_proposed() -> None:
    trials = [
        CutoffTrial(1.0, 1.0, 1.0, 3.0),
        CutoffTrial(2.0, 1.0, 1.0, 2.0),
        CutoffTrial(4.0, 1.0, 1.0, 2.09),
        CutoffTrial(8.0, 1.0, 1.0, 2.11),
    ]
    assert Cutoff(tuple(trials)).proposed == 4.0
    assert not Cutoff(tuple(trials)).at_edge
    assert Cutoff(tuple(trials[:3])).at_edge
    assert "proposed" in Cutoff(tuple(trials)).summary()


def test_candidates_follow_the_rate() -> None:
    assert candidates(1000.0) == (1.0, 1.6, 2.7, 4.3, 7.1, 12.0, 19.0, 31.0, 50.0)
    assert candidates(100.0)[-1] == 10.0
    assert candidates(20.0)[0] == 0.25
    assert candidates(1000.0, (7.0, 3.0)) == (3.0, 7.0)
    with pytest.raises(DataError, match="no cut-off to try"):
        propose_cutoff(robot(), lambda f: [], lambda f: Sampling(), ())


def test_the_table_holds_every_trial() -> None:
    made = Cutoff((CutoffTrial(2.0, 1.0, 1.5, 3.0), CutoffTrial(4.0, 0.9, 1.2, 2.5))).table()
    assert made.splitlines() == [
        "cutoff_hz,training_percent,held_out_percent,unfiltered_percent",
        "2.0,1.0,1.5,3.0",
        "4.0,0.9,1.2,2.5",
    ]
