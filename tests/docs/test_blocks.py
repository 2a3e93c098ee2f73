"""Every block of Python and of shell commands in README and docs runs as it is printed, or is listed here with the reason why it does not.

A page takes files and names for granted: `GIVEN` makes them, in a folder of its own, before the block that needs them. Blocks of one page
share their names, as a reader's session would. README and home page (test_readme), filters (test_filters) and observers (test_observers)
have tests of their own.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import veridyn as vd
from studies.small_arm import log_of, small_arm
from veridyn.cli.app import app
from veridyn.errors import VeridynError
from veridyn.files.log.tables import save_log
from veridyn.studies.config.study import load_study
from veridyn.studies.run.identify import pipeline_of
from veridyn.studies.run.recordings import Recordings

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROGRAMS, SHELL = ("python",), ("bash", "console")
ELSEWHERE = {"README.md", "docs/index.md", "docs/filters.md", "docs/observers.md"}  # Python by tests of their own
STUDIES = ROOT / "examples" / "studies"
Names = dict[str, Any]

# Blocks that are not run, by their page and the words they begin with, and why.
NOT_RUN = {
    (
        "docs/engine.md",
        "from distributed",
    ): "needs a Dask cluster; tests/studies/run/test_estimation.py has one of this machine",
    ("docs/live.md", "import json, socket, time"): "an endless loop on a board; tests/live feed the same port",
    ("docs/scale.md", "pip install"): "installs",
    ("docs/scale.md", "fit = vd.identify(robot, motion, settings="): "needs a GPU; tests/gpu",
    ("docs/scale.md", "from veridyn import gpu"): "needs a GPU; tests/gpu",
    ("docs/scale.md", "from functools import partial"): "needs a Dask cluster; tests/studies/run/test_estimation.py",
    ("docs/scale.md", "fleet ="): "an ellipsis in place of more machines; tests/identify/test_fleet.py",
    ("docs/training.md", "pip install"): "installs",
    ("docs/training.md", "import numpy"): "needs torch; tests/training/test_page.py",
    ("docs/training.md", "spread ="): "needs torch; tests/training/test_page.py",
    ("docs/training.md", "from torch.func"): "needs torch; tests/training/test_page.py",
    ("docs/training.md", "import jax"): "needs jax; tests/training/test_page.py",
    ("docs/logs.md", 'log = vd.load_log("drives.txt"'): "logs of other programs; tests/files/log reads each of them",
    ("docs/logs.md", 'log = vd.load_log("drive.mf4"'): "needs asammdf; tests/files/log/test_mdf.py",
    ("docs/logs.md", 'log = vd.load_log(\n    "run.mcap"'): "needs rosbags; tests/files/log/test_bag.py",
    ("docs/logs.md", 'log = vd.load_log("drive.bag"'): "needs rosbags; tests/files/log/test_bag.py",
    ("docs/logs.md", "veridyn view"): "opens a browser; tests/cli/test_browser.py",
    (
        "docs/papers/humanoid.md",
        "fit = vd.signals.fit_markers",
    ): "markers and plates of a laboratory; tests/real/test_mocap.py",
    ("docs/drives.md", "import veridyn as vd"): "needs a log that is not in the repository; tests/real/test_go2.py",
    ("docs/getting-started.md", "make demo"): "make",
    ("docs/getting-started.md", "python -m venv"): "installs",
    ("docs/getting-started.md", "python -m pip"): "installs",
    ("docs/security.md", "sudo"): "changes the machine",
    ("docs/calibration.md", "$ python -m benchmarks"): "an hour; tests/test_calibration.py has its quick form",
    ("docs/own-car.md", "veridyn observe"): "needs a log that is not in the repository; tests/real",
    ("docs/your-robot.md", "veridyn new panda_model.yaml"): "needs a log that is not in the repository; tests/real",
    ("docs/your-robot.md", "veridyn identify study.yaml\n"): "of the same log",
    ("docs/your-robot.md", "veridyn identify study.yaml  "): "of the same log",
    ("README.md", "make demo"): "make; tests/cli/test_demo.py runs the demonstrations",
    ("README.md", "python -m pip"): "installs",
}
# Pages that simulate or identify for seconds what other pages and quick tests go through as well.
SLOW = {
    "docs/excitation.md",
    "docs/laws.md",
    "docs/simulators.md",
    "docs/slider-crank.md",
    "docs/vehicle.md",
}


def pages() -> list[str]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [p.relative_to(ROOT).as_posix() for p in found]


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def excuse(page: str, text: str) -> str | None:
    return next((why for (of, words), why in NOT_RUN.items() if of == page and text.startswith(words)), None)


def to_run(page: str) -> list[tuple[str, str]]:
    programs = () if page in ELSEWHERE else PROGRAMS
    return [(kind, text) for kind, text in blocks(page) if kind in (*programs, *SHELL) and excuse(page, text) is None]


def robot_files(folder: Path) -> Names:
    """robot.yaml, robot.urdf, robot.xml and run.csv of a small arm, and what a session has of them."""
    machine, rng = small_arm(), np.random.default_rng(3)
    vd.save_model(machine, folder / "robot.yaml")
    log, other = (log_of(machine, rng, name, seconds=10.0) for name in ("run", "other"))
    save_log(log, folder / "run.csv")
    motion, other_motion = (vd.motion(machine, x, vd.Signals(lowpass=20.0)) for x in (log, other))
    return {
        "vd": vd,
        "np": np,
        "machine": machine,
        "robot": machine,
        "log": log,
        "motion": motion,
        "other_motion": other_motion,
    }


def _engine(folder: Path, names: Names) -> None:
    names |= {"parts": [names["motion"][:500], names["motion"][500:]]}
    names |= dict(zip(("q", "qd", "qdd"), np.ones((3, 2)), strict=True))


def _checked(folder: Path, names: Names) -> None:
    names |= {"t": np.arange(10.0), "count": 3, "name": "run"}


def _estimators(folder: Path, names: Names) -> None:
    """One joint under a controller, so that estimators that simulate take a moment; another with a load on it."""
    from veridyn.mechanics.system.integrate import integrate
    from veridyn.model.graph import Body
    from veridyn.spatial.inertia import from_centre

    inertia = from_centre(2.0, [0.3, 0.0, 0.0], 0.02 * np.eye(3))
    machine = vd.Machine.of_bodies([Body("tool")], name="pendulum", inertia={"tool": inertia})

    def law(t, q, qd):
        return 30.0 * (np.sin(2.0 * t) + 0.5 * np.sin(5.0 * t) - q) - 3.0 * qd

    rng = np.random.default_rng(0)
    load = from_centre(1.0, [0.4, 0.0, 0.0], 0.01 * np.eye(3))

    def run(machine: vd.Machine) -> Any:
        made = integrate(machine, 0.005 * np.arange(2001), np.zeros(1), np.zeros(1), law).motion
        assert made.forces is not None
        return vd.Motion(made.t, made.q, made.qd, made.qdd, forces=made.forces + 0.02 * rng.normal(size=made.q.shape))

    loaded_machine = machine.with_parameters(machine.parameters.values + load)
    names |= {"machine": machine, "motion": run(machine), "law": law, "inertia": load}
    names |= {"empty": run(machine), "loaded": run(loaded_machine), "another": run(loaded_machine)}


def _periods(folder: Path, names: Names) -> None:
    plan, rng = names["plan"], np.random.default_rng(1)
    q = names["q"]
    names |= {"table": q + 1e-4 * rng.normal(size=q.shape), "rate": plan.rate}


def _likelihood(folder: Path, names: Names) -> None:
    """Ten whole periods of the small arm, as a log that begins in motion."""
    names["log"] = log_of(small_arm(), np.random.default_rng(4), "ten", seconds=50.0)
    names["motion"] = vd.motion(names["machine"], names["log"], vd.Signals(lowpass=20.0))


def _three_joints(folder: Path, names: Names) -> None:
    """run.csv of the three joints that the page builds."""
    from veridyn.spatial.inertia import from_centre

    machine = names["machine"]
    ten = from_centre(2.0, [0.1, 0.02, 0.03], np.diag([0.02, 0.03, 0.04]))
    truth = machine.with_parameters(np.concatenate([ten, ten, ten, np.tile([0.5, 0.3], 3)]))
    for file, seed in (("run.csv", 1), ("other.csv", 2)):
        (folder / file).unlink(missing_ok=True)
        save_log(log_of(truth, np.random.default_rng(seed), "run", seconds=8.0), folder / file)
    names["other_motion"] = vd.motion(machine, vd.load_log(folder / "other.csv"), vd.Signals(lowpass=20.0))


def _other_headers(folder: Path, names: Names) -> None:
    t = np.arange(300.0)
    columns = np.column_stack([10.0 * t, 30.0 * np.sin(0.1 * t), 20.0 * np.cos(0.1 * t)])
    np.savetxt(folder / "run.csv", columns, delimiter=",", header="stamp,pos_axis_1,pos_axis_2", comments="")


def _logs(folder: Path, names: Names) -> None:
    from scipy.io import savemat

    _other_headers(folder, names)
    t = 0.01 * np.arange(200)
    savemat(folder / "run.mat", {"t": t, "positions": np.column_stack([np.sin(t), np.cos(t)])})


def _balanced(folder: Path, names: Names) -> None:
    for name in ("balanced_arm.yaml", "balanced_arm_model.yaml", "balanced_arm.csv"):
        shutil.copy(STUDIES / name, folder / name)


def _oil(folder: Path, names: Names) -> None:
    """The log of the study, with the temperature of an oil that warms up."""
    loaded = load_study(folder / "balanced_arm.yaml", "identify")
    work = pipeline_of(loaded, names["arm"], Recordings(loaded)).start().logs
    m = work.motions(10.0)[0][0].motion
    names["motion"] = replace(m, signals={**m.signals, "oil": 30.0 + m.t})


def _hexapod(folder: Path, names: Names) -> None:
    from veridyn.mechanics.tree.loops.closure import closed_home
    from veridyn.papers.hexapod.machine import POSE, hexapod

    t, machine = 0.01 * np.arange(200), hexapod()
    home = closed_home(machine)
    at = home[[machine.coordinates.index(c) for c in POSE]]
    x = at + 0.01 * np.outer(np.sin(2.0 * t), np.ones(len(POSE)))
    xd = 0.02 * np.outer(np.cos(2.0 * t), np.ones(len(POSE)))
    names |= {"t": t, "x": x, "xd": xd, "xdd": -4.0 * (x - at)}


def _exports(folder: Path, names: Names) -> None:
    """A run folder with a consistent fit, as veridyn identify leaves it."""
    from veridyn.files import save_urdf

    machine = names["machine"]
    save_urdf(machine, folder / "robot.urdf")
    (folder / "study.yaml").write_text(
        "veridyn: 1\nkind: identify\nname: robot\nmodel: {file: robot.yaml}\n"
        "log:\n  time: t [s]\n  columns: {q.q1: 'q.q1 [rad]', q.q2: 'q.q2 [rad]', force.q1: 'force.q1 [N*m]', force.q2: 'force.q2 [N*m]'}\n"
        "training: [{file: run.csv, share: [0, 0.7]}]\nvalidation: [{file: run.csv, share: [0.7, 1]}]\n"
        "signals: {lowpass: 15}\nchecks: false\nestimator: {name: consistent}\n"
    )
    assert CliRunner().invoke(app, ["identify", "study.yaml", "--out", "runs"]).exit_code == 0
    names["fit"] = vd.identify(machine, names["motion"], vd.estimators.Consistent())


def _simulators(folder: Path, names: Names) -> None:
    for name in ("identified.xml", "identified.urdf"):
        (folder / name).unlink(missing_ok=True)


def _urdf(folder: Path, names: Names) -> None:
    from studies.bench_robot import JOINTS, recording, urdf

    (folder / "robot.urdf").write_text(urdf(1.0))
    raw = recording(1)
    values = {f"q.{c}": raw[c] for c in JOINTS} | {f"force.{c}": raw[f"tau{k + 1}"] for k, c in enumerate(JOINTS)}
    units = {n: "rad" if n.startswith("q.") else "N*m" for n in values}
    log = vd.Experiment.from_arrays(raw["t"], values, units)
    names["motion"] = vd.motion(vd.load_model(folder / "robot.urdf"), log, vd.Signals(lowpass=10.0))


def _panda(folder: Path, names: Names) -> None:
    for name in ("wrist_model.yaml", "wrist.txt", "palletizer_model.yaml", "palletizer.csv"):
        shutil.copy(STUDIES / name, folder / name)
    vd.save_model(small_arm(), folder / "panda_model.yaml")
    (folder / "examples").symlink_to(ROOT / "examples")


def _servos(folder: Path, names: Names) -> None:
    shutil.copy(STUDIES / "servo_arm_model.yaml", folder)


def _crank(folder: Path, names: Names) -> None:
    """The file that the page prints."""
    text = next(text for kind, text in blocks("docs/slider-crank.md") if kind == "yaml")
    (folder / "crank.yaml").write_text(text, encoding="utf-8")


# Page → what is made before the block of this number among those that run.
GIVEN: dict[str, dict[int, Callable[[Path, Names], None]]] = {
    "docs/controllers.md": {0: _servos},
    "docs/engine.md": {0: _engine},
    "docs/errors.md": {1: _checked},
    "docs/estimators.md": {0: _estimators},
    "docs/excitation.md": {1: _periods, 2: _likelihood},
    "docs/getting-started.md": {2: _three_joints, 3: _other_headers},
    "docs/logs.md": {0: _logs},
    "docs/laws.md": {0: _balanced, 2: _oil},
    "docs/papers/hexapod.md": {0: _hexapod},
    "docs/slider-crank.md": {0: _crank},
    "docs/simulators.md": {0: _exports, 1: _simulators},
    "docs/urdf.md": {0: _urdf},
    "docs/your-robot.md": {0: _panda},
}


def commands(text: str) -> list[list[str]]:
    """The commands of a block, without prompts and comments."""
    lines = [line.removeprefix("$ ") for line in text.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.strip() and not line.startswith("#")]


def run_command(words: list[str], folder: Path) -> None:
    assert words[0] == "veridyn", words
    done = CliRunner().invoke(app, words[1:])
    if words[1] == "new" and done.exit_code == 2 and "nothing is written over" in done.stderr:
        done = CliRunner().invoke(app, [*words[1:], "--force"])  # a page writes study.yaml more than once
    assert done.exit_code == 0, f"{words}: {done.output}"


def run_page(page: str, folder: Path) -> int:
    names, given, ran = robot_files(folder), GIVEN.get(page, {}), 0
    for k, (kind, text) in enumerate(to_run(page)):
        if k in given:
            given[k](folder, names)
        if kind in PROGRAMS:
            exec(compile(text, f"{page}, block {k}", "exec"), names)  # noqa: S102 - the page itself is under test
        else:
            for words in commands(text):
                run_command(words, folder)
        ran += 1
    return ran


@pytest.mark.filterwarnings("ignore::veridyn.errors.VeridynWarning")
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow if p in SLOW else ()) for p in pages() if to_run(p)],
)
def test_the_blocks_of_a_page_run_as_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        assert run_page(page, tmp_path) == len(to_run(page))
    except VeridynError as error:
        pytest.fail(f"{page}: {error}")


def test_every_reason_belongs_to_a_block() -> None:
    """A block that was changed or taken out takes its line of the table with it."""
    for page, words in NOT_RUN:
        assert any(text.startswith(words) for _, text in blocks(page)), (page, words)
