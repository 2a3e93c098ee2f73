"""Damaged logs and models through the public door: each is found and named, and none ends in a plausible answer without a warning."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from studies.bench_robot import Bench
from veridyn.cli.app import app


@dataclass(frozen=True)
class Damage:
    """`before` changes what is written, `after` the written files; `exit_code` and the `said` pattern are what must come."""

    name: str
    said: str
    exit_code: int = 0
    before: Callable[[Bench], None] | None = None
    after: Callable[[Path], None] | None = None


def both(change: Callable[[dict[str, np.ndarray]], None]) -> Callable[[Bench], None]:
    def do(bench: Bench) -> None:
        change(bench.training)
        change(bench.validation)

    return do


def swap(a: str, b: str) -> Callable[[Bench], None]:
    def change(log: dict[str, np.ndarray]) -> None:
        log[a], log[b] = log[b], log[a]

    return both(change)


def times(factor: float, *names: str) -> Callable[[Bench], None]:
    def change(log: dict[str, np.ndarray]) -> None:
        for name in names:
            log[name] = factor * log[name]

    return both(change)


def held(name: str) -> Callable[[Bench], None]:
    def change(log: dict[str, np.ndarray]) -> None:
        log[name] = np.full_like(log[name], log[name][0])

    return both(change)


def in_study(old: str, new: str) -> Callable[[Bench], None]:
    def change(bench: Bench) -> None:
        assert old in bench.study
        bench.study = bench.study.replace(old, new)

    return change


def in_file(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")

    return change


def cut_off(folder: Path) -> None:
    file = folder / "training.csv"
    file.write_bytes(file.read_bytes()[:-37])


def garbage(folder: Path) -> None:
    lines = (folder / "training.csv").read_bytes().split(b"\n")
    lines[700] = b"\x00\xff\x8b\x12,\xfe\xfa" + lines[700][:20]
    (folder / "training.csv").write_bytes(b"\n".join(lines))


def words(folder: Path) -> None:
    lines = (folder / "training.csv").read_text().split("\n")
    lines[300] = ",".join(["#REF!", *lines[300].split(",")[1:]])
    (folder / "training.csv").write_text("\n".join(lines))


def reset(bench: Bench) -> None:
    bench.training["t"] = np.where(bench.training["t"] > 5.0, bench.training["t"] - 5.0, bench.training["t"])


def duplicated(bench: Bench) -> None:
    bench.training["t"][500] = bench.training["t"][499]


def gap(bench: Bench) -> None:
    keep = (bench.training["t"] < 4.0) | (bench.training["t"] > 5.0)
    bench.training = {name: x[keep] for name, x in bench.training.items()}


def missing(bench: Bench) -> None:
    bench.training["tau2"][800:805] = np.nan


def spikes(bench: Bench) -> None:
    for k in (200, 700, 1500):
        bench.training["tau1"][k] = 400.0


def clipped(bench: Bench) -> None:
    for log in (bench.training, bench.validation):
        log["tau2"] = np.clip(log["tau2"], -12.0, 12.0)


def late(bench: Bench) -> None:
    for log in (bench.training, bench.validation):
        for k in (1, 2, 3):
            log[f"tau{k}"] = np.interp(log["t"] - 0.06, log["t"], log[f"tau{k}"])


def no_priors(bench: Bench) -> None:
    bench.study = bench.study.replace("{file: model.yaml}", "{file: model.yaml, priors: forget}")


def then(*changes: Callable[[Bench], None]) -> Callable[[Bench], None]:
    def do(bench: Bench) -> None:
        for change in changes:
            change(bench)

    return do


def other_robot(folder: Path) -> None:
    """A model with other lengths and another twist, as of another robot with three joints."""
    text = (folder / "model.yaml").read_text(encoding="utf-8")
    assert "d: 0.4" in text and "alpha: pi/2" in text
    text = text.replace("d: 0.4", "d: 0.15, alpha: pi/2").replace("d: 0.08", "d: 0.3")
    (folder / "model.yaml").write_text(text, encoding="utf-8")


USE_URDF = in_study("model.yaml", "model.urdf")
DAMAGES = [
    Damage("a log that was cut off", r"training.csv.*(another length|cut off)", 2, after=cut_off),
    Damage("binary garbage in a row", r"training.csv, line 701: it is not text in UTF-8", 2, after=garbage),
    Damage("a word in a cell", r"line 301.*the cell is not a number", 2, after=words),
    Damage(
        "positions swapped", r"positions of 'q2' and 'q3': these columns seem to be swapped", before=swap("q2", "q3")
    ),
    Damage("forces swapped", r"forces of 'q1' and 'q3': these columns seem to be swapped", before=swap("tau1", "tau3")),
    Damage("one force turned round", r"force of 'q2': its sign seems to be wrong", before=times(-1.0, "tau2")),
    Damage(
        "all forces turned round",
        r"inertia M\(q\) is not positive definite",
        before=then(times(-1.0, "tau1", "tau2", "tau3"), no_priors),
    ),
    Damage(
        "one position turned round", r"position of 'q3': its sign seems to be wrong", before=times(-1.0, "q3", "qd3")
    ),
    Damage(
        "degrees for radians",
        r"positions of all turning joints: it seems to be in degrees",
        before=times(180.0 / np.pi, "q1", "q2", "q3", "qd1", "qd2", "qd3"),
    ),
    Damage(
        "degrees for radians in one column",
        r"position of 'q2': it seems to be in degrees",
        before=times(180.0 / np.pi, "q2", "qd2"),
    ),
    Damage("degrees per second in one speed", r"speed of 'q1'.*degrees per second", before=times(180.0 / np.pi, "qd1")),
    Damage(
        "one force of the motor side", r"force of 'q2': it seems to be 0\.0(1|099)\d* times", before=times(0.01, "tau2")
    ),
    Damage(
        "all forces of the motor side",
        r"a steady factor beside those the model's own values predict",
        before=times(0.01, "tau1", "tau2", "tau3"),
    ),
    Damage("a position that is dead", r"channel 'q.q2'.*it never changes", 2, before=held("q2")),
    Damage("a force that is dead", r"channel 'force.q3'.*it never changes", 2, before=held("tau3")),
    Damage("a clock that was reset", r"its clock runs backwards 1 time", 2, before=reset),
    Damage("a clock that repeats a stamp", r"time stamps repeat the one before", 2, before=duplicated),
    Damage(
        "a clock in milliseconds",
        r"clock is slower than any motion|Is the time in milliseconds",
        2,
        before=times(1000.0, "t"),
    ),
    Damage(
        "a gap of a second", r"1 gap\(s\) without a sample.*\n.*\n?.*cut into 2 pieces|cut into 2 pieces", before=gap
    ),
    Damage("empty cells", r"channel 'force.q2'.*5 of its 2000 values are not finite", 2, before=missing),
    Damage("spikes", r"channel 'force.q1': 3 spike\(s\)", before=spikes),
    Damage("a force that clips", r"channel 'force.q2': it looks clipped", before=clipped),
    Damage("forces that are late", r"measured forces are late against the positions, all by one delay", before=late),
    Damage(
        "a unit of something else",
        r"its unit is not that of what it should measure",
        2,
        before=in_study("q1 [rad]", "q1 [N*m]"),
    ),
    Damage("a unit that is none", r"unknown symbol 'Nmeter'", 2, before=in_study("tau1 [N*m]", "tau1 [Nmeter]")),
    Damage(
        "a column that is not there", r"there is no column 'torque1'", 2, before=in_study("tau1 [N*m]", "torque1 [N*m]")
    ),
    Damage(
        "gravity sideways",
        r"gravity seems to be other",
        after=in_file("model.yaml", "[0.0, 0.0, -9.81]", "[9.81, 0, 0]"),
    ),
    Damage(
        "gravity upwards",
        r"gravity seems to be other|M\(q\) is not",
        after=in_file("model.yaml", "[0.0, 0.0, -9.81]", "[0, 0, 9.81]"),
    ),
    Damage("no gravity", r"gravity seems to be other", after=in_file("model.yaml", "[0.0, 0.0, -9.81]", "[0, 0, 0]")),
    Damage(
        "the model of another robot",
        r"the model does not explain these forces|body '3': it seems to sit elsewhere",
        after=other_robot,
    ),
    Damage(
        "a model that was cut off",
        r"model.yaml",
        2,
        after=lambda f: (f / "model.yaml").write_bytes((f / "model.yaml").read_bytes()[:300]),
    ),
    Damage(
        "a URDF with a wrong length",
        r"body 'link3': it seems to sit elsewhere.*\d mm further along x",
        before=USE_URDF,
        after=in_file("model.urdf", 'xyz="0.4 0.0 0.0"', 'xyz="0.2 0.0 0.0"'),
    ),
    Damage(
        "a URDF with a wrong twist",
        r"the rows contradict each other|it seems to sit elsewhere",
        before=USE_URDF,
        after=in_file("model.urdf", 'rpy="1.5707963267948966 0 0"', 'rpy="1.4 0 0"'),
    ),
    Damage(
        "gravity of the moon",
        r"gravity seems to be other",
        after=in_file("model.yaml", "[0.0, 0.0, -9.81]", "[0.0, 0.0, -1.62]"),
    ),
    Damage(
        "a URDF axis turned round",
        r"coordinate 'q2': position and force seem to count the other way",
        before=USE_URDF,
        after=in_file(
            "model.urdf",
            'rpy="1.5707963267948966 0 0"/><axis xyz="0 0 1"/>',
            'rpy="1.5707963267948966 0 0"/><axis xyz="0 0 -1"/>',
        ),
    ),
    Damage(
        "a URDF with an impossible inertia",
        r"model.urdf, 1 of 3 links has an inertia that no physical body has \(link2\); it is taken as unknown",
        before=USE_URDF,
        after=in_file("model.urdf", 'ixx="0.011', 'ixx="0.911'),
    ),
    Damage(
        "a URDF with other joint names",
        r"there is no channel 'q.shoulder'",
        2,
        before=USE_URDF,
        after=in_file("model.urdf", 'joint name="q1"', 'joint name="shoulder"'),
    ),
    Damage(
        "validation on the training log",
        r"the same samples are used for training and validation",
        before=in_study("[validation.csv]", "[training.csv]"),
    ),
]


# Of several that one question of the diagnosis answers, one is asked in the quick suite; the verb without the command names those of
# identify/diagnosis/test_replacements.py there.
LIKE_OTHERS = (
    "forces swapped",
    "one position turned round",
    "one force of the motor side",
    "gravity upwards",
    "no gravity",
    "gravity of the moon",
    "all forces of the motor side",
    "degrees for radians in one column",
)


@pytest.mark.parametrize(
    "damage", [pytest.param(d, marks=pytest.mark.slow if d.name in LIKE_OTHERS else (), id=d.name) for d in DAMAGES]
)
def test_the_damage_is_found_and_named(tmp_path: Path, damage: Damage) -> None:
    bench = Bench(tmp_path)
    if damage.before is not None:
        damage.before(bench)
    study = bench.write()
    if damage.after is not None:
        damage.after(tmp_path)
    done = CliRunner().invoke(app, ["identify", str(study), "--out", str(tmp_path / "runs")])
    print(done.stderr)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert re.search(damage.said, done.stderr, re.DOTALL), done.stderr
    if damage.exit_code == 2:
        assert done.exit_code == 2
        assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").iterdir())
    else:
        assert done.exit_code in (0, 1)
        result = json.loads((tmp_path / "runs" / "bench-001" / "result.json").read_text(encoding="utf-8"))
        assert any(re.search(damage.said, text, re.DOTALL) for text in result["warnings"])


def test_nothing_is_suspected_where_nothing_is_damaged(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["identify", str(Bench(tmp_path).write()), "--out", str(tmp_path / "runs")])
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "runs" / "bench-001" / "result.json").read_text(encoding="utf-8"))
    assert result["figures"]["suspicions"] == 0
    assert result["figures"]["cross_validation_percent"] < 2.0
    assert not [w for w in result["warnings"] if "export" not in w]
