"""Damaged logs of a leg that follows its commands: each mistake is named, through the API and by a study, and a good log passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.identify.drives.demo_leg import recorded_leg
from typer.testing import CliRunner

import veridyn as vd
from veridyn.cli.app import app
from veridyn.errors import DataError, DataWarning
from veridyn.files.machine.write import save_model
from veridyn.identify.drives.drive_log import drive_records
from veridyn.signals.command_checks import CommandedLog, command_faults

Log = vd.Experiment
STUDY = """veridyn: 1
kind: identify
name: leg
model: {{file: leg.yaml}}
log:
  columns:
    command.thigh: command.thigh [rad]
    command.calf: command.calf [rad]
    position.thigh: position.thigh [rad]
    position.calf: position.calf [rad]
  {how}
training: [{log}]
drives: {{friction: coulomb, estimate: [coulomb]}}
"""


def changed(log: Log, change: Callable[[vd.model.Channel], vd.model.Channel], *names: str) -> Log:
    """The log with some channels changed, those that begin with one of the names."""
    own = {n: change(c) if n.startswith(names) else c for n, c in log.channels.items()}
    return vd.Experiment(own, log.name)


def values(of: Callable[[np.ndarray], np.ndarray]) -> Callable[[vd.model.Channel], vd.model.Channel]:
    return lambda c: replace(c, values=of(c.values))


def times(of: Callable[[np.ndarray], np.ndarray]) -> Callable[[vd.model.Channel], vd.model.Channel]:
    return lambda c: replace(c, t=of(c.t))


def delayed(seconds: float) -> Callable[[vd.model.Channel], vd.model.Channel]:
    return lambda c: replace(c, values=np.interp(c.t - seconds, c.t, c.values))


def exchanged(log: Log) -> Log:
    a, b = log["position.thigh"], log["position.calf"]
    new = {"position.thigh": replace(b, name="position.thigh"), "position.calf": replace(a, name="position.calf")}
    return vd.Experiment({**log.channels, **new}, log.name)


def with_gap(log: Log) -> Log:
    keep = np.abs(log["command.thigh"].t - 3.0) > 0.2
    return changed(log, lambda c: replace(c, t=c.t[keep], values=c.values[keep]), "command", "position")


DAMAGES: dict[str, tuple[Callable[[Log], Log], str]] = {
    "other epoch": (
        lambda x: changed(x, times(lambda t: t + 1.7e9), "position"),
        "its clock is not that of the positions",
    ),
    "positions early": (lambda x: changed(x, delayed(0.15), "command"), "positions move before their commands"),
    "positions late": (lambda x: changed(x, delayed(0.4), "position"), "positions come too late behind their commands"),
    "clocks run apart": (
        lambda x: changed(x, lambda c: replace(c, values=np.interp(0.95 * c.t, c.t, c.values)), "position"),
        "clocks of commands and positions run apart",
    ),
    "positions in degrees": (lambda x: changed(x, values(np.degrees), "position"), "looks like degrees"),
    "all in degrees": (
        lambda x: changed(x, values(np.degrees), "position", "command"),
        "they look like degrees, commands and positions alike",
    ),
    "joints exchanged": (exchanged, "follows the command of"),
    "sign turned": (lambda x: changed(x, values(lambda q: -q), "position.calf"), "moves against its command"),
    "a stop": (lambda x: changed(x, values(lambda q: np.minimum(q, -1.45)), "position.calf"), "a stop, it seems"),
    "encoder frozen": (lambda x: changed(x, values(lambda q: 0.0 * q + 1.0), "position.thigh"), "never changes"),
    "a gap": (with_gap, "clock is not even"),
    "commands with a gap": (
        lambda x: changed(
            x,
            lambda c: replace(c, t=np.delete(c.t, slice(400, 600)), values=np.delete(c.values, slice(400, 600))),
            "command",
        ),
        "it has no command for 1",
    ),
    "no command moves": (lambda x: changed(x, values(lambda r: 0.0 * r), "command"), "no command of it moves"),
}


def test_a_good_log_passes() -> None:
    made = recorded_leg()
    assert len(drive_records(made.model, [made.training, made.validation])) == 2


@pytest.mark.parametrize(("lowest", "stops"), [(-np.inf, 0), (0.0, 1)])
def test_friction_that_holds_is_no_stop(lowest: float, stops: int) -> None:
    """Slow motion under dry friction follows within ±f/kp (the play operator), and stands wherever it turns; a stop is one place."""
    t, half = np.arange(2001) / 200.0, 0.15 if stops == 0 else 0.01
    r = 0.2 * np.sin(1.9 * t) + 0.12 * np.sin(4.3 * t + 1.0)
    q = np.zeros_like(r)
    for k in range(1, len(r)):
        q[k] = max(min(max(q[k - 1], r[k] - half), r[k] + half), lowest)
    gains = {"kp": np.array([20.0]), "kd": np.array([0.5]), "limit": np.array([np.inf]), "tick": 1e-3}
    log = CommandedLog(
        name="hip", joints=("hip",), turning=(True,), step=5e-3, command=r[:, None], position=q[:, None], **gains
    )
    found = [fault for fault in command_faults(log) if "a stop" in fault.what]
    assert len(found) == stops


@pytest.mark.parametrize("name", DAMAGES)
def test_mistakes_are_named_before_anything_is_simulated(name: str) -> None:
    damage, words = DAMAGES[name]
    made = recorded_leg()
    with pytest.raises(DataError, match=words):
        vd.identify(made.model, damage(made.training), vd.estimators.Drives(until=made.fitted))


def written(folder: Path, log: Log) -> tuple[str, str]:
    """A table of the log, one clock for each channel where they differ: the file and how a study reads it."""
    clocks = {c.t.tobytes() for c in log.channels.values()}
    if len(clocks) == 1:
        names = list(log.channels)
        rows = np.stack([log["command.thigh"].t, *(log[n].values for n in names)], axis=1)
        np.savetxt(folder / "log.csv", rows, delimiter=",", header=",".join(["t", *names]), comments="", fmt="%.16g")
        return "log.csv", "time: t [s]"
    for start in ("command", "position"):
        own = [n for n in log.channels if n.startswith(start)]
        rows = np.stack([log[own[0]].t, *(log[n].values for n in own)], axis=1)
        np.savetxt(folder / f"{start}.csv", rows, delimiter=",", header=",".join(["t", *own]), comments="", fmt="%.16g")
    how = 'parts: {command: {time: "t [s]"}, position: {time: "t [s]"}}'
    return "{files: {command: command.csv, position: position.csv}}", how


@pytest.mark.parametrize("name", DAMAGES)
def test_a_study_names_them_too(name: str, tmp_path: Path) -> None:
    damage, words = DAMAGES[name]
    made = recorded_leg()
    save_model(made.model, tmp_path / "leg.yaml")
    file, how = written(tmp_path, damage(made.training))
    (tmp_path / "study.yaml").write_text(STUDY.format(log=file, how=how), encoding="utf-8")
    done = CliRunner().invoke(app, ["identify", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "runs")])
    assert done.exit_code == 2 and words in " ".join((done.output + done.stderr).split()), done.output


def limited(machine: vd.Machine, limit: float) -> vd.Machine:
    return machine.with_controllers(
        [replace(c, constants={**c.constants, "limit": limit}) for c in machine.controllers]
    )


def faster(machine: vd.Machine, rate: float) -> vd.Machine:
    return machine.with_controllers([replace(c, rate=rate) for c in machine.controllers])


@pytest.mark.parametrize(
    ("damage", "machine", "words"),
    [
        (
            lambda x: changed(x, values(lambda r: 0.0 * r - 1.6), "command.calf"),
            None,
            r"command of 1 joint\(s\) is constant: calf",
        ),
        (None, lambda m: limited(m, 0.8), "at its limit of 0.8 for"),
        (None, lambda m: faster(m, 300.0), "no whole number of the drives' ticks"),
        (None, lambda m: faster(m, 100.0), "no whole number of the drives' ticks"),
    ],
    ids=["constant command", "saturated", "odd rate", "log faster than the drives"],
)
def test_what_leaves_parts_blind_is_a_warning(
    damage: Callable[[Log], Log] | None, machine: Callable[[vd.Machine], vd.Machine] | None, words: str
) -> None:
    made = recorded_leg()
    log = made.training if damage is None else damage(made.training)
    with pytest.warns(DataWarning, match=words):
        assert drive_records(made.model if machine is None else machine(made.model), log)


def test_a_study_keeps_the_warning(tmp_path: Path) -> None:
    made = recorded_leg()
    save_model(limited(made.model, 0.8), tmp_path / "leg.yaml")
    file, how = written(tmp_path, made.training)
    (tmp_path / "study.yaml").write_text(STUDY.format(log=file, how=how), encoding="utf-8")
    done = CliRunner().invoke(app, ["identify", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "runs")])
    assert done.exit_code == 0, done.output
    assert "at its limit of 0.8" in (tmp_path / "runs" / "leg-001" / "result.json").read_text("utf-8")


def slow_servo(t: np.ndarray, command: np.ndarray, kind: str) -> np.ndarray:
    """A servo of second order by Euler's steps, whose torque or whose setpoint has a limit; it reads its command 20 ms late."""
    step, q, v, setpoint, out = float(t[1]) / 10, 0.0, 0.0, 0.0, np.empty(len(t))
    for k in range(len(t)):
        out[k] = q
        asked = float(command[max(k - round(0.02 / t[1]), 0)])
        for _ in range(10):
            setpoint += min(max(asked - setpoint, -2.0 * step), 2.0 * step) if kind == "speed" else asked - setpoint
            torque = 20.0 * (setpoint - q) - 0.5 * v
            torque = min(max(torque, -0.6), 0.6) if kind == "torque" else torque
            v += step * (torque - 0.3 * v) / 0.015
            q += step * v
    return out


@pytest.mark.parametrize("hold", [(0.4, 1.5), (1.0, 3.0)])
@pytest.mark.parametrize("kind", ["plain", "torque", "speed"])
def test_records_of_steps(kind: str, hold: tuple[float, float]) -> None:
    """Steps that a servo follows as slowly as its limits let it are no clock's fault; clocks that are .4 s late or .15 s early are."""
    rng, t = np.random.default_rng(7), np.arange(2001) / 100.0
    command, at = np.zeros(len(t)), 0.5
    while at < t[-1]:
        command[t >= at] = rng.uniform(-1.2, 1.2)
        at += rng.uniform(*hold)
    followed, noise = slow_servo(t, command, kind), 1e-3 * rng.normal(size=len(t))
    for late, words in ((0.0, ""), (0.4, "too late"), (-0.15, "before their commands")):
        log = CommandedLog(
            name="steps",
            joints=("servo",),
            turning=(True,),
            step=t[1],
            command=command[:, None],
            position=(np.interp(t - late, t, followed) + noise)[:, None],
            kp=np.array([20.0]),
            kd=np.array([0.5]),
            limit=np.array([np.inf]),
            tick=1e-3,
        )
        found = [f.what for f in command_faults(log)]
        assert (not found) if not words else any(words in what for what in found), (late, found, log.lags)
