"""Closed machines through the public door: a study written and run, the identified model exported, damaged logs named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from studies.closed_bench import MACHINES, ClosedBench
from studies.palletizer_log import ENCODER, EXAMPLE, LOG, TORQUE, true_motion
from veridyn.cli.app import app
from veridyn.files.archive import load
from veridyn.files.machine.load import load_model
from veridyn.identify.base import base_parameters

DRIVES = ("q1", "q2", "q4")
Change = Callable[[ClosedBench], None]


def both(change: Callable[[dict[str, np.ndarray]], None]) -> Change:
    def do(bench: ClosedBench) -> None:
        change(bench.training)
        change(bench.validation)

    return do


def swap(a: str, b: str) -> Change:
    def change(log: dict[str, np.ndarray]) -> None:
        log[a], log[b] = log[b], log[a]

    return both(change)


def times(factor: float, *names: str) -> Change:
    return both(lambda log: log.update({name: factor * log[name] for name in names}))


def in_study(old: str, new: str) -> Change:
    def change(bench: ClosedBench) -> None:
        assert old in bench.study
        bench.study = bench.study.replace(old, new)

    return change


@both
def late(log: dict[str, np.ndarray]) -> None:
    for c in DRIVES:
        log[f"tau_{c}"] = np.interp(log["t"] - 0.04, log["t"], log[f"tau_{c}"])


@both
def far(log: dict[str, np.ndarray]) -> None:
    """The crank swings through the direction of the upper arm at 7.5 s and back, which no machine does."""
    log["q4"] = log["q4"] - 2.0 * np.exp(-(((log["t"] - 7.5) / 0.5) ** 2))


@both
def odd_elbow(log: dict[str, np.ndarray]) -> None:
    """An encoder at the elbow with its zero 0.1 rad off; q3 = q4 − q2 but for a constant in a parallelogram."""
    log["q3"] = log["q4"] - log["q2"] - np.pi + 0.1


def elbow(bench: ClosedBench) -> None:
    odd_elbow(bench)
    in_study("columns:\n", "columns:\n    q.q3: q3 [rad]\n")(bench)


SAMPLE = r"training.csv, palletizer, sample \d+ \(t = [\d.]+ s\)"
UPSIDE_DOWN = in_study("{file: model.yaml}", "{file: model.yaml, gravity: [0, 0, 9.81]}")
PASSIVE = in_study("columns:\n", "columns:\n    force.q5: tau_q4 [N*m]\n")
DAMAGED: dict[str, tuple[Change, int, str]] = {
    "a drive not measured": (
        in_study("    q.q2: q2 [rad]\n", ""),
        2,
        r"do not determine[\s\S]*Missing of the former: q.q2",
    ),
    "degrees": (times(180 / np.pi, *DRIVES), 2, SAMPLE + r"[\s\S]*q1, q2, q4 in degrees, not radians"),
    "positions swapped": (swap("q2", "q4"), 2, SAMPLE + r"[\s\S]*q2 and q4 swapped"),
    "position turned round": (times(-1.0, "q2"), 2, SAMPLE + r"[\s\S]*q2 with the other sign"),
    "out of reach": (far, 2, r"sample \d+ \(t = [67]\.\d+ s\): (a singular position|this position is out of reach)"),
    "force of a passive joint": (PASSIVE, 2, "force.q5: a passive joint of a loop has no motor"),
    "forces swapped": (swap("tau_q2", "tau_q4"), 0, r"forces of 'q2' and 'q4': these columns seem to be swapped"),
    "force turned round": (
        times(-1.0, "tau_q4"),
        0,
        r"force of 'q4': its sign seems to be wrong[\s\S]*friction or a rotor is below zero",
    ),
    "force at the motor": (times(0.01, "tau_q2"), 0, r"force of 'q2': it seems to be 0.01\d* times what it should be"),
    "late forces": (
        late,
        0,
        r"^((?!warning:).)*warning: forces: measured forces are late against the positions, all by one delay.*found 4\d\.\d ± ",
    ),
    "gravity upside down": (UPSIDE_DOWN, 0, r"measured forces go against those the model's own values predict"),
    "zero of an encoder": (elbow, 0, r"position of 'q3': its measured position is not the one that follows"),
}


# Four that take 4 to 6 s each; test_damaged.py has them of an open machine.
LONG = ("force at the motor", "force turned round", "late forces", "gravity upside down")


@pytest.mark.parametrize("damage", [pytest.param(d, marks=pytest.mark.slow if d in LONG else ()) for d in DAMAGED])
def test_damaged_logs_are_named(tmp_path: Path, damage: str) -> None:
    change, code, said = DAMAGED[damage]
    bench = ClosedBench(tmp_path)
    change(bench)
    done = CliRunner().invoke(app, ["identify", str(bench.write()), "--out", str(tmp_path / "runs")])
    text = re.sub(r"\s*\n\s*", " ", done.stderr)
    assert done.exit_code == code, done.output
    assert re.search(said, text), text


@pytest.mark.parametrize("name", ["palletizer", pytest.param("delta", marks=pytest.mark.slow)])
def test_a_study_is_written_runs_and_exports(tmp_path: Path, name: str) -> None:
    """What veridyn new makes of a log of the drives runs as it is; the consistent model is written, read again, and moves alike."""
    ClosedBench(tmp_path, name, prior=1.0).write()
    study, machine = tmp_path / "new.yaml", MACHINES[name]()
    args = ["new", str(tmp_path / "model.yaml"), str(tmp_path / "training.csv"), "--out", str(study)]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0, done.output
    text = study.read_text(encoding="utf-8")
    assert "not found" not in text and "rows: actuated" in text
    rest = [c for c in machine.coordinates if c not in machine.actuated_coordinates]
    assert (
        f"follow through closed loops, and need no column (any that is measured is compared): {', '.join(rest)}" in text
    )
    study.write_text(
        text.replace("lowpass: auto", "lowpass: 8").replace("name: wls", "name: consistent"), encoding="utf-8"
    )
    done = CliRunner().invoke(app, ["identify", str(study), "--out", str(tmp_path / "runs")])
    assert done.exit_code == 0, done.output
    folder = tmp_path / "runs" / f"{name}-001"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "How its loops were closed" in page and "What was not looked for" in page and len(page) < 6e6
    result = json.loads((folder / "result.json").read_text())
    assert result["figures"]["suspicions"] == 0 and result["figures"]["physically_consistent"] == 1
    again = load_model(folder / "identified.yaml")
    assert again.cut_joints == machine.cut_joints and again.assembly == machine.assembly
    base = base_parameters(again)
    found, wanted = (base.reduce(t.parameters.values) for t in (again, machine))
    sigma = {p["name"]: p["sigma"] for p in result["parameters"]}
    sure = [k for k, n in enumerate(base.names) if sigma.get(n)]  # what rests on a bound has no deviation
    assert len(sure) > 0.7 * base.count
    assert all(abs(found[k] - wanted[k]) < 5.0 * sigma[base.names[k]] for k in sure)


def test_the_example(tmp_path: Path) -> None:
    """examples/studies/palletizer.yaml keeps its limits, finds the machine, and leaves noise."""
    done = CliRunner().invoke(app, ["identify", str(EXAMPLE), "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "palletizer-001" / "result.json").read_text())
    assert result["figures"]["rows_with_white_residual"] == 3 and result["figures"]["consistency_cost_percent"] < 1
    assert all(row["rms"] == pytest.approx(TORQUE, rel=0.05) for row in result["validation"].values())
    fit = load(tmp_path / "palletizer-001" / "fit.json")
    truth = MACHINES["palletizer"]().parameters
    wanted = fit.base.reduce([truth[name] for name in fit.base.parameters.names])
    off = np.abs(fit.values - wanted) / fit.sigma
    print("largest", off.max().round(2), "rms", np.sqrt(np.mean(off**2)).round(2))
    # The largest of 25 is beyond 3 deviations in one log of fifteen, as in this one; over many logs they hold (test_identify_run_closed).
    assert (off < 4.0).all() and np.sqrt(np.mean(off**2)) < 1.5


def test_the_log_of_the_example_is_a_strangers() -> None:
    log = np.loadtxt(LOG, delimiter=",", skiprows=1)
    m = true_motion(1.0)
    assert m.forces is not None
    off = log[:100, 1:4] - np.degrees(m.q[:, [0, 1, 3]])
    assert np.abs(off).max() < 5.0 * ENCODER and np.std(off) == pytest.approx(ENCODER, rel=0.2)
    off = log[:100, 4:] - m.forces[:, [0, 1, 3]]
    assert np.abs(off).max() < 5.0 * TORQUE and np.std(off) == pytest.approx(TORQUE, rel=0.2)
