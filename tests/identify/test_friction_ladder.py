"""Friction ladders on arms whose friction is made by hand: what is there enters, what is not stays out, and bad settings are named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

import veridyn as vd
from identify.undiagnosed import identify
from strangers.pinocchio_oracle import PinModel
from veridyn.errors import IdentificationError
from veridyn.estimators import FrictionLadder, friction_ladder
from veridyn.identify.friction_ladder import LadderStep
from veridyn.identify.friction_terms import TERMS
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.model.elements.element import Element
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

BODIES = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.5))]
INERTIA = {
    "1": from_centre(4.0, [0.25, 0.0, 0.0], np.diag([0.01, 0.1, 0.1])),
    "2": from_centre(2.0, [0.2, 0.0, 0.0], np.diag([0.01, 0.05, 0.05])),
}


def arm(*elements: Element) -> Machine:
    return Machine.of_bodies(BODIES, inertia=INERTIA, elements=elements)


def log(seed: int, friction: str, memory: float = 0.8) -> Motion:
    """30 s at 100 Hz: forces by Pinocchio, friction by NumPy, AR(1) noise of 0.1 N m."""
    rng = np.random.default_rng(seed)
    t = 0.01 * np.arange(3000)
    limits = vd.signals.JointLimits([-2.0] * 2, [2.0] * 2, [4.0] * 2, [15.0] * 2)
    path = vd.signals.FourierTrajectory.random(rng, limits, harmonics=5, frequency=0.2)
    heat = 30.0 + 12.0 * np.sin(0.2 * t)
    m = Motion(t, *path.at(t), signals={"oil": heat})
    rigid, v = PinModel(arm()).inverse_dynamics(m), m.qd
    known = {
        "none": 0.0 * v,
        "plain": 0.8 * v + 0.6 * np.sign(v),
        "stribeck": [0.0, 0.5] * np.sign(v) / (1.0 + (v / 0.15) ** 2),
        "quadratic": [0.15, 0.0] * v * np.abs(v),
        "asymmetric": [0.0, 0.3] + [0.0, 0.2] * np.abs(v),
        "load": [0.06, 0.0] * np.abs(rigid) * np.sign(v),
        "temperature": [0.02, 0.0] * v * (heat - 25.0)[:, None],
    }
    torque = rigid + sum(known[term] for term in friction.split())
    noise = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], rng.normal(size=v.shape), axis=0)
    return replace(m, forces=torque + 0.1 * noise)


def entered(ladder: FrictionLadder) -> set[str]:
    return {f"{s.term} {s.on}" for s in ladder.entered}


@pytest.mark.parametrize(
    ("friction", "on", "name", "truth"),
    [
        ("plain stribeck", "q2", "stribeck", 0.5),
        ("plain quadratic", "q1", "quadratic", 0.15),
        ("plain asymmetric", "q2", "asymmetric", 0.3),
        ("plain load", "q1", "load", 0.06),
        ("plain temperature", "q1", "temperature", 0.02),
    ],
)
def test_what_is_there_enters_and_has_its_value(friction: str, on: str, name: str, truth: float) -> None:
    """Three standard errors are asked for, so that nothing else enters by chance."""
    m = log(5, friction)
    ladder = friction_ladder(arm(), m, rows="joints", temperature="oil", standard_errors=3.0)
    plain = {f"{term} {c}" for term in ("viscous", "coulomb") for c in ("q1", "q2")}
    assert entered(ladder) == plain | {f"{name} {on}"}
    step = next(s for s in ladder.steps if (s.term, s.on) == (name, on))
    assert step.after_percent < step.before_percent and step.fall_percent > 3.0 * step.sigma_percent > 0.0
    fit = identify(
        ladder.machine, ladder.with_loads(m), "wls", rows="joints", settings=vd.IdentifySettings(covariance="hac")
    )
    value, sigma = next(
        (x, s) for n, x, s in zip(fit.names, fit.values, fit.sigma, strict=True) if n == step.elements[0]
    )
    assert abs(value - truth) < 4.0 * sigma < 0.5 * truth
    if name == "stribeck":
        assert next(c.value for c in ladder.machine.constants) == pytest.approx(0.15, rel=0.2)


def test_without_friction_nothing_enters_at_three_standard_errors() -> None:
    ladder = friction_ladder(arm(), log(6, "none"), rows="joints", temperature="oil", standard_errors=3.0)
    assert entered(ladder) == set() and ladder.machine.elements == ()
    assert len(ladder.steps) == 2 * len(TERMS) and not any(s.reason for s in ladder.steps)


def test_what_the_model_has_is_not_tried_and_what_cannot_be_is_said() -> None:
    machine = arm(vd.elements.damper("q1"), vd.elements.coulomb("q1"))
    ladder = friction_ladder(
        machine, log(7, "plain"), rows="joints", on=["q1"], terms=("viscous", "coulomb", "temperature")
    )
    assert [s.verdict for s in ladder.steps] == [
        "in the model already",
        "in the model already",
        "not tried: no temperature is named",
    ]
    still = log(7, "plain")
    still = replace(still, signals={"oil": np.full(len(still), 30.0)})
    cold = friction_ladder(machine, still, rows="joints", on=["q1"], terms=("temperature",), temperature="oil")
    assert cold.steps[0].verdict == "not tried: the motion does not separate it from what the model has"


@pytest.mark.parametrize("decimate", [1, 10])
def test_a_short_log_behind_a_filter(decimate: int) -> None:
    """8 s through a low-pass of 2 Hz at 100 Hz: 28 blocks, which are said, and what is there enters."""
    how = Sampling(filter=Butterworth(2.0), decimate=decimate)
    ladder = friction_ladder(
        arm(),
        log(5, "plain")[:800],
        rows="joints",
        terms=("viscous", "coulomb"),
        settings=IdentifySettings(sampling=how),
        standard_errors=2.0,
    )
    assert entered(ladder) == {f"{term} {c}" for term in ("viscous", "coulomb") for c in ("q1", "q2")}
    assert ladder.figures["friction_blocks"] == 28.0
    assert "28 blocks, where 40 were asked for" in ladder.note and ladder.note in ladder.summary()
    assert not friction_ladder(arm(), log(5, "plain"), rows="joints", terms=("viscous",)).note


@pytest.mark.parametrize(
    "settings",
    [vd.estimators.Prior(relative=0.1), vd.estimators.Consistent(vd.estimators.Prior(relative=0.1), metric="entropic")],
)
def test_what_a_ladder_adds_is_left_to_the_data_beside_a_prior(
    settings: vd.estimators.Prior | vd.estimators.Consistent,
) -> None:
    """Bodies keep the prior of the drawing, here the truth to 10 %; terms that entered have no prior, and come out as they are."""
    m = log(5, "plain load")
    ladder = friction_ladder(arm(), m, rows="joints", terms=("viscous", "coulomb", "load"), standard_errors=3.0)
    assert "load q1" in entered(ladder)
    fit = identify(
        ladder.machine, ladder.with_loads(m), settings, rows="joints", settings=vd.IdentifySettings(covariance="hac")
    )
    truth = {"h_q1": 0.8, "h_q2": 0.8, "fs_q1": 0.6, "fs_q2": 0.6, "fm_q1": 0.06}
    p = fit.machine().parameters
    assert fit.standard_covariance is not None and fit.prior_share is not None
    for name, value in truth.items():
        k = p.index(name)
        sigma = float(np.sqrt(fit.standard_covariance[k, k]))
        assert abs(fit.standard[k] - value) < 4.0 * sigma < value, name
        assert fit.prior_share[k] < 1e-2
    assert fit.standard[p.index("M1")] == pytest.approx(4.0, rel=0.1)
    assert f"without a prior value, and left to the data: {', '.join(sorted(truth, key=p.index))}" in fit.notes


def test_figures_table_and_summary() -> None:
    ladder = friction_ladder(arm(), log(8, "plain"), rows="joints", terms=("viscous", "coulomb", "stribeck", "load"))
    f = ladder.figures
    assert f["friction_terms_tried"] == 8.0 and f["friction_terms_entered"] == float(len(ladder.entered))
    assert f["friction_after_percent"] < f["friction_before_percent"]
    first = ladder.steps[0]
    assert f["friction_viscous_q1_fall"] == first.fall_percent / 100.0 and f["friction_viscous_q1_enters"] == 1.0
    lines = ladder.table().splitlines()
    assert (
        len(lines) == 9
        and lines[1].startswith(f"viscous,q1,{first.before_percent:.9g},")
        and lines[1].endswith("1,enters")
    )
    assert ladder.summary().splitlines()[0].startswith(f"{len(ladder.entered)} of 8 terms enter")
    assert "±" in first.summary() and LadderStep(term="load", on="q1", reason="no").summary() == "load on q1: no"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"terms": ("viscos",)}, r"(?s)no term 'viscos'.*viscous"),
        ({"on": ["q9"]}, "no coordinate 'q9'"),
        ({"on": []}, "nothing to try"),
        ({"temperature": "oill"}, r"(?s)no signal 'oill'.*signal.oill.*Signals: oil"),
        ({"blocks": 5}, "too few blocks"),
        ({"standard_errors": -1.0}, "standard_errors is not usable"),
    ],
)
def test_bad_settings_are_named(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(IdentificationError, match=words):
        friction_ladder(arm(), log(5, "none"), rows="joints", **wrong)  # pyright: ignore[reportArgumentType]
