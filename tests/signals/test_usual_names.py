"""Logs under usual names are read; ambiguous ones are refused with both ways named; veridyn's own names are left alone."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import DataError
from veridyn.model.body import Body
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.signals.usual_names import with_usual_names

T = np.arange(200) / 100.0


def arm() -> Machine:
    return Machine.of_bodies([Body("1"), Body("2", "1", "sliding")], name="arm")


def robot() -> Machine:
    return Machine.of_bodies([Body("a", coordinate="shoulder_pan"), Body("b", "a", coordinate="elbow")], name="robot")


def log(**units: str) -> Experiment:
    plain = {name.replace("__", " "): unit for name, unit in units.items()}
    return Experiment.from_arrays(T, {n: np.sin(9.0 * T + len(n)) for n in plain}, plain, "run.csv")


@pytest.mark.parametrize(
    "units",
    [
        {"q1": "rad", "q2": "m", "tau1": "N*m", "tau2": "N"},
        {"Pos_1": "rad", "Pos_2": "m", "Torque_1": "N*m", "Torque_2": "N"},
        {"position__1": "rad", "position__2": "m", "effort__1": "N*m", "effort__2": "N"},
    ],
)
def test_numbered_columns(units) -> None:
    found = with_usual_names(arm(), log(**units))
    assert set(found.names) == {"q.q1", "q.q2", "force.q1", "force.q2"}
    first = next(iter(units)).replace("__", " ")
    assert np.array_equal(found["q.q1"].values, log(**units)[first].values)


def test_columns_named_after_joints() -> None:
    found = with_usual_names(
        robot(), log(shoulder_pan="rad", elbow="rad", shoulder_pan_effort="N*m", elbow_effort="N*m")
    )
    assert set(found.names) == {"q.shoulder_pan", "q.elbow", "force.shoulder_pan", "force.elbow"}


def test_the_unit_decides_what_a_name_may_be() -> None:
    found = with_usual_names(arm(), log(q1="rad", q2="rad", tau1="A", tau2="A"))
    assert set(found.names) == {"q1", "q2", "tau1", "tau2"}  # q2 slides; currents are no forces
    half = with_usual_names(arm(), log(q1="rad", temperature="K"))
    assert set(half.names) == {"q1", "temperature"}  # one coordinate is missing


def test_two_ways_are_refused_and_both_are_named() -> None:
    with pytest.raises(DataError, match=r"several channels may be the forces[\s\S]*tau1, tau2; torque1, torque2"):
        with_usual_names(arm(), log(q1="rad", q2="m", tau1="N*m", tau2="N", torque1="N*m", torque2="N"))


def test_own_names_win() -> None:
    given = Experiment.from_arrays(T, {"q.q1": T, "q1": T, "q2": T}, {"q.q1": "rad", "q1": "rad", "q2": "m"}, "run.csv")
    assert with_usual_names(arm(), given) is given


def test_a_csv_with_the_headers_of_the_readme_becomes_a_motion(tmp_path) -> None:
    file = tmp_path / "run.csv"
    rows = np.column_stack([T, np.sin(3 * T), 0.1 * np.cos(2 * T), np.cos(3 * T), 2 * np.sin(T)])
    head = "time [s],q1 [rad],q2 [m],tau1 [N*m],tau2 [N]"
    np.savetxt(file, rows, delimiter=",", header=head, comments="")
    motion = vd.motion(arm(), vd.load_log(file), vd.Signals(lowpass=20.0))
    assert motion.forces is not None and motion.forces[50, 0] == pytest.approx(np.cos(3 * motion.t[50]), abs=0.02)
