"""A stranger's path, timed: ``make stranger``, or ``python -m benchmarks.stranger [--install] [--out FOLDER]``.

A clone of this repository, the demonstration of an arm, then a robot of one's own: a URDF, and a log of twenty seconds that MuJoCo
makes of it, with noise. ``veridyn new`` writes the study, ``identify`` its report, ``export`` an MJCF file, which MuJoCo reads again: its
torques are compared with those of the robot that made the log. With ``--install`` the clone is installed into an empty environment
first, which needs an index of packages; without, its sources run with this interpreter.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridyn.arrays import Array

ROOT = Path(__file__).parents[1]
RATE, DURATION = 200.0, 20.0  # Hz, s
NOISE = 0.02  # N*m
DRY = np.array([0.4, 0.2])  # N*m, as the URDF has it
URDF = """<?xml version="1.0"?>
<robot name="stranger">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.02 0.01 0.15"/><mass value="3.0"/>
    <inertia ixx="0.03" ixy="0" ixz="0.001" iyy="0.03" iyz="0" izz="0.006"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.01 0.0 0.12"/><mass value="1.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.011" iyz="0.0005" izz="0.002"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <dynamics damping="0.8" friction="0.4"/><limit lower="-2" upper="2" effort="100" velocity="5"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.3"/><axis xyz="0 1 0"/>
    <dynamics damping="0.3" friction="0.2"/><limit lower="-2" upper="2" effort="50" velocity="8"/></joint>
</robot>
"""


def torques(engine: Any, model: Any, q: Array, qd: Array, qdd: Array) -> Array:
    """Inverse dynamics (N, n) by MuJoCo, without dry friction, which an engine rounds off near rest."""
    model.opt.disableflags |= engine.mjtDisableBit.mjDSBL_FRICTIONLOSS
    data, found = engine.MjData(model), np.empty_like(q)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], qd[k], qdd[k]
        engine.mj_inverse(model, data)
        found[k] = data.qfrc_inverse
    return found


def motion(seed: int, count: int) -> tuple[Array, Array, Array, Array]:
    """Times, and positions, speeds and accelerations (N, 2): sums of sines that grow from rest and fade to it, as sin⁴."""
    rng, t = np.random.default_rng(seed), np.arange(count) / RATE
    size, phase = rng.uniform(0.2, 0.5, (5, 2)), rng.uniform(0.0, 2.0 * np.pi, (5, 2))
    omega = 2.0 * np.pi * np.array([0.2, 0.35, 0.6, 0.85, 1.3])[:, None]
    angle = omega[None] * t[:, None, None] + phase
    s, sd = (size * np.sin(angle)).sum(axis=1), (size * omega * np.cos(angle)).sum(axis=1)
    sdd, w = -(size * omega**2 * np.sin(angle)).sum(axis=1), np.pi / t[-1]
    u, ud, udd = np.sin(w * t) ** 2, w * np.sin(2.0 * w * t), 2.0 * w**2 * np.cos(2.0 * w * t)
    e, ed, edd = (x[:, None] for x in (u**2, 2.0 * u * ud, 2.0 * ud**2 + 2.0 * u * udd))
    return t, e * s, ed * s + e * sd, edd * s + 2.0 * ed * sd + e * sdd


def write_own(folder: Path, engine: Any) -> Any:
    """robot.urdf and run.csv; MuJoCo's model of the robot."""
    (folder / "robot.urdf").write_text(URDF, encoding="utf-8")
    model = engine.MjModel.from_xml_string(URDF)
    t, q, qd, qdd = motion(1, int(RATE * DURATION))
    force = (
        torques(engine, model, q, qd, qdd)
        + DRY * np.sign(qd)
        + NOISE * np.random.default_rng(2).standard_normal(q.shape)
    )
    header = "time [s],shoulder position [rad],elbow position [rad],shoulder torque [N*m],elbow torque [N*m]"
    np.savetxt(
        folder / "run.csv", np.column_stack([t, q, force]), delimiter=",", header=header, comments="", fmt="%.9g"
    )
    return model


def largest_error(engine: Any, model: Any, exported: Path) -> float:
    """Of the torques of the exported robot on another motion, over the largest of the true ones."""
    _, q, qd, qdd = motion(3, int(RATE * DURATION))
    true = torques(engine, model, q, qd, qdd) + DRY * np.sign(qd)
    own = engine.MjModel.from_xml_path(str(exported))
    found = torques(engine, own, q, qd, qdd) + own.dof_frictionloss * np.sign(qd)
    return float((np.abs(found - true).max(axis=0) / np.abs(true).max(axis=0)).max())


def main(argv: Sequence[str] | None = None) -> None:
    import mujoco as engine

    parser = argparse.ArgumentParser(description="Time what somebody does who meets veridyn for the first time.")
    parser.add_argument("--install", action="store_true", help="install the clone into an empty environment")
    parser.add_argument("--out", type=Path, help="keep everything in this folder")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as made:
        folder = (given.out or Path(made)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        clone, python, rows = folder / "veridyn", Path(sys.executable), list[tuple[str, float]]()
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        if not given.install:
            environment["PYTHONPATH"] = str(clone / "src")

        def step(what: str, *command: str | Path) -> None:
            begun = time.perf_counter()
            done = subprocess.run(
                [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode not in (0, 1):  # 1: it ran, and says that something is in doubt
                raise SystemExit(f"{what} failed:\n{done.stdout}{done.stderr}")
            rows.append((what, time.perf_counter() - begun))
            print(f"| {what} | {rows[-1][1]:.1f} |", flush=True)
            if done.returncode:
                print(done.stderr.strip().splitlines()[-1])

        print("| step | seconds |\n|---|---:|")
        step("clone", "git", "clone", "--quiet", ROOT, clone)
        if given.install:
            begun = time.perf_counter()
            venv.create(folder / "env", with_pip=True)
            python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
            rows.append(("environment", time.perf_counter() - begun))
            step("install", python, "-m", "pip", "install", "--quiet", clone)
        veridyn = (python, "-m", "veridyn")
        step("demo arm --quick", *veridyn, "demo", "arm", "--quick", "--out", "runs")
        model = write_own(folder, engine)
        step("new: own URDF and log", *veridyn, "new", "robot.urdf", "run.csv", "--out", "study.yaml")
        study = folder / "study.yaml"  # whose own comment says that exports need this
        study.write_text(study.read_text(encoding="utf-8").replace("name: wls", "name: consistent"), encoding="utf-8")
        step("identify, with report", *veridyn, "identify", "study.yaml", "--out", "runs")
        (report,) = (
            p for p in folder.glob("runs/*/report.html") if "demo" not in p.parent.name and "arm" not in p.parent.name
        )
        step("export to MuJoCo", *veridyn, "export", report.parent, "--to", "mjcf", "--out", "identified.xml")
        print(f"| all | {sum(seconds for _, seconds in rows):.1f} |")
        error = largest_error(engine, model, folder / "identified.xml")
        print(
            f"torques of the exported robot in MuJoCo, on another motion: wrong by {100.0 * error:.2f} % of the largest at most"
        )


if __name__ == "__main__":
    main()
