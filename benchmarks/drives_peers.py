"""Peers on the log of a real quadruped: drives of a Unitree Go2 by MuJoCo with SciPy and by mujoco.sysid, beside veridyn.

All get the same file of the robot, commands and encoders of 0 to 16 s, and the gains of its owners. Judged is the rms of the encoders from
16 to 23.5 s, simulated from the start by the tool itself.

    PACE's numbers    armature, viscous and dry friction, encoder zero of each joint and one delay: 49, by scipy.optimize.least_squares
                      on MuJoCo's rollout, derivatives by differences, no priors (the parametrisation of leggedrobotics/pace-sim2real)
    mujoco.sysid      armature, damping and frictionloss of each joint, within bounds, by its own optimiser: what its modifiers change
    veridyn           ``Drives(kp=20, kd=1.5, until=16)``

Peers take as many iterations as are asked for; `converged` says whether they ended by themselves, where they tell. mujoco.sysid needs
packages of its own (``pip install mujoco[sysid]``), and is left out without them.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

import veridyn as vd
from benchmarks.peer_line import mujoco_sysid_is_whole
from veridyn.arrays import Array
from veridyn.errors import VeridynWarning

KP, KD, FITTED_S = 20.0, 1.5, 16.0  # of its owners' configuration; examples/studies/go2.yaml
STEP, SAMPLE = 0.001, 0.005  # s, of the simulation and of the log
KEYS = ("armature", "damping", "frictionloss")
START = {"armature": 0.01, "damping": 0.6, "frictionloss": 0.2}  # of the file, for all joints
LONGEST_DELAY = 0.03  # s


@dataclass(frozen=True)
class PeerResult:
    """What a tool reached: numbers it estimated, rms in rad, processor seconds; `iterations` of those allowed."""

    tool: str
    numbers: int
    fitted: float
    held_out: float
    cpu_seconds: float
    iterations: str
    converged: str
    deviations: str


class Go2:
    """The robot on a stand in MuJoCo, with its log."""

    def __init__(self, folder: Path) -> None:
        import mujoco

        own: Any = mujoco

        self.file, self.log_file = folder / "go2.xml", folder / "encoders.csv"
        spec = own.MjSpec.from_file(str(self.file))
        spec.delete(next(j for j in spec.joints if j.type == own.mjtJoint.mjJNT_FREE))
        for part in (*spec.sensors, *spec.keys):  # of the free base
            spec.delete(part)
        spec.option.timestep = STEP
        spec.option.integrator = own.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.disableflags |= own.mjtDisableBit.mjDSBL_CONTACT  # its legs hang in the air
        self.joints = [j.name for j in spec.joints]
        actuators = {a.target: a for a in spec.actuators}
        for joint in self.joints:
            a = actuators[joint]
            a.gainprm[0] = KP
            a.biastype = own.mjtBias.mjBIAS_AFFINE
            a.biasprm[:3] = 0.0, -KP, -KD
            a.ctrllimited = False
            spec.add_sensor(
                name=joint, type=own.mjtSensor.mjSENS_JOINTPOS, objtype=own.mjtObj.mjOBJ_JOINT, objname=joint
            )
        self.order = [self.joints.index(a.target) for a in spec.actuators]
        self.spec, self.model = spec, spec.compile()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VeridynWarning)
            log = vd.load_log(self.log_file)
        self.t = np.asarray(log[f"position.{self.joints[0]}"].t) - log[f"position.{self.joints[0]}"].t[0]
        self.command = np.stack([log[f"command.{j}"].values for j in self.joints], axis=1)
        self.read = np.stack([log[f"position.{j}"].values for j in self.joints], axis=1)

    @cached_property
    def ticks(self) -> Array:
        return np.arange(round(self.t[-1] / STEP) + 1) * STEP

    @property
    def fitted(self) -> int:
        """Samples that are fitted."""
        return int((self.t < FITTED_S).sum())

    def wanted(self, delay: float, samples: int) -> Array:
        """Commands at the ticks, held until the next, so much later; a delay within a tick moves them in part."""
        ticks = self.ticks[: (samples - 1) * round(SAMPLE / STEP) + 1]
        held = []
        for later in (np.floor(delay / STEP) * STEP, (np.floor(delay / STEP) + 1.0) * STEP):
            at = np.floor((ticks - later + 1e-9) / SAMPLE).astype(int)
            held.append(self.command[np.clip(at, 0, len(self.command) - 1)])
        share = delay / STEP - np.floor(delay / STEP)
        return (1.0 - share) * held[0] + share * held[1]

    def simulate(self, x: Array, samples: int) -> Array:
        """Encoders (samples, 12) with x: armatures, dampings, frictions, zeros of 12 joints each, and the delay."""
        import mujoco
        from mujoco import rollout

        own: Any = mujoco

        n, m = len(self.joints), self.model
        m.dof_armature[:], m.dof_frictionloss[:] = x[:n], x[2 * n : 3 * n]
        m.dof_damping[:] = x[n : 2 * n]
        zero, data = x[3 * n : 4 * n], own.MjData(m)
        data.qpos[:] = self.read[0] - zero
        state = np.zeros(own.mj_stateSize(m, own.mjtState.mjSTATE_FULLPHYSICS))
        own.mj_getState(m, data, state, own.mjtState.mjSTATE_FULLPHYSICS)
        control = (self.wanted(float(x[4 * n]), samples) - zero)[:, self.order]
        states = np.asarray(rollout.rollout(m, data, state[None], control[None, :-1])[0])
        q = np.concatenate([data.qpos[None] * 0.0 + (self.read[0] - zero), states[0, :, 1 : 1 + n]])
        return q[:: round(SAMPLE / STEP)] + zero

    def rms(self, x: Array) -> tuple[float, float]:
        """Of the fitted samples and of those behind them, rad."""
        off = self.simulate(x, len(self.t)) - self.read
        return tuple(float(np.sqrt(np.mean(part**2))) for part in (off[: self.fitted], off[self.fitted :]))  # pyright: ignore[reportReturnType]

    @property
    def start(self) -> Array:
        n = len(self.joints)
        return np.concatenate([*(np.full(n, START[key]) for key in KEYS), np.zeros(n), [0.002]])


def by_pace(robot: Go2, iterations: int) -> PeerResult:
    """PACE's 49 numbers by SciPy on MuJoCo's rollout."""
    n, count, begun = len(robot.joints), robot.fitted, time.process_time()
    scale = np.concatenate([*(np.full(n, START[key]) for key in KEYS), np.full(n, 0.02), [0.002]])
    low = np.concatenate([np.full(3 * n, 1e-4), np.full(n, -1.0), [0.0]])
    high = np.concatenate([np.full(3 * n, 10.0), np.full(n, 1.0), [LONGEST_DELAY]])

    def off(x: Array) -> Array:
        return (robot.simulate(x, count) - robot.read[:count]).ravel()

    found = least_squares(off, robot.start, bounds=(low, high), x_scale=scale, diff_step=1e-4, max_nfev=iterations)
    spent = time.process_time() - begun
    return PeerResult(
        "MuJoCo with SciPy, PACE's numbers",
        4 * n + 1,
        *robot.rms(found.x),
        spent,
        f"{found.nfev} of {iterations}",
        "yes" if found.status > 0 else "no",
        "none",
    )


def by_sysid(robot: Go2, iterations: int) -> PeerResult:
    """Armature, damping and frictionloss by mujoco.sysid."""
    from mujoco import sysid

    n, count, begun = len(robot.joints), robot.fitted, time.process_time()
    params = sysid.ParameterDict()

    def setter(joint: str, key: str) -> Any:
        def change(spec: Any, p: Any) -> None:
            value = float(p.value[0])
            setattr(spec.joint(joint), key, [value, 0.0, 0.0] if key == "damping" else value)

        return change

    for key in KEYS:
        for joint in robot.joints:
            params.add(
                sysid.Parameter(f"{key}.{joint}", START[key], 1e-3, 20.0 * START[key], modifier=setter(joint, key))
            )
    ticks = robot.ticks[: (count - 1) * round(SAMPLE / STEP) + 1]
    control = sysid.TimeSeries(ticks, robot.wanted(0.0, count)[:, robot.order])
    mapping = {j: (sysid.SignalType.MjSensor, np.array([k])) for k, j in enumerate(robot.joints)}
    measured = sysid.TimeSeries(robot.t[:count], robot.read[:count], signal_mapping=mapping)
    state = sysid.create_initial_state(robot.spec.compile(), robot.read[0])
    runs = sysid.ModelSequences("go2", robot.spec, "fit", state, control, measured)
    with redirect_stdout(sys.stderr):  # it prints its steps
        found, _ = sysid.optimize(
            params,
            sysid.build_residual_fn(models_sequences=[runs], n_threads=1),
            verbose=False,
            max_iters=iterations,
        )
    spent = time.process_time() - begun
    x = np.concatenate([found.as_vector(), np.zeros(n + 1)])
    return PeerResult(
        "mujoco.sysid",
        3 * n,
        *robot.rms(x),
        spent,
        f"at most {iterations}",
        "not told",
        "none by default",
    )


def by_veridyn(robot: Go2) -> PeerResult:
    """The study examples/studies/go2.yaml, in Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridynWarning)
        machine, log = vd.load_model(robot.file, base="fixed"), vd.load_log(robot.log_file)
        begun = time.process_time()
        fit = vd.identify(machine, log, vd.estimators.Drives(kp=KP, kd=KD, until=FITTED_S))
    assert isinstance(fit, vd.estimators.DrivesFit)
    return PeerResult(
        "veridyn",
        len(fit.drives),
        fit.replay.rms_of_all(0.0, fit.until),
        fit.rms_held_out,
        time.process_time() - begun,
        "as it needs",
        "yes",
        f"of all; {len(fit.drives) - len(fit.determined)} named as not determined",
    )


def peer_lines(iterations: int) -> Iterator[str]:
    """A table of Markdown of all tools that are installed, a row as soon as it is known."""
    folder = Path(os.environ.get("VERIDYN_DATA", "")) / "go2"
    if not (folder / "go2.xml").exists():
        yield "Peers are skipped: VERIDYN_DATA names no folder with go2."
        return
    robot, whole = Go2(folder), mujoco_sysid_is_whole()
    defaults = robot.rms(robot.start * np.append(np.ones(len(robot.start) - 1), 0.0))
    yield "| tool | numbers | fitted, rad | held out, rad | CPU s | iterations | converged | deviations |"
    yield "|---|---:|---:|---:|---:|---|---|---|"
    yield f"| values of the file, MuJoCo | 0 | {defaults[0]:.4f} | {defaults[1]:.4f} | | | | |"
    tools: list[Callable[[], PeerResult]] = [partial(by_pace, robot, iterations), partial(by_veridyn, robot)]
    if whole:
        tools.insert(1, partial(by_sysid, robot, iterations))
    for tool in tools:
        r = tool()
        yield (
            f"| {r.tool} | {r.numbers} | {r.fitted:.4f} | {r.held_out:.4f} | {r.cpu_seconds:.0f} | {r.iterations} | "
            f"{r.converged} | {r.deviations} |"
        )
    if not whole:
        yield ""
        yield "mujoco.sysid is not installed: pip install mujoco[sysid]."
