"""The same log is the same fit at every door: the verb in Python, a study file in Python, and the command with ``--json``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import veridyn as vd
from studies.bench_robot import JOINTS, RATE, Bench, robot, table
from studies.closed_bench import ClosedBench, believed
from veridyn.cli.app import app
from veridyn.identify.diagnosis import judge
from veridyn.identify.diagnosis.evidence import Evidence
from veridyn.identify.result import Fit
from veridyn.inference.finding import Mistake
from veridyn.studies import load_study, run_identify

LOWPASS = 8.0
BASE = ("omega.x", "omega.y", "omega.z", "acceleration.x", "acceleration.y", "acceleration.z")
UNITS = {"q": "rad", "qd": "rad/s", "force": "N*m"}


def arm(folder: Path) -> tuple[Path, dict[str, str]]:
    """Three joints with dry friction, noise of torques, and measured speeds; everything is fitted."""
    bench = Bench(folder)
    bench.study = bench.study.replace("[validation.csv]", "none").replace("accept: {validation_percent: 5}\n", "")
    columns = {f"{kind}.{c}": f"{word}{k}" for k, c in enumerate(JOINTS, 1) for kind, word in _words(c).items()}
    return bench.write(), columns


def _words(_: str) -> dict[str, str]:
    return {"q": "q", "qd": "qd", "force": "tau"}


def late_arm(folder: Path) -> tuple[Path, dict[str, str]]:
    """The same with torques that are 20 ms late, which both doors must name."""
    bench = Bench(folder)
    for k in (1, 2, 3):
        log = bench.training
        log[f"tau{k}"] = np.interp(log["t"] - 0.02, log["t"], log[f"tau{k}"])
    study, columns = arm(folder)
    (folder / "training.csv").write_text(table(bench.training), encoding="utf-8")
    return study, columns


def linkage(folder: Path) -> tuple[Path, dict[str, str]]:
    """A palletizer, of which the drives alone are measured; its passive joints follow from closed loops."""
    bench = ClosedBench(folder)
    bench.study = bench.study.replace("[validation.csv]", "none")
    drives = believed("palletizer").actuated_coordinates
    return bench.write(), {f"q.{c}": c for c in drives} | {f"force.{c}": f"tau_{c}" for c in drives}


def free_base(folder: Path) -> tuple[Path, dict[str, str]]:
    """Two links on a base that moves, whose rates are measured; wrench rows of the base measure nothing and are zero."""
    links = [vd.model.Body("base"), vd.model.Body("1", "base", placement=vd.spatial.MDH(alpha=math.pi / 2))]
    inertia = {
        name: vd.spatial.from_centre(m, [0.1, 0.02, 0.03], np.diag([0.2, 0.3, 0.25]) * m / 5.0)
        for name, m in (("base", 5.0), ("1", 2.0))
    }
    machine = vd.Machine.of_bodies(links, base="free", inertia=inertia, elements=[vd.elements.damper("q1", 0.4)])
    rng = np.random.default_rng(4)
    t = np.arange(0.0, 10.0, 1.0 / RATE)
    f = np.array([0.3, 0.5, 0.8])
    waves = [rng.normal(size=3) @ np.sin(2 * np.pi * np.outer(f, t) + rng.uniform(0, 6, (3, 1))) for _ in range(7)]
    omega, acceleration = np.stack(waves[:3], axis=1), np.stack(waves[3:6], axis=1) + np.array([0, 0, 9.81])
    base = vd.BaseMotion(omega, np.gradient(omega, t, axis=0), acceleration)
    q = waves[6][:, None]
    motion = vd.Motion(t, q, np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0), base)
    force = vd.inverse_dynamics(machine, motion, rows="joints")[:, 0] + 0.02 * rng.normal(size=len(t))
    columns = {"t": t, "q1": q[:, 0], "tau1": force}
    columns |= {name.replace(".", "_"): x for name, x in zip(BASE, [*omega.T, *acceleration.T], strict=True)}
    vd.save_model(machine, folder / "model.yaml")
    (folder / "training.csv").write_text(table(columns), encoding="utf-8")
    named = {"q.q1": "q1", "force.q1": "tau1"} | {f"base.{name}": name.replace(".", "_") for name in BASE}
    listed = "\n".join(f"    {channel}: {column} [{unit_of(channel)}]" for channel, column in named.items())
    text = f"veridyn: 1\nkind: identify\nname: free\nmodel: {{file: model.yaml}}\nrows: joints\nlog:\n  time: t [s]\n  columns:\n{listed}\n"
    (folder / "study.yaml").write_text(
        text + f"training: [training.csv]\nvalidation: none\nsignals: {{lowpass: {LOWPASS:g}}}\n", encoding="utf-8"
    )
    return folder / "study.yaml", named


def unit_of(channel: str) -> str:
    if channel.startswith("base."):
        return "rad/s" if "omega" in channel else "m/s^2"
    return UNITS[channel.partition(".")[0]]


MACHINES: dict[str, Callable[[Path], tuple[Path, dict[str, str]]]] = {
    "arm": arm,
    "arm with late torques": late_arm,
    "closed linkage": linkage,
    "free base": free_base,
}
quiet = pytest.mark.filterwarnings("ignore::veridyn.errors.IdentificationWarning", "ignore::veridyn.errors.DataWarning")


def recorded(study: Path, columns: dict[str, str]) -> tuple[vd.Machine, vd.Experiment, str]:
    """The machine of a study, its log, and the rows that it asks for."""
    machine = vd.load_model(study.parent / "model.yaml")
    log = vd.load_log(
        study.parent / "training.csv",
        time="t",
        columns=columns,
        units={"t": "s"} | {channel: unit_of(channel) for channel in columns},
    )
    return machine, log, "joints" if machine.base == "free" else "all"


def by_motion(study: Path, columns: dict[str, str]) -> Fit:
    """What ``vd.identify`` makes of the motion of a log, with defaults but for the low-pass that the study names."""
    machine, log, rows = recorded(study, columns)
    return vd.identify(machine, vd.motion(machine, log, vd.Signals(lowpass=LOWPASS)), rows=rows)


def by_log(study: Path, columns: dict[str, str]) -> Fit:
    """What it makes of the log, with nothing said."""
    machine, log, rows = recorded(study, columns)
    return vd.identify(machine, log, rows=rows)


def saying_nothing(study: Path) -> Path:
    """The same study without a low-pass, and without a word on what it is judged by."""
    text = study.read_text(encoding="utf-8")
    for key in ("validation: none\n", f"signals: {{lowpass: {LOWPASS:g}}}\n"):
        assert key in text
        text = text.replace(key, "")
    study.write_text(text, encoding="utf-8")
    return study


DOORS: dict[str, tuple[Callable[[Path, dict[str, str]], Fit], Callable[[Path], Path]]] = {
    "a motion": (by_motion, lambda study: study),
    "a log": (by_log, saying_nothing),
}


@quiet
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", MACHINES)
def test_every_door_gives_the_same(name: str, door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, deviations, equations, findings and verdict to 1e-12; of JSON, which rounds, what it prints."""
    study, columns = MACHINES[name](tmp_path)
    by_verb, asked = DOORS[door]
    study = asked(study)
    monkeypatch.chdir(tmp_path)
    mine = by_verb(study, columns)
    theirs = run_identify(load_study(study)).study.fit
    assert mine.names == theirs.names
    np.testing.assert_allclose(mine.values, theirs.values, rtol=1e-12, atol=1e-12 * np.abs(mine.values).max())
    np.testing.assert_allclose(mine.sigma, theirs.sigma, rtol=1e-10)
    assert [(r.row, r.samples) for r in mine.rows] == [(r.row, r.samples) for r in theirs.rows]
    assert [(f.cause, f.place) for f in mine.findings] == [(f.cause, f.place) for f in theirs.findings]
    assert mine.verdict == theirs.verdict
    if name == "arm with late torques":
        late = next(f for f in mine.findings if f.cause in ("delay", "late force"))
        assert late.size == pytest.approx(0.02, abs=0.003) and mine.verdict.grade != "good"
    done = CliRunner().invoke(app, ["identify", str(study), "--json"])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["figures"]["equations"] == sum(r.samples for r in mine.rows)
    values = {p["name"]: p["value"] for p in printed["parameters"]}
    assert values == pytest.approx(dict(zip(mine.names, mine.values, strict=True)), rel=1e-9)
    assert [(f["cause"], f["place"]) for f in printed["findings"]] == [(f.cause, f.place) for f in mine.findings]
    assert printed["verdict"]["grade"] == mine.verdict.grade
    assert [r["kind"] for r in printed["verdict"]["reasons"]] == [r.kind for r in mine.verdict.reasons]


@quiet
def test_a_new_check_of_the_judge_appears_at_every_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more line in the judge, and nothing anywhere else."""
    study, columns = arm(tmp_path)
    monkeypatch.chdir(tmp_path)
    own = judge.few_samples

    def and_another(fit: Fit, seen: Evidence) -> list[Mistake]:
        return [*own(fit, seen), Mistake.of("a new check", "it was asked.", where="here")]

    monkeypatch.setattr(judge, "few_samples", and_another)
    assert [f.cause for f in by_motion(study, columns).findings] == ["a new check"]
    assert [f.cause for f in run_identify(load_study(study)).study.fit.findings] == ["a new check"]
    done = CliRunner().invoke(app, ["identify", str(study), "--json"])
    assert "it was asked" in done.output


def test_a_sampling_that_is_given_is_kept() -> None:
    """The rule of the doors is for what nobody says."""
    machine = robot()
    t = np.arange(0.0, 5.0, 1.0 / RATE)
    q = np.stack([np.sin((1.0 + k) * t + k) for k in range(3)], axis=1)
    motion = vd.Motion(t, q, np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0))
    motion = replace(motion, forces=vd.inverse_dynamics(machine, motion) + 1e-3)
    how = vd.IdentifySettings(sampling=vd.estimators.Sampling(decimate=7))
    fit = vd.identify(machine, motion, settings=how, diagnose="off")
    assert {r.samples for r in fit.rows} == {len(t[::7])}
