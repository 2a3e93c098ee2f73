"""What cannot be streamed is refused by place, before anything is computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from identify.dense_equations import arm, log, suspended
from strangers.cars import car_20
from strangers.random_trees import random_motion
from veridyn.errors import DataError, ModelError
from veridyn.identify.estimate import identify
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth


def test_an_actuated_joint_without_force_is_refused() -> None:
    forces = log(50).forces.copy()
    forces[:, 1] = np.nan
    with pytest.raises(
        DataError, match=r"row 'q2': the joint is actuated, and no force of it is measured[\s\S]*rows=…"
    ):
        observation(arm(), replace(log(50), forces=forces))
    assert observation(arm(), replace(log(50), forces=forces), ["q1", "q3"]).samples == 100


def test_a_passive_joint_with_a_force_is_refused() -> None:
    machine = suspended(500.0)
    motion = Motion(np.arange(9.0), *np.ones((3, 9, 1)), forces=np.full((9, 1), 3.5))
    with pytest.raises(
        DataError, match=r"row 'q1': the joint is passive, and yet a force of it is given[\s\S]*found up to 3\.5"
    ):
        observation(machine, motion)
    quiet = replace(motion, forces=np.full((9, 1), np.nan))
    assert observation(machine, quiet).samples == 9


def test_gaps_cannot_be_filtered() -> None:
    forces = log(300).forces.copy()
    forces[7, 0] = np.nan
    with pytest.raises(DataError, match=r"row 'q1': its measured force has gaps \(NaN\), which a filter would smear"):
        observation(
            arm(),
            replace(log(300), forces=forces),
            settings=IdentifySettings(sampling=Sampling(filter=Butterworth(10.0))),
        )


@pytest.mark.parametrize("value", [1e160, -1e300, np.inf])
def test_a_force_that_no_machine_has_is_refused_by_place(value: float) -> None:
    """Its square overflows: what came of it was an infinite triangle, and an error of the solver."""
    forces = log(50).forces.copy()
    forces[7, 1] = value
    for method in ("ols", "wls", "robust"):
        with pytest.raises(
            DataError, match=r"motion\.forces, 'q2': no measured quantity is so large[\s\S]*1e\+50 in SI units"
        ):
            identify(arm(), replace(log(50), forces=forces), method)


def test_other_values_that_no_machine_has_are_refused_too() -> None:
    qdd = log(50).qdd.copy()
    qdd[7:9, 0] = 1e160
    motion = replace(log(50), qdd=qdd, signals={"current": np.full(50, -1e99)})
    with pytest.raises(
        DataError, match=r"'q1'[\s\S]*1e\+160 at t = [\s\S]*2 in all[\s\S]*motion\.signals\['current'\]"
    ):
        observation(arm(), motion)


def test_an_unknown_row_is_refused() -> None:
    with pytest.raises(ModelError, match="there is no row 'q9'"):
        observation(arm(), log(50), ["q9"])


def test_wrong_settings_are_reported_all_at_once() -> None:
    how = Sampling(dead_zone={"q7": 1.0}, drop={"q1": np.zeros(3, dtype=bool)}, decimate=0, method="svd")
    with pytest.raises(DataError) as caught:
        observation(arm(), log(50), settings=IdentifySettings(sampling=how))
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
    machine = car_20()
    motion = random_motion(np.random.default_rng(0), machine, 20)
    with pytest.raises(DataError, match="row 'fx' has no speed of its own"):
        observation(machine, motion, settings=IdentifySettings(sampling=Sampling(dead_zone={"fx": 1.0})))


def test_no_motion_and_other_models_are_refused() -> None:
    with pytest.raises(DataError, match="there is no motion to identify from"):
        observation(arm(), [])
    other = observation(suspended(500.0), Motion(np.arange(9.0), *np.ones((3, 9, 1))))
    with pytest.raises(DataError, match="observations of different models or rows cannot be merged"):
        observation(arm(), log(50)).merge(other)
