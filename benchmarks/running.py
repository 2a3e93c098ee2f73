"""Running a model forwards, beside MuJoCo in the same run: ``python -m benchmarks.running [--json]``.

A 7-joint arm follows a reference by PD controllers sampled at 1 kHz. Both tools take steps of order four, 1 ms long, with the force of
each tick held: the error at the end against veridyn's own run with steps of 10 µs is printed for both, and is the same. MuJoCo is timed by
its `rollout`, in which nothing is Python, under the forces that the controllers gave; veridyn computes its controllers too. Then 256
sets of parameters on both cores, side by side in vector registers; the residual with Jacobian of 49 parameters of a machine of four legs of
three joints, with steps of order four; that of a measured Go2 as its study fits it (VERIDYN_DATA), all numbers of its drives; steps of a
four-bar linkage over its joints and of a crane in natural coordinates; of the 7-joint arm with a wrench on its last link, a function of
Python, and of a buggy on four tyres over a bump, its rack prescribed; and the fit of EMPS by simulation beside SciPy's on a compiled loop.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import veridyn as vd
from veridyn.mechanics.system.compiled_run import CompiledRun, Hold, Simulated
from veridyn.mechanics.system.run_blocks import Varied
from veridyn.mechanics.system.run_layout import JointControllers, usual_lanes
from veridyn.mechanics.tree.loops.closure import closed_home
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement

Array = NDArray[np.float64]
STEP = 1e-3  # s, of a tick and of a step
DURATION = 2.0  # s
SETS = 256
LINKS = 7
MASS, LENGTH = 2.0, 0.3  # kg, m of every link; its centre is in the middle
INERTIA = (0.02, 0.016, 0.012)  # kg*m^2 about the centre of mass
KP = np.array([400.0, 400.0, 200.0, 200.0, 80.0, 40.0, 20.0])
KD = np.array([40.0, 40.0, 20.0, 20.0, 8.0, 4.0, 1.0])
LIMIT = 300.0  # N*m
TURN = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # a quarter turn about x, from joint to joint


def run_in_threads(
    runs: Sequence[CompiledRun],
    step: float,
    initial: Array,
    forces: Array,
    signals: Mapping[str, Array],
    *,
    command: Array | None = None,
    parameters: Array | None = None,
    hold: Hold = "linear",
    substeps: int = 1,
    states_alone: bool = False,
    pool: Executor | None = None,
) -> Simulated:
    """:meth:`CompiledRun.run` of R runs on as many threads as there are `runs`, which are alike; each takes its share of R.

    Every run is made alone, so that the result does not depend on their number. `states_alone`: without q̈ and forces.
    `pool`: threads that are there already, by default as many as `runs` for this call.
    """
    cuts = [len(initial) * k // len(runs) for k in range(len(runs) + 1)]
    out = runs[0].room(len(initial), forces.shape[1], states_alone)

    def part(k: int) -> None:
        own = slice(cuts[k], cuts[k + 1])
        runs[k].run(
            step,
            initial[own],
            forces[own],
            {name: x[own] for name, x in signals.items()},
            command=None if command is None else command[own],
            parameters=parameters[own] if parameters is not None and parameters.ndim == 2 else parameters,
            hold=hold,
            substeps=substeps,
            into=(out[0][own], out[1][own], out[2][own]),
        )

    with nullcontext(pool) if pool is not None else ThreadPoolExecutor(len(runs)) as threads:
        list(threads.map(part, [k for k in range(len(runs)) if cuts[k] < cuts[k + 1]]))
    return runs[0].simulated(*out, signals)


def arm() -> vd.Machine:
    """A chain whose joints turn about z of frames a quarter turn apart."""
    bodies = []
    for k in range(LINKS):
        at = Placement(TURN if k else np.eye(3), np.array([0.0, 0.0, LENGTH if k else 0.0]))
        bodies.append(
            vd.model.Body(f"link{k + 1}", f"link{k}" if k else "ground", placement=at, coordinate=f"q{k + 1}")
        )
    link = from_centre(MASS, np.array([0.02, 0.0, 0.5 * LENGTH]), np.diag(INERTIA))
    return vd.Machine.of_bodies(bodies, inertia={b.name: link for b in bodies}, gravity=(0.0, 0.0, -9.81))


def arm_of_mujoco(scale: float = 1.0) -> Any:
    """The same arm for MuJoCo, torques on its joints; all its inertias times `scale`."""
    import mujoco

    own: Any = mujoco
    text, end = "", ""
    for k in range(LINKS):
        place = f'pos="0 0 {LENGTH}" quat="{np.sqrt(0.5)!r} {np.sqrt(0.5)!r} 0 0"'.replace("np.float64(", "").replace(
            ")", ""
        )
        text += f'<body {place if k else ""}><joint name="q{k}" axis="0 0 1"/><inertial pos="0.02 0 {0.5 * LENGTH}" mass="{scale * MASS}" '
        text += 'diaginertia="' + " ".join(str(scale * x) for x in INERTIA) + '"/>'
        end += "</body>"
    motors = "".join(f'<motor joint="q{k}"/>' for k in range(LINKS))
    return own.MjModel.from_xml_string(
        f'<mujoco><option timestep="{STEP}" integrator="RK4" gravity="0 0 -9.81"><flag contact="disable"/></option>'
        f"<worldbody>{text}{end}</worldbody><actuator>{motors}</actuator></mujoco>"
    )


def reference(t: Array) -> Array:
    """(N, 14): r and ṙ of the joints."""
    rate, size = 1.0 + 0.5 * np.arange(LINKS, dtype=np.float64), 0.6 - 0.05 * np.arange(LINKS, dtype=np.float64)
    return swinging(t, rate, size)


def swinging(t: Array, rate: Array, size: Array | float) -> Array:
    """(N, 2n): positions and speeds of n sines."""
    phase = np.outer(t, rate)
    return np.asarray(np.concatenate([size * np.sin(phase), size * rate * np.cos(phase)], axis=1), dtype=np.float64)


def ticks(duration: float) -> Array:
    """The times of all ticks."""
    return np.asarray(STEP * np.arange(round(duration / STEP) + 1), dtype=np.float64)


def quickest(call: Callable[[], object], times: int = 5) -> float:
    """Seconds of the quickest of some calls."""
    taken = []
    for _ in range(times):
        before = time.perf_counter()
        call()
        taken.append(time.perf_counter() - before)
    return min(taken)


def one_trajectory() -> dict[str, float]:
    """Steps per second of both, and errors at the end (rad)."""
    import mujoco
    from mujoco import rollout

    own: Any = mujoco
    t = ticks(DURATION)
    start = reference(t[:1])
    still, command, limits = np.zeros((1, len(t), LINKS)), reference(t)[None], np.full(LINKS, LIMIT)
    gains = {"kp": KP, "ki": np.zeros(LINKS), "kd": KD, "limit": limits}
    run, fine = (
        CompiledRun(arm(), servo=JointControllers(**gains)),
        CompiledRun(arm(), servo=JointControllers(**gains, ticks=100)),
    )
    found, _ = run.run(STEP, start, still, {}, command=command)
    exact, _ = fine.run(STEP, start, still, {}, command=command, substeps=100)
    model = arm_of_mujoco()
    data = own.MjData(model)
    data.qpos[:], data.qvel[:] = start[0, :LINKS], start[0, LINKS:]
    for k in range(len(t) - 1):
        data.ctrl[:] = np.clip(
            KP * (command[0, k, :LINKS] - data.qpos) + KD * (command[0, k, LINKS:] - data.qvel), -LIMIT, LIMIT
        )
        own.mj_step(model, data)
    state = np.concatenate([[0.0], start[0]])[None]
    forces = np.ascontiguousarray(found.forces[:, :-1])
    with rollout.Rollout(nthread=0) as rolling:
        theirs = quickest(lambda: rolling.rollout(model, [data], state, forces))
    ours = quickest(lambda: run.run(STEP, start, still, {}, command=command))
    return {
        "veridyn_steps_per_second": (len(t) - 1) / ours,
        "mujoco_steps_per_second": (len(t) - 1) / theirs,
        "one_trajectory_over_mujoco": theirs / ours,
        "veridyn_error_rad": float(np.abs(found.q[0, -1] - exact.q[0, -1]).max()),
        "mujoco_error_rad": float(np.abs(data.qpos - exact.q[0, -1]).max()),
    }


def many_sets() -> dict[str, float]:
    """256 arms whose inertias differ, 1 s each, on all cores, with threads that wait; both keep the states of all samples."""
    import mujoco
    from mujoco import rollout

    own: Any = mujoco
    cores = os.cpu_count() or 1
    t = ticks(0.5 * DURATION)
    scales = np.linspace(0.8, 1.2, SETS)
    machine, every = arm(), lambda x: np.repeat(x[None], SETS, axis=0)
    start, command, still = every(reference(t[:1])[0]), every(reference(t)), np.zeros((SETS, len(t), LINKS))
    sets = scales[:, None] * machine.parameters.values
    servo = JointControllers(kp=KP, ki=np.zeros(LINKS), kd=KD, limit=np.full(LINKS, LIMIT))
    runs = [CompiledRun(machine, servo=servo, lanes=usual_lanes()) for _ in range(cores)]

    pool = ThreadPoolExecutor(cores)

    def ours(states_alone: bool = True) -> Any:
        return run_in_threads(
            runs, STEP, start, still, {}, command=command, parameters=sets, states_alone=states_alone, pool=pool
        )

    found = ours(states_alone=False)
    models = [arm_of_mujoco(s) for s in scales]
    datas = [own.MjData(models[0]) for _ in range(cores)]
    state = np.concatenate([np.zeros((SETS, 1)), start], axis=1)
    forces = np.ascontiguousarray(found.forces[:, :-1])
    with rollout.Rollout(nthread=cores) as rolling:
        theirs = quickest(lambda: rolling.rollout(models, datas, state, forces), 3)
        last = np.asarray(rolling.rollout(models, datas, state, forces)[0])[:, -1, 1 : LINKS + 1]
    own_time = quickest(ours, 3)
    pool.shutdown()
    return {
        "cores": float(cores),
        "sets_over_mujoco": theirs / own_time,
        "veridyn_steps_per_second_sets": SETS * (len(t) - 1) / own_time,
        "largest_difference_rad": float(np.abs(last - found.q[:, -1]).max()),
    }


def four_legs() -> dict[str, float]:
    """Seconds of a residual with its Jacobian: 49 parameters of 4 legs of 3 joints, 16 s in steps of 1 ms, on one core."""
    bodies, elements = [], []
    for leg in ("a", "b", "c", "d"):
        for k in range(3):
            at = Placement(TURN if k else np.eye(3), np.array([0.0, 0.08, 0.0]) if k else np.array([0.2, 0.1, 0.0]))
            name = f"{leg}{k + 1}"
            bodies.append(vd.model.Body(name, f"{leg}{k}" if k else "ground", placement=at, coordinate=name))
            elements += [vd.elements.damper(name, 0.5), vd.elements.coulomb(name, 0.2)]
            elements.append(vd.elements.motor_inertia(name, 0.02))
    link = from_centre(0.8, np.array([0.1, 0.01, 0.02]), np.diag([0.003, 0.004, 0.005]))
    machine = vd.Machine.of_bodies(bodies, inertia={b.name: link for b in bodies}, elements=elements)
    names = machine.parameters.names
    varied = [k for k, name in enumerate(names) if name.startswith(("h_", "fs_", "Ia_", "MX_"))] + [
        names.index("MY_a3")
    ]
    t, n = ticks(16.0), 12
    rate = 2.0 + 0.3 * np.arange(n, dtype=np.float64)
    command = swinging(t, rate, 0.4)[None]
    servo = JointControllers(kp=np.full(n, 20.0), ki=np.zeros(n), kd=np.full(n, 1.5), limit=np.full(n, 40.0))
    spread = np.eye(len(names))[:, varied]
    run = CompiledRun(machine, friction_speed=0.05, servo=servo, varied=Varied(spread))
    start, still = command[:, 0].copy(), np.zeros((1, len(t), n))
    before = time.process_time()
    run.run(STEP, start, still, {}, command=command, rows=range(n))
    with_jacobian = time.process_time() - before
    before = time.process_time()
    run.run(STEP, start, still, {}, command=command)
    return {
        "legs_parameters": float(len(varied)),
        "legs_residual_with_jacobian_s": with_jacobian,
        "legs_residual_s": time.process_time() - before,
    }


def go2() -> dict[str, float]:
    """The same of a Go2 in the air, 16 s at 1 kHz under its measured commands, by every number of its drives; nothing without its log."""
    from veridyn.identify.drives.drive_group import DriveGroup, groups_of_joints, label_of
    from veridyn.identify.drives.drive_log import drive_records
    from veridyn.identify.drives.drive_method import Drives
    from veridyn.identify.drives.drive_unknowns import drive_unknowns, with_drives

    folder = Path(os.environ.get("VERIDYN_DATA", "")) / "go2"
    if not (folder / "encoders.csv").is_file():
        return {}
    how = Drives(kp=20.0, kd=1.5)
    machine = with_drives(vd.load_model(folder / "go2.xml", base="fixed"), how.kp, how.kd, how.rate)
    log = vd.load_log(folder / "encoders.csv")
    (record,) = drive_records(machine, log, how.commands)
    record = record.until(16.0)
    groups, count, spent = groups_of_joints(machine), 0, [0.0, 0.0]
    for joints in groups:
        unknowns = drive_unknowns(machine, joints, label_of(joints), how.estimate)
        group, x = DriveGroup(machine, joints, unknowns), np.array([u.prior for u in unknowns])
        count += len(unknowns)
        for k, sensitive in enumerate((True, False)):
            group.simulate(record, x, sensitive)
            before = time.process_time()
            group.simulate(record, x, sensitive)
            spent[k] += time.process_time() - before
    return {"go2_unknowns": float(count), "go2_residual_with_jacobian_s": spent[0], "go2_residual_s": spent[1]}


def loops() -> dict[str, float]:
    """Steps of order four per second of CPU, a four-bar linkage by its joints and a crane by its points; and 1 s of both by DOP853."""
    step, found = 2e-3, {}
    for name in ("linkage", "crane"):
        machine = vd.load_model(f"veridyn:{name}.yaml")
        q = closed_home(machine) if machine.closed else np.array([0.5, 0.1])
        taken = []
        for method in (
            vd.dynamics.Method("RK4", step=step, friction_speed=0.02),
            vd.dynamics.Method(friction_speed=0.02),
        ):
            drive = vd.manoeuvres.Driven(1.0, 100.0, q, np.zeros(machine.n), method=method)
            drive.run(machine)  # compiles or loads
            before = time.process_time()
            drive.run(machine)
            taken.append(time.process_time() - before)
        found |= {f"{name}_steps_per_second": 1.0 / step / taken[0], f"{name}_chosen_s": taken[1]}
    return found


def outside() -> dict[str, float]:
    """Steps of order four per second of CPU: an arm with a wrench, and a buggy on its tyres, with its share of real time."""
    from veridyn.mechanics.ground.road import Bump
    from veridyn.papers.buggy.drive import BuggyDrive, drive, settle
    from veridyn.papers.buggy.machine import buggy

    machine, t = arm(), np.linspace(0.0, 1.0, 101)
    still = np.zeros(LINKS)
    pushed = vd.dynamics.Inputs(
        wrenches=lambda t, q, qd: {f"link{LINKS}": np.array([1.0, 2.0, np.sin(t), 0.1, 0.2, 0.0])}
    )
    car, how = buggy(), BuggyDrive(duration=2.0, rack=0.005, step=2e-3)
    start, road, spent = settle(car), Bump(0.3, 0.5, 0.03), []
    for run in (
        lambda: vd.dynamics.integrate(machine, t, still, still, pushed, method=vd.dynamics.Method("RK4", step=STEP)),
        lambda: drive(car, how, road=road, start=start),
    ):
        assert run().stepped_by_python == ""  # compiled or loaded now
        before = time.process_time()
        run()
        spent.append(time.process_time() - before)
    return {
        "arm_wrench_steps_per_second": 1.0 / STEP / spent[0],
        "buggy_steps_per_second": how.duration / how.step / spent[1],
        "buggy_times_real_time": how.duration / spent[1],
    }


def emps() -> dict[str, float]:
    """CPU seconds of both fits by simulation, in turn, and rms in mm on the file with pulses; nothing without the log."""
    if not (Path(os.environ.get("VERIDYN_DATA", "")) / "emps").is_dir():
        return {}
    from benchmarks.peers_emps import by_scipy, by_veridyn, in_veridyn, judged, read

    q, force, start = read("DATA_EMPS.mat")
    spent = {"veridyn": np.inf, "scipy": np.inf}
    p = by_veridyn(q, force, start)
    by_scipy(q, force, start)
    for _ in range(3):
        for name, fit in (("veridyn", by_veridyn), ("scipy", by_scipy)):
            before = time.process_time()
            fit(q, force, start)
            spent[name] = min(spent[name], time.process_time() - before)
    return {"emps_veridyn_s": spent["veridyn"], "emps_scipy_s": spent["scipy"], "emps_pulses_mm": judged(p, in_veridyn)}


def lines() -> list[str]:
    """What `make bench` writes."""
    one, many, legs, real, closed, pushed, axis = (
        one_trajectory(),
        many_sets(),
        four_legs(),
        go2(),
        loops(),
        outside(),
        emps(),
    )
    quick, errors = one["veridyn_steps_per_second"] / 1e3, (one["veridyn_error_rad"], one["mujoco_error_rad"])
    return [
        f"- 7-joint arm under PD at 1 kHz, steps of order four: {quick:,.0f} thousand steps a second, "
        f"{one['one_trajectory_over_mujoco']:.1f} times MuJoCo's rollout with the same step "
        f"(errors at the end {errors[0]:.0e} and {errors[1]:.0e} rad); {SETS} parameter sets on {many['cores']:.0f} cores "
        f"{many['sets_over_mujoco']:.1f} times its rollout of as many models.",
        f"- Four legs of three joints, 16 s in steps of 1 ms: residual with the Jacobian of {legs['legs_parameters']:.0f} "
        f"parameters and the start {legs['legs_residual_with_jacobian_s']:.2f} s on one core, "
        f"residual alone {legs['legs_residual_s']:.2f} s.",
        *([f"- A measured Go2, 16 s at 1 kHz: residual with the Jacobian of {real['go2_unknowns']:.0f} numbers of its drives "
           f"{real['go2_residual_with_jacobian_s']:.2f} s on one core (goal 1.5), residual alone {real['go2_residual_s']:.2f} s."]
          if real else []),
        f"- Steps of order four: four-bar linkage {closed['linkage_steps_per_second'] / 1e3:,.0f} thousand a second, crane in natural "
        f"coordinates {closed['crane_steps_per_second'] / 1e3:,.1f}; 1 s by DOP853 in {closed['linkage_chosen_s']:.2f} and "
        f"{closed['crane_chosen_s']:.2f} s.",
        f"- Under what acts from outside, steps of order four: 7-joint arm with a wrench from Python "
        f"{pushed['arm_wrench_steps_per_second'] / 1e3:,.0f} thousand a second of CPU, buggy on four tyres "
        f"{pushed['buggy_steps_per_second'] / 1e3:,.1f}, which is {pushed['buggy_times_real_time']:.1f} times real time at 2 ms.",
        *([f"- EMPS by simulation, without diagnosis: {axis['emps_veridyn_s']:.2f} s of CPU, SciPy on a compiled loop "
           f"{axis['emps_scipy_s']:.2f} s; {axis['emps_pulses_mm']:.2f} mm on the pulses."] if axis else []),
    ]  # fmt: skip


def main() -> None:
    """Print what is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args()
    found = {**one_trajectory(), **many_sets(), **four_legs(), **go2(), **loops(), **outside(), **emps()}
    if asked.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:36} {value:.4g}")


if __name__ == "__main__":
    main()
