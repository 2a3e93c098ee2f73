"""Damaged mechanisms, studies and logs at the observer's door: each is named with its place, and none passes without a word."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from studies.crane_log import MECHANISM, TEXT, crane_log, table
from veridyn.cli.app import app

MACHINE = MECHANISM.read_text(encoding="utf-8")
STUDY = TEXT.replace("veridyn:crane.yaml", "mech.yaml")


@dataclass(frozen=True)
class Damage:
    """What is changed in mechanism, study or log; `code` 0 means that the run ends and its result tells of it."""

    name: str
    said: str
    code: int = 2
    machine: tuple[str, str] = ("", "")
    study: tuple[str, str] = ("", "")
    log: Callable[[np.ndarray], np.ndarray | None] | str = lambda rows: None


def put(at: tuple, value: float) -> Callable[[np.ndarray], None]:
    def change(rows: np.ndarray) -> None:
        rows[at] = value

    return change


def later(by: float) -> Callable[[np.ndarray], None]:
    def change(rows: np.ndarray) -> None:
        rows[30:, 0] += by

    return change


START = "start: {{coordinates: {}, rates: {}}}\nsettle:"
DAMAGES = [
    # the mechanism
    Damage(
        "a bar from a point to itself",
        r"mech.yaml, body 'rope' \(line 12\): its two ends are one point.*'T' twice",
        machine=("bar: [T, L]", "bar: [T, T]"),
    ),
    Damage(
        "a point given by another",
        r"point 'T' \(line 8\): entry 1 of at: 'L' uses 'L'",
        machine=("at: [0.5, 0]}", "at: [L, 0]}"),
    ),
    Damage(
        "a bar of negative length",
        r"body 'rope' \(line 12\): a bar has a length.*found -6",
        machine=("length: 6", "length: -6"),
    ),
    Damage(
        "a negative mass", r"body 'trolley' \(line 11\): its inertia breaks a law", machine=("mass: 80", "mass: -80")
    ),
    Damage(
        "an infinite mass",
        r"body 'trolley' \(line 11\): mass is not a finite number",
        machine=("mass: 80", "mass: 1e400"),
    ),
    Damage(
        "inertia without mass",
        r"body 'load' \(line 13\): its inertia breaks a law.*mass 0, inertia 5",
        machine=("mass: 250}", "mass: 0, inertia: 5}"),
    ),
    Damage(
        "inertia on a particle",
        r"mech.yaml, body 'load': its mass lies outside",
        machine=("mass: 250}", "mass: 250, inertia: 5}"),
    ),
    Damage(
        "a trolley, a rope and a load without mass",
        r"crane: no mass moves with 'x'.*Give the bodies their mass",
        machine=("mass", "|"),
    ),
    Damage(
        "an angle of no direction",
        r"coordinate 'swing' \(line 17\): a direction needs two points",
        machine=("of: [T, L]", "of: [T, T]"),
    ),
    Damage(
        "lengths that contradict each other",
        r"mech.yaml, crane: no pose .* they contradict each other.*'tie' \(joint 'tie'\) open by 10",
        machine=("joints:", "joints:\n  tie: {kind: distance, a: T, b: L, length: 4}"),
    ),
    Damage(
        "a constraint that says nothing new",
        r"some constraints say nothing new.*'tie' \(joint 'tie'\)",
        0,
        machine=("joints:", "joints:\n  tie: {kind: distance, a: T, b: L, length: 6}"),
    ),
    Damage(
        "gravity of one number", r"gravity \(line 5\): gravity has the wrong shape", machine=("[0, -9.81]", "[-9.81]")
    ),
    Damage(
        "a key that is none",
        r"sensor 'travel' \(line 24\): there is no key 'noise'",
        machine=("sigma: 0.002", "noise: 2, sigma: 0.002"),
    ),
    Damage(
        "a file of version 1",
        r"mech.yaml, veridyn \(line 2\): model files of version 1 are no longer read.*Write veridyn: 2",
        machine=("veridyn: 2\nname: crane\nformulation: natural", "veridyn: 1\nmechanism: crane"),
    ),
    Damage("a file that was cut off", r"mech.yaml", machine=("sensors:", "sensors: {travel: {kind: [")),
    # its sensors
    Damage(
        "a sensor on a missing body",
        r"sensor 'travel' \(line 24\): there is no body 'hook'.*Known: trolley, rope, load",
        machine=("travel: {kind: coordinate, on: x", "travel: {kind: gyroscope, on: hook"),
    ),
    Damage(
        "a gyroscope on a particle",
        r"mech.yaml, sensor 'travel', body 'load': its points and vectors do not span",
        machine=("travel: {kind: coordinate, on: x", "travel: {kind: gyroscope, on: load"),
    ),
    Damage(
        "a negative deviation",
        r"sensor 'travel' \(line 24\): its sigma is not usable.*zero or more, found -0.002",
        machine=("sigma: 0.002", "sigma: -0.002"),
    ),
    Damage(
        "no deviation",
        r"sensor 'travel' \(line 24\): it has neither noise nor a quantum",
        machine=("sigma: 0.002", "sigma: 0"),
    ),
    Damage(
        "a negative quantum",
        r"sensor 'travel' \(line 24\): its quantum is not usable",
        machine=("sigma: 0.002", "sigma: 0.002, quantum: -1"),
    ),
    Damage(
        "a quantum beyond the range",
        r"the readings of 'travel' differ by .* less than the quantum of its sensor",
        0,
        machine=("sigma: 0.002", "sigma: 0.002, quantum: 1000"),
    ),
    Damage(
        "a negative delay",
        r"sensor 'travel' \(line 24\): its delay is not usable",
        machine=("sigma: 0.002", "sigma: 0.002, delay: -0.1"),
    ),
    Damage(
        "a delay longer than the log",
        r"log.columns.travel \(line 11\): its sensor is later than the log is long.*found 100 s",
        machine=("sigma: 0.002", "sigma: 0.002, delay: 100"),
    ),
    # the study
    Damage(
        "a pose that cannot be reached",
        r"start.coordinates \(line 27\): the mechanism cannot reach this pose.*T.y = 3.*'rail: beside'",
        study=("settle:", START.format("{T.y: 3}", "{}")),
    ),
    Damage(
        "two coordinates that cannot be together",
        r"start.coordinates \(line 27\): .*cannot reach.*L.x = 100, x = 0",
        study=("settle:", START.format("{L.x: 100, x: 0}", "{}")),
    ),
    Damage(
        "rates that follow from others",
        r"start.rates \(line 27\): the rate of 'swing' follows from the others",
        study=("settle:", START.format("{}", "{x: 1, L.x: 1, swing: 2}")),
    ),
    Damage(
        "a rate beyond all measure",
        r"a shorter step, if the fastest of [\w ]+, at [\d.]+e\+0[89]/s, is true",
        study=("settle:", START.format("{}", "{swing: 1000000000}")),
    ),
    Damage(
        "a negative variance",
        r"process_noise.force \(line 19\): that of 'x' is not usable.*found -400",
        study=("force: 400", "force: -400"),
    ),
    Damage(
        "coordinates that leave some open",
        r"filter.independents \(line 16\): the given coordinates do not determine 'L.x'",
        study=("[x, swing]", "[x, T.x]"),
    ),
    Damage(
        "too many independent coordinates",
        r"filter.independents \(line 16\): these are not the independent.*Expected 2, such as x, swing",
        study=("[x, swing]", "[x, swing, L.x]"),
    ),
    Damage("a force unknown twice", r"the force 'x' is unknown once only", study=("[motor]", "[motor, motor]")),
    Damage(
        "a probability of two",
        r"filter.gate \(line 17\).*Expected less than 1 or 'auto', found the number 2",
        study=("gate: 0.9999", "gate: 2"),
    ),
    Damage(
        "steps without end",
        r"filter.step \(line 17\): the integration would take more than a million steps.*found 1e-09 s",
        study=("gate: 0.9999", "step: 1e-9"),
    ),
    Damage("a key twice", r"line 28: 'settle' stands twice", study=("settle: 0.5", "settle: 0.5\nsettle: 0.6")),
    Damage(
        "a place with three numbers in the plane",
        r"virtual.rope \(line 26\): this is no place or direction here.*Expected 2 numbers",
        study=("{kind: reaction, on: [rope, L]}", "{kind: position, on: {body: rope, at: [1, 0, 0]}}"),
    ),
    Damage(
        "a virtual accelerometer on a point",
        r"virtual.rope \(line 26\): an accelerometer has axes",
        study=("{kind: reaction, on: [rope, L]}", "{kind: accelerometer, on: L}"),
    ),
    Damage(
        "a spring that is a place",
        r"virtual.rope \(line 26\): .*Expected the name of a spring or damper, found a place on body 'rope'",
        study=("{kind: reaction, on: [rope, L]}", "{kind: spring, on: {body: rope, at: [1, 0]}}"),
    ),
    Damage(
        "a reaction where nothing is joined",
        r"virtual.rope \(line 26\): 'O' is no point of it.*one that it shares: T, L",
        study=("on: [rope, L]", "on: [rope, O]"),
    ),
    Damage(
        "a file that veridyn does not bring",
        r"model.file \(line 6\): veridyn brings no file 'kran.yaml'.*crane.yaml",
        study=("mech.yaml", "veridyn:kran.yaml"),
    ),
    # the log
    Damage(
        "a unit of something else",
        r"log.columns.travel \(line 11\): its unit is not that of the mechanism.*Expected m, found s",
        study=("trolley [mm]", "trolley [s]"),
    ),
    Damage(
        "a unit that is none",
        r"log.columns.travel \(line 11\): the unit 'millimetres' holds an unknown symbol",
        study=("trolley [mm]", "trolley [millimetres]"),
    ),
    Damage(
        "no unit",
        r"log.columns.travel \(line 11\): it has no unit.*Expected travel: COLUMN \[unit\]",
        study=("trolley [mm]", "trolley"),
    ),
    Damage(
        "metres for millimetres",
        r"no reading of 'travel' is used: is its unit right",
        0,
        study=("trolley [mm]", "trolley [m]"),
    ),
    Damage(
        "a clock in milliseconds",
        r"settle \(line 27\).*a log that lasts 0.00118 s. Is the unit of log.time right",
        study=("time [s]", "time [ms]"),
    ),
    Damage(
        "milliseconds read as seconds",
        r"its clock is slower than any motion can be followed with.*a reading every 20 s.*Is the time in milliseconds",
        log=lambda rows: rows * [1000.0, 1.0, 1.0],
    ),
    Damage(
        "a clock that runs backwards",
        r"log.time \(line 9\).*runs backwards.*0.18 s then 0.05 s at sample 10",
        log=put((10, 0), 0.05),
    ),
    Damage("a clock with a hole", r"log.time \(line 9\).*times that are not finite", log=put((10, 0), np.nan)),
    Damage("a clock that stands", r"log.time \(line 9\).*stands still", log=put((slice(None), 0), 0.0)),
    Damage(
        "a pause",
        r"the log pauses from 0.38 s to 0.8 s: the model goes on alone",
        0,
        log=lambda r: np.delete(r, slice(20, 40), axis=0),
    ),
    Damage(
        "a jump of months",
        r"log.time \(line 9\): crane.csv: the clock jumps.*0.58 s then 1e\+07 s at sample 30",
        log=later(1e7),
    ),
    Damage(
        "a column of NaN",
        r"log.columns.tilt \(line 12\): its column in crane.csv holds no number",
        log=put((slice(None), 2), np.nan),
    ),
    Damage("NaN for a while", r"'tilt' sends no numbers from 0.2 s to 0.38 s", 0, log=put((slice(10, 20), 2), np.nan)),
    Damage("an infinite reading", r"1 reading of 'travel' not used", 0, log=put((5, 1), np.inf)),
    Damage(
        "a wild reading without a gate",
        r"crane at 0.1 s: the mechanism cannot reach this pose.*a wild reading without a gate",
        study=("gate: 0.9999", "gate: null"),
        log=put((5, 1), 1e12),
    ),
    Damage(
        "no sensor's column",
        r"crane.csv, 2 faults.*there is no column 'trolley'.*there is no column 'angle'.*Known: time, a, b",
        log="time,a,b\n0,1,2\n1,2,3\n",
    ),
    Damage("an empty file", r"crane.csv, it holds no samples", log=""),
    Damage("a header alone", r"crane.csv, it holds no samples.*a header alone", log="time,trolley,angle\n"),
    Damage("a single row", r"log \(line 7\): fewer than two samples", log="time,trolley,angle\n0,1,2\n"),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.name)
def test_the_damage_is_found_and_named(tmp_path: Path, damage: Damage) -> None:
    machine, study = MACHINE, STUDY
    old, new = damage.machine
    if "|" in new:  # several masses at once
        for mass in ("mass: 80}", "mass: 3}", "mass: 250}"):
            machine = machine.replace(mass, "mass: 0}")
    elif old:
        assert old in machine
        machine = machine.replace(old, new, 1)
    if damage.study[0]:
        assert damage.study[0] in study
        study = study.replace(*damage.study, 1)
    log = damage.log
    if not isinstance(log, str):
        rows = crane_log()[1][:60].copy()
        changed = log(rows)
        log = table(rows if changed is None else changed)
    for name, text in (("mech.yaml", machine), ("study.yaml", study), ("crane.csv", log)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["observe", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "runs")])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert re.search(damage.said, done.stderr, re.DOTALL), done.stderr
    if damage.code == 2:
        assert done.exit_code == 2
        assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").iterdir())
    else:
        assert done.exit_code in (0, 1)
        result = json.loads((tmp_path / "runs" / "crane-001" / "result.json").read_text(encoding="utf-8"))
        assert any(re.search(damage.said, text, re.DOTALL) for text in result["warnings"])


def test_nothing_is_said_where_nothing_is_damaged(tmp_path: Path) -> None:
    for name, text in (("mech.yaml", MACHINE), ("study.yaml", STUDY), ("crane.csv", table(crane_log()[1][:60]))):
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["observe", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "runs")])
    assert done.exit_code == 0, done.output
    assert "warning" not in done.stderr
