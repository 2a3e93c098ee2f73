"""What is fuzzed: files as they should be, the door that reads each of them, and the mutations that suit its format."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import veridyn as vd
from files.log.bags_made import START, json_mcap, ros_1, ros_2
from fuzz import meshes
from fuzz.mutations import (
    Mutation,
    some_arrays,
    some_bytes,
    some_json,
    some_lines,
    some_number,
    some_samples,
    some_token,
)
from studies.small_arm import believed, log_of, small_arm
from veridyn.files.access import shipped
from veridyn.files.machine.mjcf_write import mjcf_text
from veridyn.files.machine.write import model_text
from veridyn.files.meshes import load_mesh
from veridyn.studies.compare import compare
from veridyn.studies.config.study import load_study
from veridyn.studies.config.template import template

TEXT = (some_bytes, some_lines, some_token, some_number)
SILENT_SIGMAS = 3.0
DOTTED = {"t": "s", "q.q1": "rad", "q.q2": "rad", "force.q1": "N*m", "force.q2": "N*m"}
UNITS = {name.replace(".", "_"): unit for name, unit in DOTTED.items()}
LISTS = {"t": "ns", "q.0": "rad", "q.1": "rad", "force.0": "N*m", "force.1": "N*m"}
JOINTS = {"columns": {"q": "/joint_states.position"}, "units": {"q": "rad"}}
CAR = """veridyn: 2
name: small
formulation: single_track
constants: {base: 2.4}
car:
  tyre: magic
  mass: 900
  front: 1.0
  rear: base - 1
  front_stiffness: {value: 15, sigma: 5, upper: 30}
  rear_stiffness: {value: 16}
sensors:
  - {name: yaw_rate, kind: reading, on: yaw_rate, sigma: 0.002}
parameters: {known: [rear_stiffness], typical: {mass: 800}}
"""


@dataclass(frozen=True)
class Subject:
    """`files`: name → content; `target` is the one that is damaged. `door` reads what lies in a folder and returns how far, in standard
    deviations, the result is from that of the undamaged file; 0 where it has no result.
    """

    name: str
    target: str
    files: Callable[[], dict[str, bytes]]
    door: Callable[[Path], float]
    mutations: tuple[Mutation, ...]
    weight: float = 1.0


def _log() -> vd.Experiment:
    return log_of(small_arm(), np.random.default_rng(5), "bench", seconds=3.0)


@cache
def _table() -> bytes:
    log = _log()
    columns = {"t [s]": next(iter(log.channels.values())).t} | {
        f"{c.name} [{c.unit}]": c.values for c in log.channels.values()
    }
    lines = [
        ",".join(columns),
        *(",".join(f"{x:.10g}" for x in row) for row in np.column_stack(list(columns.values()))),
    ]
    return "\n".join(lines).encode()


def _npz() -> bytes:
    out, log = io.BytesIO(), _log()
    channels = log.channels
    np.savez(out, t=next(iter(channels.values())).t, **{n.replace(".", "_"): c.values for n, c in channels.items()})
    return out.getvalue()


def _mat() -> bytes:
    from scipy.io import savemat

    out, log = io.BytesIO(), _log()
    columns = {n.replace(".", "_"): c.values for n, c in log.channels.items()}
    savemat(out, {"t": next(iter(log.channels.values())).t, **columns}, do_compression=True)
    return out.getvalue()


def _parquet() -> bytes:
    import pyarrow
    import pyarrow.parquet

    log, out = _log(), io.BytesIO()
    table = pyarrow.table({"t": next(iter(log.channels.values())).t} | {n: c.values for n, c in log.channels.items()})
    pyarrow.parquet.write_table(table, out)
    return out.getvalue()


def _lists() -> bytes:
    """As LeRobot keeps a log: positions and forces are lists, the clock whole nanoseconds."""
    import pyarrow
    import pyarrow.parquet

    log, out = _log(), io.BytesIO()
    both = [np.stack([log[f"{kind}.{c}"].values for c in ("q1", "q2")], axis=1) for kind in ("q", "force")]
    stamps = (1e9 * log["q.q1"].t).astype(np.int64)
    kinds = (pyarrow.list_(pyarrow.float64(), 2), pyarrow.list_(pyarrow.float32()))
    columns = [pyarrow.array(list(x), kind) for x, kind in zip(both, kinds, strict=True)]
    pyarrow.parquet.write_table(pyarrow.table({"t": stamps, "q": columns[0], "force": columns[1]}), out)
    return out.getvalue()


def _two_logs() -> dict[str, bytes]:
    return {"arm.yaml": model_text(small_arm()).encode(), "run1.csv": _table(), "run2.csv": _table()}


def _new(folder: Path) -> None:
    """A first study of two recordings, as ``veridyn new`` writes it."""
    machine = vd.load_model(folder / "arm.yaml")
    text = template(folder / "arm.yaml", machine, [folder / "run1.csv", folder / "run2.csv"], folder / "study.yaml")
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    load_study(folder / "study.yaml")


@cache
def _written(kind: str) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if kind == "mdf":
            import asammdf

            log = _log()
            with asammdf.MDF(version="4.10") as file:
                file.append([asammdf.Signal(c.values, c.t, unit=c.unit, name=n) for n, c in log.channels.items()])
                return Path(file.save(folder / "log.mf4", compression=2)).read_bytes()
        if kind == "bag":
            return Path(ros_1(folder / "run.bag")).read_bytes()
        if kind == "db3":
            return next(Path(ros_2(folder / "run")).glob("*.db3")).read_bytes()
        if kind == "ros mcap":
            return next(Path(ros_2(folder / "run", storage="mcap")).glob("*.mcap")).read_bytes()
        rows = [("/a", START + 10_000_000 * k, {"v": 0.1 * k, "w": [1.0, 2.0]}) for k in range(30)]
        return Path(json_mcap(folder / "run.mcap", rows)).read_bytes()


@cache
def _fit() -> dict[str, bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "fit.json"
        vd.save(_reference(), path)
        return {file.name: file.read_bytes() for file in path.parent.iterdir()}


@cache
def _reference() -> vd.Fit:
    return vd.identify(believed(small_arm()), vd.motion(believed(small_arm()), _log()))


def _identified(folder: Path) -> float:
    """A log to a fit, as three lines of Python do it."""
    machine = believed(small_arm())
    fit = vd.identify(machine, vd.motion(machine, vd.load_log(folder / "log.csv")))
    true = _reference()
    if fit.names != true.names:
        return float("inf")
    return float(np.max(np.abs(fit.values - true.values) / true.sigma))


STUDY = """\
veridyn: 1
kind: identify
name: bench
model: {file: arm.yaml}
log:
  time: t
  columns:
    q: "q.*"
    force: {column: "force.*", unit: N*m, times: 1}
training: [log.csv]
validation: [{file: log.csv, share: [0.7, 1.0]}]
signals: {lowpass: 8, trim: 0.2}
estimator: {name: wls, covariance: white}
sampling: {decimate: 2, dead_zone: 0.05}
"""
RESULT = {
    "veridyn": "0.2.0",
    "study": "bench",
    "seed": 1,
    "quick": False,
    "inputs": {"log": "ab" * 32},
    "figures": {"condition": 12.0, "cross_validation_percent": 1.5},
    "parameters": [
        {
            "name": "ZZ1R",
            "unit": "kg*m^2",
            "value": 1.2,
            "sigma": 0.01,
            "sigma_percent": 0.8,
            "prior": 1.1,
            "truth": None,
        }
    ],
    "validation": {"q1": {"samples": 100.0, "rms": 0.1, "measured_rms": 1.0, "percent": 10.0}},
    "warnings": [],
}
URDF = """\
<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0.1 0 0.02" rpy="0 0 0.1"/><mass value="2.5"/>
      <inertia ixx="0.02" ixy="0" ixz="0.001" iyy="0.05" iyz="0" izz="0.05"/></inertial>
  </link>
  <link name="fore">
    <inertial><origin xyz="0.2 0 0"/><mass value="1.2"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><origin xyz="0 0 0.3" rpy="1.5707963267948966 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="100" velocity="3"/><dynamics damping="0.5" friction="0.2"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="fore"/><origin xyz="0.4 0 0"/><axis xyz="0 0 1"/><mimic joint="shoulder" multiplier="0.5"/>
  </joint>
</robot>
"""
STORAGE = (
    "run\nversion=1\nnRows=3\nnColumns=3\ninDegrees=yes\nendheader\ntime\ta\tb\n0\t1\t2\n0.1\t1.5\t2.5\n0.2\t2\t3\n"
)


def _osim() -> bytes:
    from files.test_osim import WHOLE, text

    return text(WHOLE).encode()


def _shown(folder: Path) -> float:
    """The command line in this process: an exception that is none of its own is let through."""
    from typer.testing import CliRunner

    from veridyn.cli.app import app

    done = CliRunner().invoke(app, ["model", "show", str(folder / "arm.yaml")])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code == 2:
        raise vd.errors.FileError(done.stderr)
    return 0.0


def _door(read: Callable[[Path], object]) -> Callable[[Path], float]:
    def through(folder: Path) -> float:
        read(folder)
        return 0.0

    return through


def _loaded(name: str, **how: object) -> Callable[[Path], float]:
    return _door(lambda folder: vd.load_log(folder / name, **how))


def _compared(folder: Path) -> None:
    compare(folder / "result.json", folder / "other.json")


def _shipped(name: str) -> bytes:
    return shipped(f"veridyn:{name}").read_bytes()


def _model(name: str, content: Callable[[], bytes], weight: float) -> Subject:
    return Subject(name, name, lambda: {name: content()}, _door(lambda f: vd.load_model(f / name)), TEXT, weight)


def _mesh(name: str, content: Callable[[], bytes], mutations: tuple[Mutation, ...]) -> Subject:
    file = f"box.{name.split()[0]}"
    return Subject(name, file, lambda: {file: content()}, _door(lambda f: load_mesh(f / file)), mutations, 0.3)


def _log_file(
    name: str, target: str, content: Callable[[], bytes], mutations: tuple[Mutation, ...], **how: object
) -> Subject:
    return Subject(name, target, lambda: {target: content()}, _loaded(target, **how), mutations)


def _runs() -> dict[str, bytes]:
    return {name: json.dumps(RESULT).encode() for name in ("result.json", "other.json")}


def _summary(folder: Path) -> str:
    return vd.load(folder / "fit.json").summary()


@cache
def subjects() -> tuple[Subject, ...]:
    """All of them."""
    arm = model_text(small_arm()).encode()
    flips = (some_bytes,)
    storage = _door(lambda f: vd.files.load_storage(f / "run.sto"))
    return (
        _model("arm.yaml", lambda: arm, 2.0),
        _model("arm.urdf", URDF.encode, 2.0),
        _model("arm.xml", lambda: mjcf_text(small_arm()).encode(), 2.0),
        *(
            _model(n, lambda n=n: _shipped(n), 0.5)
            for n in ("fourbar.yaml", "hexapod.yaml", "buggy.yaml", "palletizer.yaml")
        ),
        Subject("model show", "arm.yaml", lambda: {"arm.yaml": arm}, _shown, TEXT, 0.5),
        Subject(
            "study",
            "study.yaml",
            lambda: {"study.yaml": STUDY.encode()},
            _door(lambda f: load_study(f / "study.yaml")),
            TEXT,
            2.0,
        ),
        _log_file("csv", "log.csv", _table, TEXT),
        _log_file("npz", "log.npz", _npz, (some_bytes, some_arrays), units=UNITS),
        _log_file("mat", "log.mat", _mat, flips, units=UNITS),
        _log_file("parquet", "log.parquet", _parquet, flips, units=DOTTED),
        _log_file("parquet lists", "log.parquet", _lists, flips, units=LISTS),
        Subject("new of two logs", "run2.csv", _two_logs, _door(_new), TEXT),
        _log_file("mdf", "log.mf4", lambda: _written("mdf"), flips),
        _log_file("bag", "run.bag", lambda: _written("bag"), flips, **JOINTS),
        _log_file("db3", "run.db3", lambda: _written("db3"), flips, **JOINTS),
        _log_file("mcap", "run.mcap", lambda: _written("mcap"), flips, units={"/a.w": "m", "/a.v": "m"}),
        _log_file("ros mcap", "run.mcap", lambda: _written("ros mcap"), flips, **JOINTS),
        Subject(
            "osim", "leg.osim", lambda: {"leg.osim": _osim()}, _door(lambda f: vd.files.load_osim(f / "leg.osim")), TEXT
        ),
        Subject("storage", "run.sto", lambda: {"run.sto": STORAGE.encode()}, storage, TEXT),
        Subject("fit json", "fit.json", _fit, _door(_summary), (some_bytes, some_json)),
        Subject("fit arrays", "fit.npz", _fit, _door(_summary), (some_bytes, some_arrays)),
        Subject("run", "result.json", _runs, _door(_compared), (some_bytes, some_json)),
        _mesh("stl", meshes.stl, flips),
        _mesh("stl text", meshes.stl_text, TEXT),
        _mesh("obj", meshes.obj, TEXT),
        _mesh("ply", meshes.ply, TEXT),
        _mesh("ply text", meshes.ply_text, TEXT),
        _mesh("glb", meshes.glb, TEXT),
        _mesh("dae", meshes.dae, TEXT),
        Subject("log to fit", "log.csv", lambda: {"log.csv": _table()}, _identified, (some_samples, some_number), 2.0),
        _model("car.yaml", CAR.encode, 1.0),
    )
