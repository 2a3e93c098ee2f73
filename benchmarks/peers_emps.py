"""EMPS by simulation: the positioning axis driven by its voltage, no feedback, under the rule of the public benchmark.

The first 20 samples of the file with pulses are for the state, the error is the rms of the positions after them, in mm. How the state comes
of these samples was fixed before any result was looked at: the mean of the 20 positions, at rest. Parameters are fitted on the other file
by each tool's own output error and judged by its own simulation, and all of them are M q̈ = g u − F_v q̇ − F_c sign q̇ − c.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import least_squares

import veridyn as vd
from benchmarks.peer_line import Line, lines_of, mujoco_sysid_is_whole
from veridyn.mechanics.system.integrate import Method, integrate

Array = NDArray[np.float64]
Tool = Callable[[Array, Array, float], Array]  # positions or parameters, forces and the start → parameters or positions
START_SAMPLES = 20
GUESS = np.array([100.0, 200.0, 20.0, -3.0])  # M, Fv, Fc, c: round numbers near what is published
RATE = 250.0  # Hz, of the samples that veridyn fits and simulates
ROUNDS = 3  # after the first, in which all tools take turns: the least CPU time counts
SLOW_FIT = 5.0  # s of CPU, above which a tool fits twice only


def read(name: str) -> tuple[Array, Array, float]:
    """Positions [m] and forces [N] at 1 kHz, and the start."""
    from pymatreader import read_mat

    said = read_mat(str(Path(os.environ["VERIDYN_DATA"]) / "emps" / name))
    q, u = (np.ravel(said[key]).astype(np.float64) for key in ("qm", "vir"))
    return q, float(said["gtau"]) * u, float(q[:START_SAMPLES].mean())


@njit
def simulated(p: Array, force: Array, start: float) -> Array:
    """Positions under forces (N,) at 1 kHz from rest at `start`, by steps with friction implicit in the speed."""
    M, Fv, Fc, c = p[0], p[1], p[2], p[3]
    h, q, v = 1e-3, start, 0.0
    out = np.empty(len(force))
    for k in range(len(force)):
        out[k] = q
        push = M * v + h * (force[k] - c)
        push = np.sign(push) * max(abs(push) - h * Fc, 0.0)  # sticks where friction can hold it
        v = push / (M + h * Fv)
        q += h * v
    return out


def judged(p: Array, simulate: Tool) -> float:
    """rms error in mm on the file with pulses, by the rule and the tool's own simulation."""
    q, force, start = read("DATA_EMPS_PULSES.mat")
    found = simulate(p, force, start)
    return float(1e3 * np.sqrt(np.mean((found - q)[START_SAMPLES:] ** 2)))


def by_scipy(q: Array, force: Array, start: float) -> Array:
    """M, Fv, Fc, c by SciPy on the simulation above."""
    return least_squares(lambda p: (simulated(p, force, start) - q)[::10], GUESS, x_scale=np.abs(GUESS)).x


def axis() -> vd.Machine:
    """The axis as a model of veridyn, its parameters unknown."""
    return vd.Machine.of_bodies(
        [vd.model.Body("1", joint="sliding")],
        name="EMPS",
        gravity=(0.0, 0.0, 0.0),
        elements=[
            vd.elements.damper("q1", name="Fv"),
            vd.elements.coulomb("q1", name="Fc"),
            vd.elements.offset("q1", name="c"),
        ],
    )


def by_veridyn(q: Array, force: Array, start: float) -> Array:
    """The same by veridyn's output error, with friction that holds; nothing is diagnosed, as by the others."""
    t = np.arange(len(q)) / 1000.0
    log = vd.Experiment.from_arrays(t, {"q.q1": q, "force.q1": force}, {"q.q1": "m", "force.q1": "N"})
    motion = vd.motion(axis(), log, vd.Signals(rate=RATE, lowpass=50.0, trim=0.0))
    q, qd = motion.q.copy(), motion.qd.copy()
    q[0], qd[0] = start, 0.0  # as every tool is given it
    motion = replace(motion, q=q, qd=qd)
    fit = vd.identify(axis(), motion, vd.estimators.OutputError(initial="measured", friction_speed=0.0), diagnose="off")
    return np.array([fit.values[fit.names.index(n)] for n in ("M1", "Fv", "Fc", "c")])


def in_veridyn(p: Array, force: Array, start: float) -> Array:
    """The positions that veridyn simulates with these parameters, friction holding, in steps of a sample of the fit."""
    t = np.arange(len(force)) / 1000.0
    values = np.zeros(len(axis().parameters))
    values[[axis().parameters.names.index(name) for name in ("M1", "Fv", "Fc", "c")]] = p
    found = integrate(
        axis(),
        t[:: round(1000.0 / RATE)],
        [start],
        [0.0],
        lambda time, q, qd: [np.interp(time, t, force)],
        method=Method("RK4", step=1.0 / RATE),
        parameters=values,
    )
    return np.interp(t, found.motion.t, found.motion.q[:, 0])


AXIS = """<mujoco><option timestep="0.001" gravity="0 0 0" integrator="implicitfast"/><worldbody><body name="m">
      <inertial pos="0 0 0" mass="100" diaginertia="1 1 1"/><joint name="q" type="slide" axis="1 0 0" damping="200" frictionloss="20"/>
      </body></worldbody><actuator><motor name="f" joint="q"/><motor name="c" joint="q"/></actuator>
      <sensor><jointpos name="q" joint="q"/></sensor></mujoco>"""


def in_mujoco(p: Array, force: Array, start: float) -> Array:
    """The positions that MuJoCo simulates with these parameters."""
    import mujoco

    spec = mujoco.MjSpec.from_string(AXIS)
    spec.body("m").mass, spec.joint("q").damping = float(p[0]), [float(p[1]), 0.0, 0.0]
    spec.joint("q").frictionloss, spec.actuator("c").gainprm[0] = float(p[2]), float(p[3])
    model = spec.compile()
    data, out = mujoco.MjData(model), np.empty(len(force))
    data.qpos[0] = start
    for k, f in enumerate(force):
        out[k] = data.qpos[0]
        data.ctrl[:] = f, -1.0
        mujoco.mj_step(model, data)
    return out


def by_mujoco(q: Array, force: Array, start: float) -> Array:
    """The same by mujoco.sysid."""
    import mujoco
    from mujoco import sysid

    spec = mujoco.MjSpec.from_string(AXIS)
    model = spec.compile()

    def mass(s: Any, p: Any) -> None:
        s.body("m").mass = float(p.value[0])

    def damping(s: Any, p: Any) -> None:
        s.joint("q").damping = [float(p.value[0]), 0.0, 0.0]

    def friction(s: Any, p: Any) -> None:
        s.joint("q").frictionloss = float(p.value[0])

    def offset(s: Any, p: Any) -> None:
        s.actuator("c").gainprm[0] = float(p.value[0])

    params = sysid.ParameterDict()
    low, high = GUESS - 0.5 * np.abs(GUESS), GUESS + 0.5 * np.abs(GUESS)
    for k, (name, change) in enumerate((("M", mass), ("Fv", damping), ("Fc", friction), ("c", offset))):
        params.add(sysid.Parameter(name, GUESS[k], low[k], high[k], modifier=change))
    t = np.arange(len(q)) / 1000.0
    control = sysid.TimeSeries(t, np.column_stack([force, -np.ones(len(q))]))
    measured = sysid.TimeSeries(t, q[:, None], signal_mapping={"q": (sysid.SignalType.MjSensor, np.array([0]))})
    state = sysid.create_initial_state(model, np.array([start]))
    runs = sysid.ModelSequences("emps", spec, "fit", state, control, measured)
    with redirect_stdout(sys.stderr):  # it prints its steps
        found, _ = sysid.optimize(params, sysid.build_residual_fn(models_sequences=[runs]), verbose=False)
    return found.as_vector()


def emps_lines() -> Iterator[Line]:
    """One line for each tool: the least CPU time of several fits in turn, without that of compiling."""
    q, force, start = read("DATA_EMPS.mat")
    tools: dict[str, tuple[Tool, Tool]] = {
        "veridyn, output error": (by_veridyn, in_veridyn),
        "SciPy": (by_scipy, simulated),
    }
    if mujoco_sysid_is_whole():
        tools["mujoco.sysid"] = (by_mujoco, in_mujoco)
    found, cpu = {}, dict.fromkeys(tools, np.inf)
    for turn in range(1 + ROUNDS):  # the first of each compiles and loads, and is not counted where there is another
        for tool, (identify, _) in tools.items():
            if turn > 1 and cpu[tool] > SLOW_FIT:
                continue
            before = time.process_time()
            found[tool] = identify(q, force, start)
            cpu[tool] = min(cpu[tool], time.process_time() - before)
    for tool, (identify, simulate) in tools.items():
        p = found[tool]
        lines = lines_of(identify) + (lines_of(axis) if identify is by_veridyn else 0)  # the model counts too
        yield Line("EMPS, simulated", tool, judged(p, simulate), "mm", cpu[tool], bool((p[:3] > 0.0).all()), lines)
