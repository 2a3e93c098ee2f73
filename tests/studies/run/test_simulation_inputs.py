"""Inputs and motions of a study as functions of time, against the numbers that were written into its tables."""

from pathlib import Path

import numpy as np
import pytest

from studies.arm_simulation import FREE, LED, written
from veridyn.errors import FileError
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.studies.config.study import load_study
from veridyn.studies.run.simulation_inputs import duration_of, followed, given_inputs

UNITS = {"force.q1": "N*m", "force.q2": "N*m", "wrench.3.fx": "N"}
ANGLES = {"q1": "rad", "q2": "rad", "q3": "rad"}
T = np.linspace(7.0, 8.0, 51)


def inputs(folder: Path, section: str, duration: float = 0.5):
    return given_inputs(load_study(written(folder, FREE + f"inputs: {section}\n")), UNITS, duration)


def motion(folder: Path, section: str):
    return load_study(written(folder, FREE.replace("duration: 0.5\n", "") + f"motion: {section}\n"))


def test_formulas_numbers_and_tables(tmp_path: Path) -> None:
    rows = ["t [s],a [kN*m]", "3,0.001", "3.4,0.002", "3.5,0.004"]
    (tmp_path / "in.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    given = inputs(tmp_path, "{formulas: {force.q1: 2*t + exp(0) + step(t - 0.3), wrench.3.fx: 4}}")
    assert (given["force.q1"](0.25), given["force.q1"](0.3), given["wrench.3.fx"](9.0)) == (1.5, 2.6, 4.0)
    table = "file: in.csv, columns: {force.q2: a}"
    assert inputs(tmp_path, f"{{{table}}}")["force.q2"](0.2) == pytest.approx(
        1.5
    )  # the table begins with the simulation
    held = inputs(tmp_path, f"{{{table}, between: hold}}")["force.q2"]
    assert (held(0.39), held(0.4), held(0.5)) == pytest.approx((1.0, 2.0, 4.0))


def test_a_formula_that_fails_on_the_way_says_when(tmp_path: Path) -> None:
    f = inputs(tmp_path, "{formulas: {force.q1: 1/(t - 0.25)}}")["force.q1"]
    assert f(0.5) == 4.0
    with pytest.raises(FileError, match=r"inputs.formulas.force.q1 \(line 8\):.*divides by zero.\nFound t = 0.25 s"):
        f(0.25)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("{formulas: {force.q7: 1}}", r"inputs.formulas.force.q7 \(line 8\): 'force.q7' is no input(.|\n)*'force.q2'"),
        ("{formulas: {force.q1: sinus(t)}}", "it calls 'sinus'"),
        ("{formulas: {force.q1: 2*s}}", "uses 's', which is no constant"),
        ("{file: no.csv, columns: {force.q1: a}}", "there is no such file"),
        ("{file: in.csv, columns: {force.q1: b}}", "there is no column 'b'"),
        (
            "{file: in.csv, columns: {force.q1: 'a [m]'}}",
            r"inputs.columns.force.q1 \(line 8\): its unit is not that of",
        ),
        ("{file: in.csv, columns: {force.q1: 'a [N*m]'}}", "ends before the simulation does"),
        ("{file: gap.csv, columns: {force.q1: 'a [N*m]'}}", "has gaps(.|\n)*row 2"),
    ],
)
def test_bad_inputs_are_refused_by_name(tmp_path: Path, section: str, words: str) -> None:
    (tmp_path / "in.csv").write_text("t [s],a\n0,1\n0.1,2\n", encoding="utf-8")
    (tmp_path / "gap.csv").write_text("t [s],a\n0,1\n0.1,\n1,2\n", encoding="utf-8")
    with pytest.raises(FileError, match=words):
        inputs(tmp_path, section)


def trajectory(folder: Path, rates: bool = True) -> FourierTrajectory:
    """A table as veridyn excite writes it."""
    series = FourierTrajectory([0.1, -0.5, 0.3], 0.2 * np.ones((3, 2)), 0.1 * np.ones((3, 2)), 1.0)
    orders = dict(zip(("q", "qd", "qdd") if rates else ("q",), series.at(T)))
    names = [f"{o}.q{k} [rad{per}]" for o, per in zip(orders, ("", "/s", "/s^2")) for k in (1, 2, 3)]
    table = np.column_stack([T, *orders.values()])
    np.savetxt(folder / "trajectory.csv", table, delimiter=",", header=",".join(["time [s]", *names]), comments="")
    return series


@pytest.mark.parametrize("rates", [True, False])
def test_a_table_of_positions_is_followed(tmp_path: Path, rates: bool) -> None:
    series = trajectory(tmp_path, rates)
    loaded = motion(tmp_path, "{file: trajectory.csv}")
    led = followed(loaded, ANGLES, ["q1", "q2", "q3"])
    assert (
        led.names == ("q1", "q2", "q3") and led.length == pytest.approx(1.0) and duration_of(loaded, led) == led.length
    )
    t = np.linspace(0.1, 0.9, 33)
    for found, wanted, most in zip(led.reference.at(t), series.at(t + 7.0), (1e-7, 1e-5, 2e-3)):
        assert found == pytest.approx(wanted, abs=most)


def test_a_fourier_series_is_as_its_numbers_say(tmp_path: Path) -> None:
    led = followed(load_study(written(tmp_path, LED)), ANGLES, list(ANGLES))
    x = 2.0 * np.pi * 0.5 * 0.7
    wanted = [0.3 * np.sin(x), -0.5 + 0.2 * np.sin(x) + 0.1 * np.sin(2 * x), 0.4 * np.sin(x) + 0.2 * np.cos(2 * x)]
    assert led.length is None and led.reference.at(0.7)[0] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("{file: trajectory.csv, columns: {p.q1: a}}", "'p.q1' is no channel of a motion"),
        ("{file: trajectory.csv, time: clock}", "there is no column 'clock'"),
        ("{file: other.csv}", "no column of other.csv holds positions"),
        ("{file: trajectory.csv, columns: {q.q1: 'q.q1 [m]', q.q2: q.q2, q.q3: q.q3}}", "its unit is not that"),
    ],
)
def test_bad_motions_are_refused(tmp_path: Path, section: str, words: str) -> None:
    trajectory(tmp_path)
    (tmp_path / "other.csv").write_text("time [s],x [m]\n0,1\n1,2\n", encoding="utf-8")
    with pytest.raises(FileError, match=words):
        followed(motion(tmp_path, section), ANGLES, list(ANGLES))


def test_a_motion_cannot_be_longer_than_its_table(tmp_path: Path) -> None:
    trajectory(tmp_path)
    loaded = load_study(
        written(tmp_path, FREE.replace("duration: 0.5", "duration: 2") + "motion: {file: trajectory.csv}\n")
    )
    with pytest.raises(FileError, match=r"duration \(line \d\): the motion ends before(.|\n)*1 s"):
        duration_of(loaded, followed(loaded, ANGLES, list(ANGLES)))
    with pytest.raises(FileError, match="'q9' is not among the coordinates"):
        followed(load_study(written(tmp_path, LED.replace("q1: [0.3]", "q9: [0.3]"))), ANGLES, list(ANGLES))
