"""Build the distributions and try the wheel as a stranger would: ``make dist``, or ``python packaging/check.py [--keep FOLDER]``.

The wheel and the source distribution are built and checked by twine, what the wheel holds is counted by kind, and it is installed without
extras into an empty environment. There the ten lines of the README run on a machine and logs that are made on the spot, each format that
needs an extra says which, and ``veridyn demo arm --quick`` ends with its report. Sizes and times are printed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PREPARE = """
import numpy as np
import veridyn as vd

robot = vd.load_model("veridyn:arm.yaml")
vd.save_model(robot, "robot.yaml")
t = 0.005 * np.arange(4000)
for number in (1, 2):
    rng = np.random.default_rng(number)
    waves = [(rng.uniform(0.2, 0.6), 2 * np.pi * rng.uniform(0.2, 1.0), rng.uniform(0, 6)) for _ in range(3 * robot.n)]
    q = np.zeros((len(t), robot.n)); qd = q.copy(); qdd = q.copy()
    for k, (a, w, p) in enumerate(waves):
        j = k % robot.n
        q[:, j] += a * np.sin(w * t + p); qd[:, j] += a * w * np.cos(w * t + p); qdd[:, j] -= a * w * w * np.sin(w * t + p)
    force = vd.inverse_dynamics(robot, vd.Motion(t, q, qd, qdd)) + 0.05 * rng.standard_normal(q.shape)
    values = {f"q.{c}": q[:, j] for j, c in enumerate(robot.coordinates)}
    values |= {f"force.{c}": force[:, j] for j, c in enumerate(robot.coordinates)}
    units = {n: "rad" if n.startswith("q") else "N*m" for n in values}
    vd.files.save_log(vd.Experiment.from_arrays(t, values, units, "run"), f"run{number}.csv")
"""
# What is asked for without its extra, as users ask for it: lines of Python, or a command.
STUDY = """
veridyn: 1
kind: identify
name: cluster
model: {file: robot.yaml}
log: {time: "t [s]", columns: {}}
training: [run1.csv]
executor: {dask: "tcp://127.0.0.1:1"}
"""
WITHOUT = {
    "consistent": [
        "-c",
        "measured = vd.motion(robot, vd.load_log('run1.csv')); vd.identify(robot, measured, 'consistent')",
    ],
    "geodesy": ["-c", "vd.files.enu_of([0.8], [0.1], [0.0], vd.files.GeoOrigin(0.8, 0.1, 0.0))"],
    "parquet": ["-c", "vd.load_log('log.parquet')"],
    "logs": ["-c", "vd.load_log('log.mf4')"],
    "logs (bag)": ["-c", "vd.load_log('log.bag')"],
    "logs (mcap)": ["-c", "vd.load_log('log.mcap')"],
    "logs (MAT 7.3)": ["-c", "vd.load_log('log.mat')"],
    "view": ["-m", "veridyn", "view", "robot.yaml"],
    "live": ["-m", "veridyn", "live", "crane.yaml", "--websocket", "0", "--port", "0", "--seconds", "5"],
    "cluster": ["-m", "veridyn", "identify", "cluster.yaml"],
    "mujoco": ["-m", "veridyn", "demo", "humanoid", "--quick"],
    "torch": ["-c", "import veridyn.torch as vt; vt.inverse_dynamics"],
    "jax": ["-c", "import veridyn.jax as vj; vj.inverse_dynamics"],
    "gpu": ["-c", "q = np.zeros((2, robot.n)); vd.gpu.inverse_dynamics(robot, vd.Motion(np.arange(2.0), q, q, q))"],
}
# The packages that came along, the largest first, by the files that each lists as its own.
SIZES = """
from importlib.metadata import distributions
sizes = {}
for d in distributions():
    name = d.metadata["Name"]
    if name not in ("pip", "setuptools"):
        sizes[name] = sum(p.stat().st_size for f in d.files or () if (p := d.locate_file(f)).is_file()) / 1e6
largest = sorted(sizes, key=sizes.get, reverse=True)
print(f"{len(sizes)} packages: " + ", ".join(f"{name} {sizes[name]:.0f}" for name in largest[:8]) + " MB, others less")
"""
OPENING = "import numpy as np; import veridyn as vd; robot = vd.load_model('robot.yaml'); "


def ten_lines() -> str:
    """The first Python block of the README."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        raise SystemExit("README.md has no Python block")
    return found[1]


def _ended(*command: str | Path, cwd: Path, quiet: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=quiet, text=True, check=False)


def run(*command: str | Path, cwd: Path, quiet: bool = True) -> float:
    """Seconds that a command took; its output where it fails."""
    begun = time.perf_counter()
    done = _ended(*command, cwd=cwd, quiet=quiet)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))[:200]}\n{done.stdout or ''}{done.stderr or ''}")
    if quiet and done.stdout.strip():
        print("\n".join("    " + line for line in done.stdout.strip().splitlines()[-6:]))
    return time.perf_counter() - begun


def contents(wheel: Path) -> str:
    """What a wheel holds, by kind of file."""
    with zipfile.ZipFile(wheel) as held:
        names = held.namelist()
    kinds = Counter(Path(name).suffix or Path(name).name for name in names)
    strange = [name for name in names if not name.startswith(("veridyn/", "veridyn-"))]
    if strange:
        raise SystemExit(f"files outside the package: {', '.join(strange[:5])}")
    return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())


def ask_without_extras(python: Path, work: Path) -> None:
    """Print what users read who ask for something whose extra is missing; that it names the command is checked."""
    (work / "cluster.yaml").write_text(STUDY, encoding="utf-8")
    shutil.copy(ROOT / "examples" / "studies" / "crane.yaml", work)
    for name in ("log.parquet", "log.mf4", "log.bag", "log.mcap"):
        (work / name).write_bytes(b"PAR1" + bytes(100))
    (work / "log.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n" + bytes(64))
    for name, (first, asked, *rest) in WITHOUT.items():
        line = OPENING + asked if first == "-c" else asked
        done = _ended(python, first, line, *rest, cwd=work)
        command = f"veridyn[{name.split()[0]}]"
        if done.returncode == 0 or command not in done.stderr or "not installed" not in done.stderr:
            raise SystemExit(
                f"without the extra {name} the exit code is {done.returncode}, and it says\n{done.stdout}{done.stderr}"
            )
        said = " ".join(done.stderr.split())
        print(f"    {name}: {said[said.rindex('Error: ') + len('Error: ') :]}")


def folder_mb(folder: Path) -> float:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the distributions, and try the wheel in an empty environment.")
    parser.add_argument("--keep", type=Path, help="put the distributions into this folder; by default they go")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        base = Path(made)
        dist = (given.keep or base / "dist").resolve()
        run(sys.executable, "-m", "build", "--outdir", dist, ROOT, cwd=base)
        files = sorted(dist.glob("veridyn-*"))
        run(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=base)
        (wheel,) = dist.glob("*.whl")
        for file in files:
            print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB")
        print(f"the wheel holds {contents(wheel)}")

        venv.create(base / "env", with_pip=True)
        python = base / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        before = folder_mb(base / "env")
        took = run(python, "-m", "pip", "install", "--quiet", "--no-compile", wheel, cwd=base)
        print(f"installed without extras in {took:.0f} s: {folder_mb(base / 'env') - before:.0f} MB")
        run(python, "-c", SIZES, cwd=base)
        took = min(run(python, "-c", "import veridyn", cwd=base) for _ in range(5))
        print(f"import veridyn: {took:.2f} s, the start of Python included")
        work = base / "work"
        work.mkdir()
        run(python, "-c", PREPARE, cwd=work)
        print(f"the ten lines of the README: {run(python, '-c', ten_lines(), cwd=work):.1f} s")
        print("without extras:")
        ask_without_extras(python, work)
        took = run(python, "-m", "veridyn", "demo", "arm", "--quick", "--out", "runs", cwd=work)
        print(f"veridyn demo arm --quick: {took:.0f} s")


if __name__ == "__main__":
    main()
