"""Drives, flexible joints, payloads, fleets and cars: the verb in Python, a study file and the command with ``--json`` say the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import veridyn as vd
from identify.drives.mujoco_leg import JOINTS as LEG
from identify.drives.mujoco_leg import KD, KP, leg, recorded
from identify.flexible import flexible_arm
from strangers.bicycle_drive import Bicycle
from studies import fleet_log, payload_log
from veridyn.cli.app import app
from veridyn.errors import Fault
from veridyn.identify.fleet import identify_fleet
from veridyn.identify.payload import carrying
from veridyn.identify.weighing import weigh
from veridyn.inference import log_inspection
from veridyn.inference.finding import FoundCause, Mistake
from veridyn.inference.verdict import Verdict
from veridyn.model.experiment import Channel
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement
from veridyn.studies import load_study
from veridyn.studies.run.drives import run_drives, run_flexible
from veridyn.studies.run.fleet import run_fleet
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.payload import run_payload

Array = NDArray[np.float64]
Change = Callable[[Array], Array]
HUNG = slice(600, 680)


@dataclass(frozen=True)
class Said:
    """What a door says: name → value and deviation; causes with their places; and the verdict."""

    numbers: Mapping[str, tuple[float, float]]
    findings: Sequence[tuple[str, str]]
    verdict: Verdict


def same(one: Said, other: Said) -> None:
    """Values and deviations to 1e-12 of the largest value, or of their own size."""
    assert one.numbers.keys() == other.numbers.keys() and one.numbers
    mine, theirs = (np.array([*x.numbers.values()]) for x in (one, other))
    np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12 * float(np.abs(mine).max()) if mine.size else 0.0)
    assert list(one.findings) == list(other.findings)
    assert one.verdict == other.verdict


def causes(findings: Sequence[FoundCause]) -> list[tuple[str, str]]:
    return [(f.cause, f.place) for f in findings]


def unchanged(x: Array) -> Array:
    return x


def hung(x: Array) -> Array:
    """A sensor that repeats one value while the machine moves."""
    out = x.copy()
    out[HUNG] = out[HUNG.start]
    return out


def table(log: vd.Experiment, file: Path, change: Mapping[str, Change]) -> vd.Experiment:
    """The log as a file with a column for each channel, and as it is read from there."""
    t = next(iter(log.channels.values())).t
    columns = {n: change.get(n, unchanged)(c.values) for n, c in log.channels.items()}
    head = ",".join(["t", *columns])
    np.savetxt(file, np.stack([t, *columns.values()], axis=1), delimiter=",", header=head, comments="", fmt="%.17g")
    return vd.Experiment({n: Channel(n, t, x, log[n].unit) for n, x in columns.items()}, file.name)


def study_text(name: str, model: str, log: vd.Experiment, rest: str) -> str:
    listed = "\n".join(f"    {n}: {n} [{c.unit}]" for n, c in log.channels.items())
    return (
        f"veridyn: 1\nkind: identify\nname: {name}\nmodel: {model}\nlog:\n  time: t [s]\n  columns:\n{listed}\n{rest}"
    )


Doors = tuple[Said, Said, Path]


def drives(folder: Path, change: Mapping[str, Change]) -> Doors:
    """A leg by MuJoCo; 5 s are fitted, one more second and another log judge."""
    machine = leg(folder)
    first, other = (
        table(recorded(6.0, k), folder / f"{name}.csv", change if k == 0 else {}) for k, name in enumerate("ab")
    )
    rest = f"training: [a.csv]\nvalidation: [b.csv]\ndrives: {{kp: {KP}, kd: {KD}, until: 5, friction: coulomb}}\n"
    file = folder / "study.yaml"
    file.write_text(study_text("leg", "{file: leg.xml, base: fixed}", first, rest), "utf-8")
    method: Any = vd.estimators.Drives(kp=KP, kd=KD, until=5.0, friction="coulomb")
    verb: Any = vd.identify
    fit = verb(machine, first, method, validation=other)
    run = run_drives(load_study(file))

    def said(one: vd.estimators.DrivesFit) -> Said:
        return Said({d.name: (d.value, d.sigma) for d in one.drives if d.determined}, causes(one.findings), one.verdict)

    assert len(LEG) == 2 and run.verdict == run.fit.verdict
    return said(fit), said(run.fit), file


def flexible(folder: Path, change: Mapping[str, Change]) -> Doors:
    """A bar on a flexible joint by MuJoCo, one log for the fit and one that judges."""
    machine = flexible_arm.machine()
    vd.save_model(machine, folder / "arm.yaml")
    run = flexible_arm.simulated(flexible_arm.swing, 6.0, friction=8.0)
    parts = {"a": slice(0, 3500), "b": slice(2500, None)}
    logs = [
        table(
            flexible_arm.log(*(x[part] for x in run), delay=2.8e-3, noise=2e-6, seed=k),
            folder / f"{name}.csv",
            change if k == 0 else {},
        )
        for k, (name, part) in enumerate(parts.items())
    ]
    file = folder / "study.yaml"
    rest = "training: [a.csv]\nvalidation: [b.csv]\nflexible: {}\n"
    file.write_text(study_text("arm", "{file: arm.yaml}", logs[0], rest), "utf-8")
    fit = vd.estimators.identify_flexible(vd.load_model(folder / "arm.yaml"), logs[0], validation=logs[1])

    def said(one: vd.estimators.FlexibleFit) -> Said:
        numbers = {
            f"{x.name}_{c}": (x.value, x.sigma)
            for c, joint in one.joints.items()
            for x in joint.quantities.values()
            if x.determined
        }
        return Said(numbers, causes(one.findings), one.verdict)

    return said(fit), said(run_flexible(load_study(file)).fit), file


def car(folder: Path, change: Mapping[str, Change]) -> Doors:
    """A car by SciPy; the last 30 % of the drive judge, because nothing is said."""
    truth = Bicycle(duration=40.0, rate=25.0)
    d = truth.drive(11)
    units = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2"}
    log = table(
        vd.Experiment({n: Channel(n, d["t"], d[n], u) for n, u in units.items()}, "drive"), folder / "a.csv", change
    )
    model = f"""veridyn: 2
formulation: single_track
car: {{mass: {truth.mass}, front: {truth.front}, rear: {truth.rear}, yaw_inertia: {truth.inertia},
  front_stiffness: {{value: 13, sigma: 4}}, rear_stiffness: {{value: 17, sigma: 6}}}}
"""
    (folder / "model.yaml").write_text(model, "utf-8")
    rest = (
        "noise: {slip_error: 0.0002, bank: 0.0002, lateral: 0.002, yaw: 0.002, sensors: {yaw_rate: 0.003, ay: 0.1}}\n"
    )
    text = study_text("car", "{file: model.yaml}", log, rest).replace("  time: t [s]", "  file: a.csv\n  time: t [s]")
    file = folder / "study.yaml"
    file.write_text(text, "utf-8")
    noise = vd.filters.CarNoise(slip_error=2e-4, bank=2e-4, lateral=2e-3, yaw=2e-3)
    machine = vd.load_model(folder / "model.yaml")
    machine = machine.with_sensors([replace(s, sigma={"yaw_rate": 0.003, "ay": 0.1}[s.name]) for s in machine.sensors])
    fit = vd.identify(machine, log, vd.estimators.Innovations(noise=noise))
    run = run_identify(load_study(file))

    def said(one: Any) -> Said:
        numbers = {n: (one.fit.values[n], one.fit.sigma[n]) for n in one.fit.values}
        return Said(numbers, causes(one.findings), one.verdict)

    assert run.drive is not None and list(run.drive.findings) == list(run.drive.fitted.findings)  # pyright: ignore
    assert run.drive.verdict("car").grade == run.drive.fitted.verdict.grade  # pyright: ignore
    return said(fit), said(run.drive.fitted), file  # pyright: ignore


WAYS: dict[str, Callable[[Path, Mapping[str, Change]], Doors]] = {
    "drives": drives,
    "flexible joint": flexible,
    "car": car,
}
SENSORS = {"drives": "position.calf", "flexible joint": "q.hip", "car": "yaw_rate"}
quiet = pytest.mark.filterwarnings("ignore::veridyn.errors.VeridynWarning")


def printed(file: Path, folder: Path) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["identify", str(file), "--json", "--out", str(folder / "runs")])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def agrees(record: Mapping[str, Any], said: Said) -> None:
    """The record of the command, which rounds as it prints."""
    values = {p["name"]: (p["value"], p["sigma"]) for p in record["parameters"]}
    assert values.keys() == said.numbers.keys()
    np.testing.assert_allclose([*values.values()], [*said.numbers.values()], rtol=1e-9)
    assert [(f["cause"], f["place"]) for f in record["findings"]] == list(said.findings)
    assert record["verdict"]["grade"] == said.verdict.grade
    assert [r["kind"] for r in record["verdict"]["reasons"]] == [r.kind for r in said.verdict.reasons]


@quiet
@pytest.mark.parametrize("name", WAYS)
def test_every_door_says_the_same(name: str, tmp_path: Path) -> None:
    """Of a clean log, which has no finding and is good, because other samples judge it."""
    mine, theirs, file = WAYS[name](tmp_path, {})
    same(mine, theirs)
    assert mine.findings == [] and mine.verdict.grade == "good"
    agrees(printed(file, tmp_path), mine)


@quiet
@pytest.mark.parametrize("name", WAYS)
def test_a_sensor_that_hangs_is_named_at_every_door(name: str, tmp_path: Path) -> None:
    sensor = SENSORS[name]
    mine, theirs, file = WAYS[name](tmp_path, {sensor: hung})
    same(mine, theirs)
    assert ("frozen", f"a.csv, channel '{sensor}'") in mine.findings and mine.verdict.grade != "good"
    agrees(printed(file, tmp_path), mine)


@quiet
@pytest.mark.parametrize("name", WAYS)
def test_a_new_check_appears_at_every_door(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more line in the inspection of logs, and nothing anywhere else."""
    own = log_inspection.sensor_mistakes

    def and_another(log: vd.Experiment, roles: Mapping[str, str], part: str = "channel") -> list[Mistake]:
        return [*own(log, roles, part), Mistake("a new check", Fault("it was asked.", log.name))]

    monkeypatch.setattr(log_inspection, "sensor_mistakes", and_another)
    mine, theirs, file = WAYS[name](tmp_path, {})
    same(mine, theirs)
    assert ("a new check", "a.csv") in mine.findings and mine.verdict.grade == "fair"
    agrees(printed(file, tmp_path), mine)


LOWPASS = 5.0
SAMPLING = "sampling: {filter: none, dead_zone: 0.02}\n"


def motion_of(machine: vd.Machine, file: Path, columns: Mapping[str, str]) -> vd.Motion:
    log = vd.load_log(file, columns=columns)
    return vd.motion(machine, log, vd.Signals(lowpass=LOWPASS))


@quiet
def test_a_payload_at_every_door(tmp_path: Path) -> None:
    """The shipped example, every sample fitted, by the rules of all doors: gains by a known load, then the load."""
    text = payload_log.EXAMPLE.read_text("utf-8")
    for name in (*payload_log.RUNS, "payload_model.yaml"):
        text = text.replace(name, str(payload_log.FOLDER / name))
    text = text.replace("accept: {validation_percent: 5, suspicions: 0}", "validation: none").replace(SAMPLING, "")
    file = tmp_path / "study.yaml"
    file.write_text(text, "utf-8")
    run = run_payload(load_study(file))
    machine = vd.load_model(payload_log.FOLDER / "payload_model.yaml")
    columns = {f"q.q{k}": f"q{k}" for k in range(1, 5)} | {f"signal.i{k}": f"i{k}" for k in range(1, 5)}
    empty, known, loaded = (motion_of(machine, payload_log.FOLDER / name, columns) for name in payload_log.RUNS)
    disc = from_centre(2.0, (0.08, 0.0, 0.10), np.diag([0.0018, 0.0018, 0.0016]))
    mine = weigh(
        machine,
        loaded,
        "hand",
        empty=[empty, carrying(machine, known, "hand", disc)],
        flange=Placement(position=(0.0, 0.0, 0.08)),
        load_sigma=0.001,
    )
    np.testing.assert_allclose(mine.load.free, run.load.free, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mine.load.covariance, run.load.covariance, rtol=1e-9)
    assert causes(mine.fit.findings) == causes(run.payload.fit.findings)
    assert [(r.grade, r.kind) for r in mine.verdict.reasons] == [(r.grade, r.kind) for r in run.verdict.reasons]
    assert mine.verdict.grade == run.verdict.grade == "not validated"
    record = printed(file, tmp_path)
    assert record["figures"]["payload_mass"] == pytest.approx(mine.load.mass, rel=1e-9)
    assert record["verdict"]["grade"] == "not validated"


@quiet
def test_a_fleet_at_every_door(tmp_path: Path) -> None:
    """The shipped example, every sample fitted."""
    text = fleet_log.EXAMPLE.read_text("utf-8").replace("fleet_model.yaml", str(fleet_log.FOLDER / "fleet_model.yaml"))
    file = tmp_path / "study.yaml"
    line = next(x for x in text.splitlines() if x.startswith("  logs:"))
    text = text.replace(line, f"  logs: '{fleet_log.FOLDER}/fleet/{{machine}}.csv'") + "validation: none\n"
    text = text.replace(SAMPLING, "")
    file.write_text("\n".join(x for x in text.splitlines() if not x.startswith(("executor", "accept"))), "utf-8")
    loaded = load_study(file)
    run = run_fleet(loaded)
    machine = vd.load_model(fleet_log.FOLDER / "fleet_model.yaml")
    columns = {f"{kind}.q{k}": f"{word}{k}" for k in (1, 2) for kind, word in (("q", "q"), ("force", "tau"))}
    lowpass: Any = loaded.study.signals.lowpass
    motions = {
        name: vd.motion(
            machine,
            vd.load_log(fleet_log.FOLDER / "fleet" / f"{name}.csv", columns=columns),
            vd.Signals(lowpass=lowpass),
        )
        for name in fleet_log.NAMES
    }
    mine = identify_fleet(machine, motions)
    assert mine.names == run.fleet.names and mine.machines == run.fleet.machines
    np.testing.assert_allclose(mine.values, run.fleet.values, rtol=1e-12, atol=1e-12 * np.abs(mine.values).max())
    np.testing.assert_allclose(mine.sigma, run.fleet.sigma, rtol=1e-10)
    assert mine.verdict == run.verdict and mine.verdict.grade == "not validated"
    assert printed(file, tmp_path)["verdict"]["grade"] == mine.verdict.grade
