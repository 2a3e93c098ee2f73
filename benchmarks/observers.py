"""A step of the four-bar linkage beside MuJoCo, Exudyn and Pinocchio, at the accuracy each reaches, and a step of an observer.

The accuracy is that of the crank's angle after 4 s (2.53083926 rad: two independent calculations agree to 1e-10). Times are those of the
whole motion, in one call where the program has one; at equal accuracy, the cheapest of the tried steps that comes as near. What is not
installed is said, not guessed. ``python -m benchmarks.observers`` prints every step that was tried, and ``--latency`` the time of single
steps of streaming observers (:mod:`benchmarks.latency`), ``--whole`` what `vd.observe` costs beyond its filter
(:mod:`benchmarks.observe_cost`).
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.clock import best_of
from benchmarks.own_equations import own_equations
from benchmarks.subjects import arm
from veridyn.mechanics.natural.equations.dynamics import initial_state
from veridyn.mechanics.natural.equations.position import start_of
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, integrate_natural
from veridyn.mechanics.natural.steps.minimal import minimal
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.methods import EKF
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer
from veridyn.papers.fourbar import MODEL_START, TUNED, fourbar, wrong_fourbar

Array = NDArray[np.float64]
PHI, END = 2.53083926, 4.0
STEPS = (1e-1, 5e-2, 2e-2, 1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4)
NEAR = (1e-3, 1e-4, 1e-5, 1e-6)  # rad
XML = """<mujoco><option timestep="{h}" gravity="0 0 -9.806" integrator="{rule}" tolerance="1e-12" iterations="100"/>
<worldbody><body name="crank" euler="0 -60 0"><joint name="phi" axis="0 -1 0" damping="0"/>
<inertial pos="1 0 0" mass="2" diaginertia="1e-6 {c} {c}"/>
<body name="rod" pos="2 0 0" euler="0 {rod} 0"><joint axis="0 -1 0"/><inertial pos="4 0 0" mass="8" diaginertia="1e-6 {r} {r}"/>
</body></body>
<body name="rocker" pos="10 0 0" euler="0 {rocker} 0"><joint axis="0 -1 0"/><inertial pos="2.5 0 0" mass="5" diaginertia="1e-6 {k} {k}"/>
</body></worldbody>
<equality><connect body1="rod" body2="rocker" anchor="8 0 0" solref="{ref} 1" solimp="0.9999 0.9999 0.001"/></equality>
<actuator><motor joint="phi"/></actuator></mujoco>"""


class Run(NamedTuple):
    """A motion of 4 s: whose, the step, processor seconds of one step, and how far the crank's angle is off at the end."""

    name: str
    h: float
    seconds: float
    off: float

    @property
    def load(self) -> float:
        """Processor milliseconds for a simulated second."""
        return 1e3 * self.seconds / self.h

    def __str__(self) -> str:
        return (
            f"- Four-bar, {self.name} at {1e3 * self.h:g} ms: {1e6 * self.seconds:.1f} µs a step, "
            f"{self.load:.2f} ms of processor for a simulated second, {self.off:.1e} rad off."
        )


def runs() -> Iterator[Run]:
    """Every program at every step."""
    yield from _ours()
    yield from _mujoco()
    yield from _exudyn()


def observers(tried: list[Run] | None = None) -> Iterator[str]:
    """Lines of the report."""
    tried = list(runs()) if tried is None else tried
    yield ""
    yield (
        "A four-bar linkage over 4 s, ms of processor for a simulated second at the cheapest step that keeps the crank within so many rad:"
    )
    yield ""
    yield "| how | " + " | ".join(f"{near:.0e}" for near in NEAR) + " |"
    yield "|---|" + "---:|" * len(NEAR)
    for name in dict.fromkeys(run.name for run in tried):
        yield f"| {name} | " + " | ".join(_cheapest(tried, name, near) for near in NEAR) + " |"
    yield ""
    for name in ("mujoco", "exudyn"):
        if find_spec(name) is None:
            yield f"- {name} is not installed here."
    yield from _pinocchio()
    yield from observer_steps()
    yield from own_equations()


def _cheapest(tried: list[Run], name: str, near: float) -> str:
    enough = [run for run in tried if run.name == name and run.off <= near]
    best = min(enough, key=lambda run: run.load, default=None)
    if best is None:
        return "not reached"
    return f"{best.load:.2f} ({1e6 * best.seconds:.1f} µs every {1e3 * best.h:g} ms)"


def _ours() -> Iterator[Run]:
    system = natural_system(fourbar())
    start, at = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0}), system.mechanism.index("phi")
    methods = {"veridyn index-3": NaturalMethod()}
    methods |= {f"veridyn {rule}": NaturalMethod("explicit", rule=rule) for rule in ("RK4", "RK45", "DOP853")}
    for (name, method), h in itertools.product(methods.items(), STEPS):
        how = replace(method, step=h)

        def run(how: NaturalMethod = how) -> float:
            return float(integrate_natural(system, [0.0, END], start, method=how).q[-1, at])

        yield Run(name, h, best_of(run).cpu / round(END / h), abs(run() - PHI))
    q0, qd0 = start_of(system, {"phi": np.pi / 3}, {"phi": 1.0})
    model, none = minimal(system, q0), np.zeros(0)
    loads = model.loads()
    for h in STEPS[2:-2]:
        q, z, zd, count = q0, q0[model.z], qd0[model.z], round(END / h)
        for _ in range(count):
            found = model.step(q, z, zd, none, h, loads, derivative=False)
            q, z, zd = found.q, found.q[model.z], found.qd[model.z]
        seconds = best_of(lambda q=q, z=z, zd=zd, h=h: model.step(q, z, zd, none, h, loads, derivative=False)).cpu
        yield Run("veridyn independent coordinates", h, seconds, abs(float(z[0]) - PHI))


def _mujoco() -> Iterator[Run]:
    if find_spec("mujoco") is None:
        return
    import mujoco

    q, _ = start_of(natural_system(fourbar()), {"phi": np.pi / 3})
    rod = np.degrees(np.arctan2(q[3] - q[1], q[2] - q[0]))
    rocker = np.degrees(np.arctan2(q[3], q[2] - 10.0))
    rates = _rates(q)
    inertia = {n: m * L**2 / 12.0 for n, m, L in (("c", 2, 2), ("r", 8, 8), ("k", 5, 5))}
    for rule in ("Euler", "RK4"):
        for h in STEPS:
            xml = XML.format(h=h, rule=rule, rod=60.0 - rod, rocker=-rocker, ref=2.0 * h, **inertia)
            model = mujoco.MjModel.from_xml_string(xml)
            data, count = mujoco.MjData(model), round(END / h)

            def run(model=model, data=data, count=count) -> float:
                # angles count from the start; all turn about −y, so that they are positive from x to z
                mujoco.mj_resetData(model, data)
                data.qvel[:] = rates
                data.ctrl[:] = -10.0
                mujoco.mj_step(model, data, nstep=count)
                return np.pi / 3 + float(data.qpos[0])

            yield Run(f"MuJoCo {mujoco.__version__} {rule}", h, best_of(run).cpu / count, abs(run() - PHI))


def _rates(q: np.ndarray) -> list[float]:
    """Rates of crank, rod against crank, and rocker for a crank at 1 rad/s, from the velocity problem."""
    system = natural_system(fourbar())
    _, qd = start_of(system, {"phi": np.pi / 3}, {"phi": 1.0})
    d, v = q[2:4] - q[0:2], qd[2:4] - qd[0:2]
    rod = (d[0] * v[1] - d[1] * v[0]) / (d @ d)
    r, w = q[2:4] - np.array([10.0, 0.0]), qd[2:4]
    return [1.0, rod - 1.0, (r[0] * w[1] - r[1] * w[0]) / (r @ r)]


def _pinocchio() -> Iterator[str]:
    """Accelerations of the same loop by Pinocchio's terms and a small solve, called from Python: one evaluation of a step's two or more."""
    if find_spec("pinocchio") is None:
        yield "- Pinocchio is not installed here."
        return
    import pinocchio as pin

    model = pin.Model()
    crank = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "crank")
    rod = model.addJoint(crank, pin.JointModelRZ(), pin.SE3(np.eye(3), np.array([2.0, 0, 0])), "rod")
    rocker = model.addJoint(0, pin.JointModelRZ(), pin.SE3(np.eye(3), np.array([10.0, 0, 0])), "rocker")
    for j, m, L in ((crank, 2.0, 2.0), (rod, 8.0, 8.0), (rocker, 5.0, 5.0)):
        about = np.diag([0.0, m * L**2 / 12.0, m * L**2 / 12.0])
        model.appendBodyToJoint(j, pin.Inertia(m, np.array([L / 2, 0, 0]), about), pin.SE3.Identity())
    model.gravity.linear = np.array([0.0, -9.806, 0.0])
    data, tip = model.createData(), {rod: np.array([8.0, 0, 0]), rocker: np.array([5.0, 0, 0])}
    q, v, tau = np.array([1.0, -0.8, 2.2]), np.array([1.0, -1.2, 0.4]), np.array([-10.0, 0.0, 0.0])

    def accelerate() -> np.ndarray:
        M = pin.crba(model, data, q)
        b = pin.nonLinearEffects(model, data, q, v)
        pin.forwardKinematics(model, data, q, v, 0.0 * v)
        rows, drift = [], []
        for j, p in tip.items():
            R, V, A = data.oMi[j].rotation, data.v[j], data.a[j]
            local = pin.computeJointJacobian(model, data, q, j)
            rows.append((R @ (local[:3] - pin.skew(p) @ local[3:]))[:2])
            drift.append(
                (R @ (A.linear + np.cross(A.angular, p) + np.cross(V.angular, V.linear + np.cross(V.angular, p))))[:2]
            )
        J = rows[0] - rows[1]
        K = np.zeros((5, 5))
        K[:3, :3], K[3:, :3], K[:3, 3:] = np.triu(M) + np.triu(M, 1).T, J, J.T
        return np.linalg.solve(K, np.concatenate([tau - b, drift[1] - drift[0]]))[:3]

    yield f"- Four-bar, Pinocchio {pin.__version__} from Python: {1e6 * best_of(accelerate).cpu:.1f} µs for one evaluation."


def _exudyn() -> Iterator[Run]:
    if find_spec("exudyn") is None:
        return
    import exudyn as exu
    from exudyn import itemInterface as item

    q, _ = start_of(natural_system(fourbar()), {"phi": np.pi / 3})
    container = exu.SystemContainer()
    mbs = container.AddSystem()
    ground = mbs.AddObject(item.ObjectGround())
    bars = (
        ("crank", 2.0, 2.0, (0.0, 0.0), q[:2]),
        ("rod", 8.0, 8.0, q[:2], q[2:4]),
        ("rocker", 5.0, 5.0, (10.0, 0.0), q[2:4]),
    )
    _, qd = start_of(natural_system(fourbar()), {"phi": np.pi / 3}, {"phi": 1.0})
    speeds = {"crank": (np.zeros(2), qd[:2]), "rod": (qd[:2], qd[2:4]), "rocker": (np.zeros(2), qd[2:4])}
    ends = {}
    for name, mass, length, a, b in bars:
        a, b = np.asarray(a), np.asarray(b)
        d, (va, vb) = b - a, speeds[name]
        middle, speed = 0.5 * (a + b), 0.5 * (va + vb)
        spin = (d[0] * (vb - va)[1] - d[1] * (vb - va)[0]) / (d @ d)
        node = mbs.AddNode(
            item.NodeRigidBody2D(
                referenceCoordinates=[*middle, np.arctan2(d[1], d[0])], initialVelocities=[*speed, spin]
            )
        )
        body = mbs.AddObject(
            item.ObjectRigidBody2D(physicsMass=mass, physicsInertia=mass * length**2 / 12.0, nodeNumber=node)
        )
        ends[name] = [
            mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=body, localPosition=[s * length / 2, 0, 0]))
            for s in (-1, 1)
        ]
        centre = mbs.AddMarker(item.MarkerBodyMass(bodyNumber=body))
        mbs.AddLoad(item.LoadMassProportional(markerNumber=centre, loadVector=[0, -9.806, 0]))
        if name == "crank":
            turn = mbs.AddMarker(item.MarkerBodyRigid(bodyNumber=body, localPosition=[0, 0, 0]))
            mbs.AddLoad(item.LoadTorqueVector(markerNumber=turn, loadVector=[0, 0, -10.0]))
            first = node
    fixed = [mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=ground, localPosition=[x, 0, 0])) for x in (0.0, 10.0)]
    for pair in (
        (fixed[0], ends["crank"][0]),
        (ends["crank"][1], ends["rod"][0]),
        (ends["rod"][1], ends["rocker"][1]),
        (fixed[1], ends["rocker"][0]),
    ):
        mbs.AddObject(item.ObjectJointRevolute2D(markerNumbers=list(pair)))
    mbs.Assemble()
    settings = exu.SimulationSettings()
    settings.solutionSettings.writeSolutionToFile = False
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = True
    start = mbs.systemData.GetSystemState()
    for h in STEPS[2:-2]:
        count = round(END / h)
        settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = count, END

        def run() -> None:
            mbs.systemData.SetSystemState(start, configuration=exu.ConfigurationType.Initial)
            mbs.SolveDynamic(settings)

        seconds = best_of(run, repeat=3).cpu / count
        phi = np.pi / 3 + float(mbs.GetNodeOutput(first, exu.OutputVariableType.Coordinates)[2])
        yield Run(f"Exudyn {exu.__version__}", h, seconds, abs(phi - PHI))


def observer_steps() -> Iterator[str]:
    """`observer.step` of the EKF, readings that stand still but for a ripple: by machine code and by the Python filter, its reference."""
    for title, observer in (
        ("the four-bar, one encoder (3 states)", _fourbar_observer),
        ("a 7-joint arm, seven encoders (21 states)", _arm_observer),
    ):
        found = []
        for engine, by_name in (("compiled", False), ("compiled", True), ("python", False)):
            seconds = best_of(_steps(*observer(EKF(engine=engine)), by_name))
            found.append(f"{1e6 * seconds.cpu:.0f} µs ({1e6 * seconds.wall:.0f} by the wall)")
        array, named, reference = found
        yield (
            f"- `observer.step`, EKF on {title}, readings as an array: {array}, by name: {named}; "
            f"the Python filter, its reference: {reference}."
        )


def _fourbar_observer(method: EKF) -> tuple[Observer, Array]:
    settings = ObserveSettings(process_noise=TUNED, start=MODEL_START[0], rates={"phi": 0.0})
    return Observer(wrong_fourbar(), method, settings), np.array([np.pi / 2])


def _arm_observer(method: EKF) -> tuple[Observer, Array]:
    machine = arm()
    sensors = tuple(Sensor(f"encoder_{c}", "coordinate", c, 1e-4) for c in machine.coordinates)
    noise = ProcessNoise(force=100.0, start=0.01, start_rate=0.1, start_force=10.0)
    start = dict.fromkeys(machine.coordinates, 0.3)
    observer = Observer(replace(machine, sensors=sensors), method, ObserveSettings(process_noise=noise, start=start))
    return observer, np.full(machine.n, 0.3)


def _steps(observer: Observer, around: Array, by_name: bool) -> Callable[[], None]:
    clock, readings, names = [0.0], around.copy(), observer.system.outputs

    def step() -> None:
        clock[0] += 5e-3
        readings[:] = around + 1e-3 * np.sin(clock[0])
        observer.step(clock[0], dict(zip(names, readings.tolist())) if by_name else readings)

    return step


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.observers", description="What steps of observers cost.")
    parser.add_argument("--latency", action="store_true", help="median, 99th percentile and worst of single steps")
    parser.add_argument("--steps", type=int, default=100_000, help="with --latency: steps of each observer")
    parser.add_argument("--whole", action="store_true", help="what vd.observe costs beyond one run of its filter")
    parser.add_argument("--samples", type=int, default=10_000, help="with --whole: samples of each log")
    parser.add_argument("--json", action="store_true", help="with --latency or --whole: JSON instead of a table")
    given = parser.parse_args(arguments)
    if given.latency:
        from benchmarks.latency import report

        report(given.steps, given.json)
        return
    if given.whole:
        from benchmarks.observe_cost import report as report_cost

        report_cost(given.samples, given.json)
        return
    if given.json:
        parser.error("--json needs --latency or --whole")
    found = list(runs())
    print(*found, *observers(found), sep="\n")


if __name__ == "__main__":
    main()
