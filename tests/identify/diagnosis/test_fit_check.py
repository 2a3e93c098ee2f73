"""The Python path: what destroyed logs and motions are reported as, and that good ones are not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import veridyn as vd
from identify.smooth_arm import NOISE, clean, drawn, forces, noisy, path, spoilt, truth
from studies.closed_bench import MACHINES, moved
from veridyn.errors import DataError, IdentificationError, IdentificationWarning
from veridyn.identify.diagnosis.fit_check import attempt, stuck_forces
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import DiagnosisSettings
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth

Change = Callable[[Motion], Motion]
RATE, LOW = 200.0, Butterworth(5.0)
TOO_OFTEN = "residuals correlated"


def kinds(motion: Motion, machine: vd.Machine | None = None, **how: object) -> list[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit = vd.identify(machine or drawn(), motion, **how)
    said = [str(w.message) for w in told if issubclass(w.category, IdentificationWarning)]
    listed = [n for n in fit.notes if n.startswith("suspected: ")]
    assert len(listed) == len(said)  # a warning is in the notes too
    return said


def with_forces(change: Callable[[np.ndarray], None]) -> Change:
    def changed(m: Motion) -> Motion:
        f = forces(m).copy()
        change(f)
        return replace(m, forces=f)

    return changed


def zeros(f: np.ndarray) -> None:
    f[700:705, 1] = 0.0


def spike(f: np.ndarray) -> None:
    f[700, 1] = 1e6


def constant(f: np.ndarray) -> None:
    f[:, 2] = 3.0


def freeze(f: np.ndarray) -> None:
    f[700:760, 1] = f[700, 1]


def swap(f: np.ndarray) -> None:
    f[:, [0, 1]] = f[:, [1, 0]]


def turn(f: np.ndarray) -> None:
    f[:, 1] *= -1.0


def all_turned(f: np.ndarray) -> None:
    f *= -1.0


def thousand(f: np.ndarray) -> None:
    f[:, 1] *= 1000.0


def in_degrees(m: Motion) -> Motion:
    d = 180.0 / np.pi
    return replace(m, q=d * m.q, qd=d * m.qd, qdd=d * m.qdd)


def in_milliseconds(m: Motion) -> Motion:
    return replace(m, t=1e3 * m.t, qd=1e-3 * m.qd, qdd=1e-6 * m.qdd)


DAMAGES: dict[str, tuple[Change, str]] = {
    "five zeros": (with_forces(zeros), "force of 'q2': it drops to zero"),
    "spike": (with_forces(spike), "force of 'q2': 1 spike"),
    "constant": (with_forces(constant), "force of 'q3': it never changes"),
    "frozen": (with_forces(freeze), "force of 'q2': it is frozen"),
    "swapped": (with_forces(swap), "forces of 'q1' and 'q2': these columns seem to be swapped"),
    "turned": (with_forces(turn), "below zero by many deviations.\nExpected positive values, found h_q2"),
    "all turned": (with_forces(all_turned), "friction or a rotor is below zero"),
    "factor 1000": (with_forces(thousand), "factor"),
    "degrees": (in_degrees, "it moves too fast"),
    "milliseconds": (in_milliseconds, "its clock is slower"),
    "50 samples": (lambda m: m[:50], "too few samples"),
}


@pytest.mark.parametrize(
    ("name", "level"), [*((name, "fast") for name in DAMAGES), ("swapped", "full"), ("spike", "full")]
)
def test_destroyed_data_are_named(name: str, level: str) -> None:
    change, words = DAMAGES[name]
    said = kinds(change(noisy(np.random.default_rng(3))), diagnose=level)
    assert any(words in text for text in said), said


@pytest.mark.parametrize("logs", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_good_data_are_not(logs: int) -> None:
    """False alarms are as rare as the settings state: no more than a binomial count exceeds in one of a hundred such tests."""
    alarms = {seed: kinds(noisy(np.random.default_rng(seed)), drawn(seed)) for seed in range(logs)}
    alarms = {seed: said for seed, said in alarms.items() if said}
    assert len(alarms) <= binom.isf(0.01, logs, DiagnosisSettings().false_alarm_rate), alarms


def test_off_says_nothing_and_other_words_are_refused() -> None:
    assert kinds(with_forces(spike)(clean()), diagnose="off") == []
    with pytest.raises(IdentificationError, match="no diagnosis 'slow'"):
        vd.identify(truth(), clean(), diagnose="slow")


def test_spikes_are_left_to_a_robust_loss() -> None:
    motion = spoilt(np.random.default_rng(0))
    fit = vd.identify(truth(), motion, "robust")  # without a warning
    assert any(n.startswith("found, and left to the method: force of 'q1'") for n in fit.notes)


def recorded(m: Motion) -> vd.Experiment:
    values = {f"q.q{k + 1}": m.q[:, k] for k in range(4)} | {f"force.q{k + 1}": forces(m)[:, k] for k in range(4)}
    units = {name: "rad" if name[0] == "q" else "N*m" for name in values}
    return vd.Experiment.from_arrays(m.t, values, units, "bench")


def test_what_is_neither_a_motion_nor_a_log_is_refused() -> None:
    log = recorded(noisy(np.random.default_rng(1)))
    for wrong in (3.0, "run.csv", [log, None]):
        with pytest.raises(DataError, match="it is no motion"):
            vd.identify(drawn(), wrong)


def test_what_motion_repairs_is_a_warning_and_a_note_of_the_fit() -> None:
    whole = noisy(np.random.default_rng(1))
    log = recorded(with_forces(zeros)(whole))
    with pytest.warns(vd.errors.DataWarning, match=r"bench, channel 'force.q2': it drops to zero 1 time"):
        motion = vd.motion(drawn(), log)
    assert motion.notes == ("repaired: 5 sample(s) of dropouts to zero of channel 'force.q2', first at t = 7.000000 s, "
                            "bridged from the neighbours",)  # fmt: skip
    fit, good = (vd.identify(drawn(), m) for m in (motion, vd.motion(drawn(), recorded(whole))))
    assert motion.notes[0] in fit.notes
    assert np.abs((fit.values - good.values) / good.sigma).max() < 0.5
    with pytest.warns(vd.errors.DataWarning, match="drops to zero"):
        kept = vd.motion(drawn(), log, vd.Signals(inspection="report"))
    assert np.all(kept.forces[700:705, 1] == 0.0)
    assert np.all(vd.motion(drawn(), log, vd.Signals(inspection="off")).forces[700:705, 1] == 0.0)


def test_a_force_that_is_nothing_for_half_of_a_motion_is_frozen() -> None:
    """Too long for a dropout, and zero too often for a freeze; the machine moves meanwhile. One that rests keeps its forces."""
    motion = noisy(np.random.default_rng(11))
    y = forces(motion).copy()
    y[500:1300, 2] = 0.0
    fit = vd.identify(drawn(), replace(motion, forces=y), diagnose="off")
    (found,) = stuck_forces(fit, [replace(motion, forces=y)])
    assert found.kind == "frozen"
    assert "force of 'q3': it is frozen from t = 5.000000 s to t = 12.990000 s" in str(found)
    assert stuck_forces(fit, [motion]) == []
    rest = np.zeros((200, 4))
    still = vd.Motion(0.01 * np.arange(200), rest + motion.q[0], rest, rest, forces=np.tile(y[0], (200, 1)))
    assert stuck_forces(fit, [still]) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_force_of_a_joint_at_rest_is_not_frozen_for_the_sign_of_its_noisy_speed(seed: int) -> None:
    """Dry friction of the fit changes its sign with that noise; the drive holds one force. It is most of what the joint about the vertical
    needs, five times slower. Where the joint moves, such a force is frozen."""
    rng = np.random.default_rng(seed)
    motion = noisy(rng)
    fit = vd.identify(drawn(), motion, diagnose="off")
    N, rest = len(motion), np.zeros((600, 4))
    slow = replace(motion, t=5.0 * motion.t, qd=motion.qd / 5.0, qdd=motion.qdd / 25.0)
    moved = vd.inverse_dynamics(truth(), slow)
    q, qd = np.vstack([slow.q, rest + slow.q[-1]]), np.vstack([slow.qd, 2e-3 * rng.standard_normal(rest.shape)])
    t, qdd, y = 0.05 * np.arange(N + 600), np.vstack([slow.qdd, rest]), np.vstack([moved, rest + moved[-1]])
    y += 0.05 * rng.standard_normal(y.shape)
    y[N + 100 : N + 500, 0] = y[N + 100, 0]
    assert stuck_forces(fit, [vd.Motion(t, q, qd, qdd, forces=y)]) == []
    y = forces(motion).copy()
    y[100:500, 1] = y[100, 1]
    assert [one.kind for one in stuck_forces(fit, [replace(motion, forces=y)])] == ["frozen"]


@cache
def recorded_filtered(seed: int = 0) -> vd.Motion:
    t = np.arange(int(20.0 * RATE)) / RATE
    m = vd.Motion(t, *path().at(t))
    noise = NOISE * np.random.default_rng(seed).normal(size=m.q.shape)
    return replace(m, forces=vd.inverse_dynamics(truth(), m) + noise)


def fit_of(step: int, seed: int = 0, low: Butterworth | None = LOW, covariance: str = "white", **how: object) -> Fit:
    settings = vd.IdentifySettings(covariance=covariance, sampling=Sampling(filter=low, decimate=step, trim=100))
    return vd.identify(drawn(), recorded_filtered(seed), settings=settings, **how)


def test_it_is_named_with_a_remedy() -> None:
    with pytest.warns(
        IdentificationWarning, match=rf"{TOO_OFTEN}[\s\S]*covariance at 'auto'[\s\S]*decimate=22"
    ) as told:
        fit_of(1)
    assert len([w for w in told if TOO_OFTEN in str(w.message)]) == 1


@pytest.mark.parametrize(
    "how",
    [{"step": 22}, {"step": 1, "covariance": "hac"}, {"step": 1, "low": None}, {"step": 1, "method": "gauss_markov"}],
)
def test_it_is_not_where_residuals_are_white_or_allowed_for(how: dict[str, object]) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", TOO_OFTEN, IdentificationWarning)
        fit_of(**how)  # pyright: ignore[reportArgumentType]


def test_the_factor_is_that_of_repeated_logs() -> None:
    """Twelve logs: the spread over stated deviations is within a quarter of √(1/g²), and within a third of 1 with the remedy."""
    for step, expected in ((1, 1.0 / LOW.white_gain(RATE)), (22, 1.0)):
        fits = [fit_of(step, seed, diagnose="off") for seed in range(12)]
        true = fits[0].base.reduce(truth().parameters.values)
        z = np.array([(f.values - true) / f.sigma for f in fits])
        print(f"one in {step}: rms z {np.sqrt(np.mean(z**2)):.2f}, expected {expected:.2f}")
        assert np.sqrt(np.mean(z**2)) == pytest.approx(expected, rel=0.33)


def test_a_trial_that_fails_is_named_with_its_reason() -> None:
    machine, m = MACHINES["palletizer"](), moved("palletizer", 1)[:50]
    bent = replace(m, qdd=m.qdd + 0.1)  # passive joints do not follow
    failed: list[str] = []
    assert attempt("Swapped columns", lambda: [regressor(machine, bent)], failed) == []
    assert len(attempt("Delays", lambda: [regressor(machine, m)], failed)) == 1
    (note,) = failed
    assert note.startswith("Swapped columns, because a trial failed: palletizer, sample ")
    assert "the accelerations of this motion open its loops" in note and "loop 'elbow" in note


def test_a_decomposition_that_fails_is_named() -> None:
    failed: list[str] = []
    assert attempt("Delays", lambda: [np.linalg.inv(np.zeros((2, 2)))], failed) == []
    assert failed == ["Delays, because a decomposition failed: Singular matrix."]


def test_errors_of_the_program_itself_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        attempt("A slip", lambda: [1 // 0], [])
