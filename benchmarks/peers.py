"""``python -m benchmarks.peers``: measured machines identified by veridyn and its peers from the same samples, in one table.

Arms (Panda, UR10e, KUKA): every tool gets the samples that the study in examples/studies prepares (filtered positions, their derivatives,
measured torques) and is tested on the held-out ones: ‖τ − τ̂‖/‖τ‖ over all joints, torques as measured, of joints that move faster than the
study's dead zone. EMPS by simulation: the rule of the
public benchmark, with the start fixed beforehand (:mod:`benchmarks.peers_emps`). `consistent`: whether every body of the identified model
can exist; base parameters alone do not say. `lines`: of the study and model file, or of the function here that a user of that tool would
write, reading and filtering not counted. A tool that is not installed is left out, and named.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.linalg import lstsq

from benchmarks.peer_line import Line, lines_of, mujoco_sysid_is_whole
from benchmarks.peers_emps import emps_lines
from benchmarks.subjects import PinModel
from strangers.random_trees import random_inertia
from veridyn.identify.gains import gain_names
from veridyn.identify.pipeline.recording import wrong_speed
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import INERTIAL, broken_law
from veridyn.studies.config.study import Loaded, load_study
from veridyn.studies.run.identify import pipeline_of, run_identify
from veridyn.studies.run.machine import study_machine
from veridyn.studies.run.recordings import Recordings

Array = NDArray[np.float64]
STUDIES = Path(__file__).parents[1] / "examples" / "studies"
ARMS = ("panda", "ur10e", "kuka")  # studies
EVERY = 5  # sample that is fitted by tools which store the regressor


@dataclass(frozen=True, eq=False)
class Samples:
    """Positions, speeds, accelerations and torques (N, n) of some samples, and the motions that they are of."""

    q: Array
    qd: Array
    qdd: Array
    tau: Array
    motion: Motion
    least_speed: float = 0.0
    rotors: bool = False


def samples_of(loaded: Loaded[Any], machine: Machine, lowpass: float | None) -> tuple[Samples, Samples]:
    """What a study fits and what it is tested on."""
    work = pipeline_of(loaded, machine, Recordings(loaded)).start().logs
    both = []
    for parts in work.motions(lowpass):
        kept = [part.motion[~wrong_speed(part)] for part in parts]
        signals = {n: np.concatenate([m.signals[n] for m in kept]) for n in kept[0].signals}
        q, qd, qdd = (np.concatenate([getattr(m, x) for m in kept]) for x in ("q", "qd", "qdd"))
        whole = Motion(np.arange(len(q), dtype=np.float64), q, qd, qdd, signals=signals)
        forces = [m.forces for m in kept if m.forces is not None]
        tau = np.concatenate(forces) if forces else _through_gains(machine, whole)
        slow = loaded.study.sampling.dead_zone
        rotors = any(e.kind == "inertia" for e in machine.elements)
        both.append(Samples(q, qd, qdd, tau, whole, slow if isinstance(slow, float) else 0.0, rotors))
    return both[0], both[1]


def _through_gains(machine: Machine, motion: Motion) -> Array:
    tau = np.zeros_like(motion.q)
    for e in machine.elements:
        if e.kind == "drive_gain":
            (name,) = e.on
            tau[:, machine.coordinates.index(name)] = machine.parameters[e.parameter_name] * motion.signals[e.signal]
    return tau


def by_scipy(model: Any, train: Samples, test: Samples) -> Array:
    """Torques (N, n) of the test samples by ordinary least squares over all parameters, friction and offsets."""
    data = model.createData()

    def regressor(s: Samples) -> Array:
        rows = []
        for q, qd, qdd in zip(s.q, s.qd, s.qdd, strict=True):
            Y = pin.computeJointTorqueRegressor(model, data, q, qd, qdd)
            rows.append(np.hstack([Y, np.diag(qd), np.diag(np.sign(qd)), np.eye(len(q)), s.rotors * np.diag(qdd)]))
        return np.concatenate(rows)

    phi = lstsq(regressor(train), train.tau.ravel(), cond=1e-8)[0]
    return (regressor(test) @ phi).reshape(test.tau.shape)


def by_figaroh(model: Any, train: Samples, test: Samples) -> Array:
    """The same by FIGAROH's regressor and base parameters."""
    from figaroh.tools.qrdecomposition import QRDecomposer
    from figaroh.tools.regressor import RegressorBuilder, RegressorConfig, build_regressor_reduced, get_index_eliminate

    robot = SimpleNamespace(model=model, data=model.createData())
    config = RegressorConfig(has_friction=True, has_joint_offset=True, has_actuator_inertia=train.rotors)
    builder = RegressorBuilder(robot, config)
    W, W_test = (
        builder.build_basic_regressor(s.q, s.qd, s.qdd, {"act_idxv": list(range(model.nv))}) for s in (train, test)
    )
    idle, kept = get_index_eliminate(W, {f"p{k}": 0.0 for k in range(W.shape[1])})
    W, W_test = build_regressor_reduced(W, idle), build_regressor_reduced(W_test, idle)
    W_base, _, _, phi = QRDecomposer().double_decomposition(train.tau.T.ravel(), W, kept)[:4]
    base = [int(np.argmin(np.abs(W - column[:, None]).sum(axis=0))) for column in W_base.T]
    return (W_test[:, base] @ phi).reshape(test.tau.shape[::-1]).T


def arm_lines(name: str) -> Iterator[Line]:
    """One line for each tool on one arm."""
    loaded = load_study(STUDIES / f"{name}.yaml")
    loaded = replace(loaded, study=loaded.study.model_copy(update={"checks": False}))
    machine = study_machine(loaded, ("model",), loaded.study.model, "unknown")
    written = _written(STUDIES / f"{name}.yaml", STUDIES / f"{name}_model.yaml")
    consistent = loaded.study.estimator.model_copy(update={"name": "consistent"})
    for tool, estimator in (("veridyn, as in its study", None), ("veridyn, consistent", consistent)):
        if estimator is not None and loaded.study.estimator.name == "consistent":
            continue
        own = loaded if estimator is None else _with(loaded, estimator)
        start = time.process_time()
        run = run_identify(own)
        fit, cpu = run.study.fit, time.process_time() - start
        train, test = samples_of(loaded, machine, run.lowpass)
        gains = [fit.described.parameters.index(n) for n in gain_names(fit.described)]
        phi = fit.standard.copy()
        phi[gains] = 0.0
        predicted = inverse_dynamics(fit.described, test.motion, parameters=phi)
        yield Line(name, tool, _error(test, predicted), "%", cpu, _possible(fit.described, fit.standard), written)
    model = pin_model(machine)
    fewer = replace(train, **{x: getattr(train, x)[::EVERY] for x in ("q", "qd", "qdd", "tau")})
    tools: dict[str, Callable[[Any, Samples, Samples], Array]] = {"SciPy and Pinocchio": by_scipy}
    if importlib.util.find_spec("figaroh") is not None:
        tools["FIGAROH"] = by_figaroh
    for tool, identify in tools.items():
        start = time.process_time()
        predicted = identify(model, fewer, test)
        cpu = time.process_time() - start
        yield Line(name, tool, _error(test, predicted), "%", cpu, None, lines_of(identify))


def _with(loaded: Loaded[Any], estimator: Any) -> Loaded[Any]:
    return replace(loaded, study=loaded.study.model_copy(update={"estimator": estimator}))


def pin_model(machine: Machine) -> Any:
    """Pinocchio's model of the bodies of a machine; FIGAROH wants a mass on each link, which no regressor depends on."""
    rng = np.random.default_rng(0)
    inertia = {b.name: random_inertia(rng) for b in machine.links if b.real}
    return PinModel(Machine.of_bodies(tree_of(machine).bodies, gravity=machine.gravity, inertia=inertia)).model


def _error(test: Samples, predicted: Array) -> float:
    moving = np.abs(test.qd) >= test.least_speed
    return float(100.0 * np.linalg.norm((test.tau - predicted)[moving]) / np.linalg.norm(test.tau[moving]))


def _possible(machine: Machine, phi: Array) -> bool:
    p = machine.parameters
    bodies = [[phi[p.index(b.parameter(s))] for s in INERTIAL] for b in machine.links if b.real]
    return all(broken_law(np.array(x)) is None for x in bodies)


def _written(*files: Path) -> int:
    """Lines that are neither empty nor comments."""
    texts = [f.read_text(encoding="utf-8") for f in files if f.is_file()]
    return sum(bool(x.strip()) and not x.strip().startswith("#") for text in texts for x in text.splitlines())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", choices=["emps", *ARMS], help="one machine")
    chosen = parser.parse_args()
    if not os.environ.get("VERIDYN_DATA"):
        sys.exit("The logs are found through VERIDYN_DATA, which is not set.")
    warnings.simplefilter("ignore")
    found: list[Line] = []
    for name in ARMS:
        if chosen.only in (None, name):
            found += arm_lines(name)
    if chosen.only in (None, "emps"):
        found += emps_lines()
    if chosen.json:
        print(json.dumps([asdict(x) for x in found], indent=1))
        return
    print("| machine | tool | held-out error | CPU s | consistent | lines |\n|---|---|---|---|---|---|")
    for x in found:
        words = {True: "yes", False: "no", None: "not decided"}[x.consistent]
        print(f"| {x.machine} | {x.tool} | {x.held_out:.2f} {x.unit} | {x.cpu:.1f} | {words} | {x.lines} |")
    whole = {"FIGAROH": importlib.util.find_spec("figaroh") is not None, "mujoco.sysid": mujoco_sysid_is_whole()}
    for tool, there in whole.items():
        if not there:
            print(f"\n{tool} is not installed with all it needs, and is left out.")


if __name__ == "__main__":
    main()
