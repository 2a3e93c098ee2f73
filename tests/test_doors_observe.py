"""The same log is the same observation at every door: the verb in Python, a study file in Python, and the command with ``--json``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.house import arm as two_joints
from benchmarks.house import log as arm_log
from typer.testing import CliRunner

import veridyn as vd
from observe.test_observe import log as swing_log
from observe.test_observe import pendulum
from strangers.bicycle_drive import Bicycle
from veridyn.cli.app import app
from veridyn.files.access import shipped
from veridyn.inference.finding import FoundCause
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.consistency import judge
from veridyn.observe.observation import Observation
from veridyn.papers.fourbar import fourbar_run
from veridyn.studies import load_study
from veridyn.studies.run.observer import observe_study

CAR = """veridyn: 2
name: car
car: {mass: 1200, front: 1.1, rear: 1.5, yaw_inertia: 1900, front_stiffness: {value: 14, sigma: 1}, rear_stiffness: 16}
sensors:
  - {name: yaw_rate, kind: reading, on: yaw_rate, sigma: 0.003}
  - {name: ay, kind: reading, on: ay, sigma: 0.1}
"""
DRIVEN = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2"}


@dataclass(frozen=True)
class Doors:
    """A folder with a model, a log and a study of it without a word beyond what it names."""

    folder: Path
    units: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path, machine: vd.Machine | str, log: Experiment) -> Doors:
        if isinstance(machine, str):
            (folder / "model.yaml").write_text(machine, encoding="utf-8")
        else:
            vd.save_model(machine, folder / "model.yaml")
        columns = [next(iter(log.channels.values())).t, *(c.values for c in log.channels.values())]
        head = ",".join(["t", *(f"c{k}" for k in range(len(log.channels)))])
        np.savetxt(folder / "log.csv", np.column_stack(columns), delimiter=",", header=head, comments="", fmt="%.17g")
        listed = "\n".join(f'    {n}: "c{k} [{c.unit}]"' for k, (n, c) in enumerate(log.channels.items()))
        text = (
            "veridyn: 1\nkind: observe\nname: doors\nmodel: {file: model.yaml}\nlog:\n  file: log.csv\n  time: t [s]\n"
        )
        text += f"  columns:\n{listed}\n"
        (folder / "study.yaml").write_text(text, encoding="utf-8")
        return cls(folder, {n: c.unit for n, c in log.channels.items()})

    def verb(self) -> Observation:
        """What ``vd.observe`` makes of the log, with defaults."""
        named = {n: f"c{k}" for k, n in enumerate(self.units)}
        log = vd.load_log(self.folder / "log.csv", time="t", columns=named, units={"t": "s", **self.units})
        return vd.observe(vd.load_model(self.folder / "model.yaml"), log)

    def study(self) -> Observation:
        return observe_study(load_study(self.folder / "study.yaml")).observation

    def printed(self) -> dict[str, Any]:
        """What the command prints."""
        done = CliRunner().invoke(app, ["observe", str(self.folder / "study.yaml"), "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)


def hung(log: Experiment, name: str, begin: int) -> Experiment:
    """The log with a channel that repeats its reading from sample `begin` on."""
    c = log[name]
    return log.replacing(Channel(name, c.t, np.where(np.arange(len(c)) < begin, c.values, c.values[begin]), c.unit))


def arm(folder: Path) -> Doors:
    return Doors.of(folder, two_joints(), arm_log("observe", 0))


def arm_with_a_hung_encoder(folder: Path) -> Doors:
    return Doors.of(folder, two_joints(), hung(arm_log("observe", 0), "encoder1", 400))


def arm_with_a_dead_encoder(folder: Path) -> Doors:
    return Doors.of(folder, two_joints(), hung(arm_log("observe", 0), "encoder1", 0))


def natural_pendulum(folder: Path) -> Doors:
    return Doors.of(folder, pendulum(formulation="natural"), swing_log("force.phi"))


def fourbar(folder: Path) -> Doors:
    """A closed loop by points and unit vectors, of which an encoder of the crank is read; forces are unknown."""
    log = fourbar_run().log(np.random.default_rng(0))["encoder"]
    part = Channel("encoder", log.t[:150], log.values[:150], "rad")
    return Doors.of(folder, shipped("veridyn:fourbar.yaml").read_text(encoding="utf-8"), Experiment({"encoder": part}))


def car(folder: Path) -> Doors:
    drive = Bicycle(duration=40.0, rate=20.0).drive(3)
    return Doors.of(folder, CAR, Experiment.from_arrays(drive["t"], {n: drive[n] for n in DRIVEN}, DRIVEN))


def car_that_steers_the_other_way(folder: Path) -> Doors:
    drive = Bicycle(duration=40.0, rate=20.0).drive(3)
    drive["steer"] = -drive["steer"]
    return Doors.of(folder, CAR, Experiment.from_arrays(drive["t"], {n: drive[n] for n in DRIVEN}, DRIVEN))


MACHINES: dict[str, tuple[Callable[[Path], Doors], list[tuple[str, str]], str]] = {
    "arm": (arm, [], "good"),
    "hung encoder": (arm_with_a_hung_encoder, [("frozen", "encoder1")], "fair"),
    "dead encoder": (arm_with_a_dead_encoder, [("constant", "encoder1"), ("lost track", "encoder1")], "poor"),
    "rod by points": (natural_pendulum, [], "good"),
    "four-bar": (fourbar, [], "good"),
    "car": (car, [], "poor"),  # its tyres are those of the model, and the filter expects far larger errors of them
    "reversed steering": (car_that_steers_the_other_way, [("log", "channel 'steer'")], "poor"),
}
quiet = pytest.mark.filterwarnings("ignore::veridyn.errors.DataWarning")


@quiet
@pytest.mark.parametrize("name", MACHINES)
def test_every_door_gives_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """States, deviations, findings and the verdict, to 1e-12; of JSON, which rounds, what it prints."""
    make, first, grade = MACHINES[name]
    doors = make(tmp_path)
    monkeypatch.chdir(tmp_path)
    mine, theirs, printed = doors.verb(), doors.study(), doors.printed()
    assert mine.states == theirs.states
    np.testing.assert_allclose(theirs.reduced, mine.reduced, rtol=1e-12, atol=1e-12 * np.abs(mine.reduced).max())
    np.testing.assert_allclose(theirs.sigma, mine.sigma, rtol=1e-12)
    assert (theirs.findings, theirs.verdict) == (mine.findings, mine.verdict)
    assert [(f.cause, f.place) for f in mine.findings[: len(first)]] == first
    assert mine.verdict.grade == grade
    end = {p["name"].removeprefix("end."): (p["value"], p["sigma"]) for p in printed["parameters"]}
    for j, state in enumerate(mine.states):
        assert end[state] == pytest.approx((mine.reduced[-1, j], mine.sigma[-1, j]), rel=1e-9)
    assert [(f["cause"], f["place"]) for f in printed["findings"]] == [(f.cause, f.place) for f in mine.findings]
    assert printed["verdict"] == mine.verdict.record


@quiet
@pytest.mark.parametrize("make", [arm, car])
def test_a_new_check_of_the_judge_appears_at_every_door(
    make: Callable[[Path], Doors], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more function in the list of checks, and nothing anywhere else."""
    doors = make(tmp_path)
    monkeypatch.chdir(tmp_path)

    def asked(found: Observation) -> list[FoundCause]:
        return [FoundCause(cause="a new check", place=found.system.name, message="It was asked.")]

    monkeypatch.setattr(judge, "CHECKS", (asked, *judge.CHECKS))
    for states in (doors.verb(), doors.study()):
        assert states.findings[0].cause == "a new check" and "It was asked." in states.verdict.summary()
        assert "It was asked." in states.summary()
    printed = doors.printed()
    assert printed["findings"][0]["cause"] == "a new check"
    assert "It was asked." in [reason["text"] for reason in printed["verdict"]["reasons"]]
