"""One call that works of every public verb and class, by name: what the battery of wrong values starts from.

Results, which veridyn makes itself, are taken from small runs and made again from their own fields.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import veridyn as vd
from files.test_osim import WHOLE, text
from public_values import QD, QDD, Q, T, values
from studies.small_arm import log_of, small_arm
from veridyn.files.machine.mjcf_write import mjcf_text
from veridyn.identify.estimators.least_squares import solve

d, e, s, m, f, w = vd.dynamics, vd.elements, vd.signals, vd.model, vd.filters, vd.manoeuvres
i, x = vd.estimators, vd.files
MODULES = (
    "",
    "dynamics",
    "elements",
    "estimators",
    "filters",
    "manoeuvres",
    "signals",
    "model",
    "spatial",
    "files",
    "studies",
)
# Not called by users: protocols, enumerations, the base of errors, and containers that only veridyn fills.
NOT_CALLED = {
    "VeridynError": "the base of errors",
    "Manoeuvre": "a protocol",
    "Status": "an enumeration",
    "Buffer": "has no arguments",
    "KINDS": "a table",
}
DRIVEN = ("q.hinge", "force.hinge")


class Call(NamedTuple):
    """A public name, what is called, and arguments with which it works."""

    name: str
    target: Callable[..., Any]
    given: dict[str, Any]


def pendulum() -> vd.Machine:
    inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))
    rod = vd.Link(name="rod", inertia=inertia)
    hinge = vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    friction = (e.damper("hinge", 0.4),)
    sensors = [vd.Sensor("encoder", "coordinate", "hinge", 1e-3)]
    return vd.Machine.build([rod], [hinge], name="pendulum", dimension=2, sensors=sensors, elements=friction)


@cache
def parts() -> dict[str, Any]:
    """What calls are made of."""
    robot = pendulum()
    force = 0.6 * QDD + 9.81 * np.cos(Q) + 0.4 * QD + 1e-3 * np.random.default_rng(3).normal(size=T.size)
    motion = vd.Motion(T, Q[:, None], QD[:, None], QDD[:, None], forces=force[:, None])
    log = vd.Experiment.from_arrays(
        T, dict(zip(DRIVEN, (Q, force), strict=True)), dict(zip(DRIVEN, ("rad", "N*m"), strict=True))
    )
    readings = vd.Experiment.from_arrays(T, {"encoder": Q}, {"encoder": "rad"}, "readings")
    car = m.car_machine("small", {"mass": 900.0, "front": 1.0, "rear": 1.4, "front_stiffness": m.PriorValue(15.0, 5.0)})
    one = lambda *given: np.eye(1)  # noqa: E731
    still = f.Discrete(
        ("x",), ("y",), lambda x, *given: x, lambda x, *given: x, 1e-4 * np.eye(1), 1e-2 * np.eye(1), one, one
    )
    measured = f.Measurements(T[:50], Q[:50, None], ("y",))
    belief = f.Belief(np.zeros(1), np.eye(1))
    return {
        "loop": vd.load_model("veridyn:palletizer.yaml"),
        "bending": m.with_flexible_joints(robot, {"hinge": m.Flexible(stiffness=100.0, inertia=0.1)}),
        "counts": vd.Experiment.from_arrays(T, {n: np.floor(20.0 * T) for n in ("a", "b")}, {"a": "1", "b": "1"}),
        "fixes": vd.Experiment.from_arrays(
            T,
            {f"fix.{n}": 0.5 + 1e-6 * T for n in ("latitude", "longitude", "height")},
            {"fix.latitude": "rad", "fix.longitude": "rad", "fix.height": "m"},
        ),
        "robot": robot,
        "motion": motion,
        "log": log,
        "readings": readings,
        "car": car,
        "arm": small_arm(),
        "belief": belief,
        "arm log": log_of(small_arm(), np.random.default_rng(1), "bench", seconds=2.0),
        "still": still,
        "measured": measured,
        "fit": vd.identify(robot, motion, diagnose="off"),
        "pose": m.Pose(T, np.tile(np.eye(3), (len(T), 1, 1)), np.zeros((len(T), 3))),
        "limits": s.JointLimits([-1.0], [1.0], [2.0], [8.0]),
        "wave": s.FourierTrajectory(np.zeros(1), np.ones((1, 2)), np.ones((1, 2)), 0.2),
        "angle": m.Channel("angle", T, 20.0 * T, "rad"),
        "wheel": s.PulseWheel(holes=20),
        "rng": np.random.default_rng(0),
        "estimates": f.run(f.LinearKF(), still, measured, belief),
        "place": vd.spatial.Placement(),
        "observed": vd.observe(
            robot, readings, "ekf", vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1.0), model_error="off")
        ),
    }


@cache
def folder() -> Path:
    """Files that can be read; they go with the process."""
    import atexit
    import tempfile

    kept = tempfile.TemporaryDirectory()
    atexit.register(kept.cleanup)
    place = Path(kept.name)
    p = parts()
    vd.save(p["fit"], place / "fit.json")
    vd.save_model(p["robot"], place / "robot.yaml")
    x.save_log(p["log"], place / "log.csv")
    (place / "robot.xml").write_text(mjcf_text(small_arm()))
    x.save_urdf(small_arm(), place / "robot.urdf")
    (place / "run.sto").write_text(
        "run\nversion=1\nnRows=2\nnColumns=2\ninDegrees=yes\nendheader\ntime\ta\n0\t1\n0.1\t2\n"
    )
    (place / "run.osim").write_text(text(WHOLE))
    columns = ", ".join(f"{name}: {name}" for name in DRIVEN)
    study = (
        f"veridyn: 1\nkind: identify\nname: a\nmodel: {{file: robot.yaml}}\nlog: {{time: t, columns: {{{columns}}}}}\n"
    )
    study += "training: [log.csv]\n"
    (place / "study.yaml").write_text(study)
    return place


def verbs(p: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Arguments of verbs."""
    place, robot, motion, log, arm = folder(), p["robot"], p["motion"], p["log"], p["arm"]
    free, still = x.load_urdf(place / "robot.urdf", "free"), np.zeros((len(T), 2))
    flight = vd.Motion(T, still, still, still, vd.BaseMotion(*(np.zeros((len(T), 3)) for _ in range(3))))
    n_loop, three = len(p["loop"].actuated_coordinates), np.zeros((3, 3))
    marks = np.stack([[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]] * 30)
    return {
        "base_parameters": {"machine": robot, "motion": motion},
        "capabilities": {"machine": robot},
        "design_excitation": {
            "machine": robot,
            "limits": p["limits"],
            "rate": 20.0,
            "periods": 1,
            "starts": 1,
            "rng": p["rng"],
        },
        "identify": {"machine": robot, "data": motion, "diagnose": "off"},
        "inverse_dynamics": {"machine": robot, "motion": motion},
        "load": {"path": place / "fit.json"},
        "load_model": {"path": place / "robot.yaml"},
        "motion": {"machine": robot, "log": log},
        "load_log": {
            "path": place / "log.csv",
            "columns": {"a": "q.hinge"},
            "units": {},
            "time": "t",
            "delimiter": ",",
            "skip": 0,
        },
        "observe": {
            "machine": robot,
            "log": p["readings"],
            "settings": vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1.0), model_error="off"),
        },
        "regressor": {"machine": robot, "motion": motion},
        "resample": {"data": log, "clock": 50.0},
        "save": {"fit": p["fit"], "path": place / "again.json", "overwrite": True},
        "save_model": {"machine": robot, "path": place / "again.yaml", "overwrite": True},
        "simulate": {"machine": robot, "manoeuvre": w.Driven(0.1, 100.0, [0.3], [0.0]), "rng": p["rng"]},
        "validate": {"fit": p["fit"], "data": motion},
        "actuators": {"machine": robot},
        "body_motion": {"machine": robot, "motion": motion, "body": "rod"},
        "body_pose": {"machine": robot, "q": motion.q, "body": "rod"},
        "c_source": {"machine": robot},
        "close": {"machine": p["loop"], "given": np.zeros((1, n_loop))},
        "closed_home": {"machine": p["loop"]},
        "closed_motion": {
            "machine": p["loop"],
            "t": T[:5],
            "q": np.zeros((5, n_loop)),
            "qd": np.zeros((5, n_loop)),
            "qdd": np.zeros((5, n_loop)),
        },
        "energy": {"machine": robot, "motion": motion},
        "forward_derivatives": {"machine": robot, "motion": motion},
        "forward_dynamics": {"machine": robot, "motion": motion},
        "inverse_derivatives": {"machine": robot, "motion": motion},
        "integrate": {"machine": robot, "t": [0.0, 0.01, 0.02], "q": [0.3], "qd": [0.0]},
        "integrate_gradient": {
            "machine": robot,
            "t": [0.0, 0.01, 0.02],
            "q": [0.3],
            "qd": [0.0],
            "measured": {"q": np.zeros((3, 1))},
        },
        "integrate_many": {"machine": robot, "t": [0.0, 0.01, 0.02], "q": [[0.3]], "qd": [[0.0]]},
        "jacobian": {"machine": robot, "q": motion.q[:5], "body": "rod"},
        "loop_jacobian": {"machine": p["loop"], "q": d.closed_home(p["loop"])[None]},
        "mass_matrix": {"machine": robot, "q": motion.q[:5]},
        "plate_wrench": {"force": three, "moment": three},
        "pressure_wrench": {"force": three, "centre": three},
        "sensor_wrench": {"read": np.zeros((3, 6)), "sensor": p["place"]},
        "with_contacts": {"machine": free, "motion": flight, "pose": p["pose"], "world": {"1": np.zeros((len(T), 6))}},
        "carrying": {
            "machine": robot,
            "motion": motion,
            "body": "rod",
            "inertia": vd.spatial.from_centre(1.0, [0.1, 0.0, 0.0], np.eye(3)),
        },
        "design_drive_commands": {
            "machine": robot,
            "ranges": {"hinge": i.DriveRange(low=-1.0, high=1.0, speed=2.0)},
            "how": i.DriveExcitation(tries=1, duration=4.0, kp=20.0, kd=1.0),
            "rng": p["rng"],
        },
        "explain": {"machine": robot, "name": "ZZ_rod"},
        "find_mistakes": {"e": i.evidence(robot, [motion], ["hinge"], i.Sampling())},
        "friction_rivals": {"rivals": {"as it is": robot}, "motion": motion},
        "friction_ladder": {"machine": robot, "motion": motion, "terms": ("viscous",)},
        "identify_fleet": {"machine": robot, "motions": {"a": motion, "b": motion}},
        "observation": {"machine": robot, "motion": motion},
        "propose_cutoff": {
            "machine": robot,
            "motions": lambda cutoff: [motion],
            "sampling": lambda cutoff: i.Sampling(),
            "tried": [5.0, 10.0],
        },
        "remedies": {"machine": robot, "have": motion, "candidates": {"a": motion}, "sigma": {"hinge": 1.0}},
        "replay": {"machine": robot, "motion": motion, "horizon": 0.1},
        "select_motions": {
            "machine": robot,
            "candidates": {"a": motion, "b": motion},
            "sigma": {"hinge": 1.0},
            "count": 1,
        },
        "slow_and_fast": {"motion": motion},
        "stribeck_speeds": {"machine": robot, "motion": motion, "on": ["hinge"], "speeds": [0.1, 0.2, 0.4]},
        "with_payload": {"machine": robot, "body": "rod"},
        "identify_resonance": {"machine": p["bending"], "log": log, "joint": "hinge"},
        "identify_flexible": {"machine": p["bending"], "logs": log},
        "local_position": {"log": p["fixes"]},
        "trust_prior": {"machine": robot, "motion": motion, "method": i.Consistent(i.Prior()), "scales": [0.1]},
        "essential": {"machine": robot, "solution": solve(i.observation(robot, motion))},
        "evidence": {"machine": robot, "motions": [motion], "rows": ["hinge"], "sampling": i.Sampling()},
        "diagnose": {"machine": robot, "trials": [], "sigma": {}},
        "encoder_offsets": {"machine": robot, "trials": [], "soles": {}},
        "load_mjcf": {"path": place / "robot.xml"},
        "load_urdf": {"path": place / "robot.urdf"},
        "load_osim": {"path": place / "run.osim"},
        "load_storage": {"path": place / "run.sto"},
        "mjcf_limits": {"path": place / "robot.xml"},
        "urdf_limits": {"path": place / "robot.urdf"},
        "save_isaac": {"machine": arm, "path": place / "again.py", "overwrite": True},
        "save_log": {"experiment": log, "path": place / "again.csv", "overwrite": True},
        "save_mjcf": {"machine": arm, "path": place / "again.xml", "overwrite": True},
        "save_urdf": {"machine": arm, "path": place / "again.urdf", "overwrite": True},
        "car_start": {"car": p["car"], "noise": f.CarNoise(), "yaw_rate": 0.0},
        "car_system": {"car": p["car"], "noise": f.CarNoise()},
        "check_jacobian": {"h": lambda x: x, "H": lambda x: np.eye(1), "x": [1.0]},
        "closed_loop": {"estimates": p["estimates"]},
        "fit_parameters": {
            "settings": f.LinearKF(),
            "build": lambda v: p["still"],
            "guesses": {"a": f.ParameterGuess(value=1.0, sigma=0.1)},
            "runs": [(p["measured"], p["belief"])],
        },
        "tune": {
            "settings": f.LinearKF(),
            "build": lambda v: p["still"],
            "first": {"a": 1.0},
            "runs": [(p["measured"], p["belief"])],
        },
        "frozen": {"values": Q[:, None], "repeats": 3},
        "innovation_whiteness": {"estimates": p["estimates"]},
        "nees": {"track": p["estimates"], "truth": np.zeros((50, 1))},
        "nis": {"estimates": p["estimates"]},
        "run": {"settings": f.LinearKF(), "system": p["still"], "measurements": p["measured"], "start": p["belief"]},
        "sensor_findings": {"found": p["observed"]},
        "smooth": {"estimates": p["estimates"]},
        "edge_intervals": {"angle": p["angle"], "wheel": p["wheel"]},
        "edge_times": {"angle": p["angle"], "wheel": p["wheel"]},
        "wheel_count": {"angle": p["angle"], "wheel": p["wheel"], "name": "a"},
        "on_six_joints": {"machine": free},
        "rebased": {"machine": free, "body": "2"},
        "welded": {"machine": arm, "locked": {"q2": 0.0}},
        "with_flexible_joints": {"machine": robot, "joints": {"hinge": m.Flexible(stiffness=100.0, inertia=0.1)}},
        "course_over_ground": {"x": m.Channel("vx", T, QD, "m/s"), "y": m.Channel("vy", T, Q, "m/s"), "above": 0.1},
        "estimate_clock_offset": {"rate": m.Channel("r", T, QD, "rad/s"), "integral": m.Channel("q", T, Q, "rad")},
        "find_false_counts": {"log": p["counts"], "counts": ("a", "b")},
        "fit_markers": {"t": 0.01 * np.arange(30), "measured": marks, "places": marks[0]},
        "inspect": {"experiment": log},
        "marker_cluster": {"measured": marks},
        "mended": {"log": log},
        "pose_at": {"pose": p["pose"], "t": T[:5]},
        "readings_of_counts": {"count": w.wheel_count(p["angle"], p["wheel"], "a"), "wheel": p["wheel"], "name": "a"},
        "readings_of_edges": {"edges": w.edge_times(p["angle"], p["wheel"]), "wheel": p["wheel"], "name": "a"},
        "smoothed_pose": {"pose": p["pose"], "low": s.Butterworth(5.0)},
        "load_study": {"path": place / "study.yaml"},
        "run_identify": {"loaded": vd.studies.load_study(place / "study.yaml")},
    }


def public_names() -> Iterator[tuple[str, Any]]:
    """Every public verb and class once, with its shortest name."""
    seen: set[int] = set()
    for name in MODULES:
        module = importlib.import_module(f"veridyn.{name}".rstrip("."))
        for own in dir(module):
            target = getattr(module, own)
            if callable(target) and not inspect.ismodule(target) and own not in NOT_CALLED and id(target) not in seen:
                seen.add(id(target))
                yield own, target


@cache
def results() -> dict[str, Any]:
    """Objects that veridyn makes itself, by the name of their class."""
    p = parts()
    made = [p["fit"], p["fit"].base, p["estimates"], p["observed"], vd.validate(p["fit"], p["motion"])]
    return {type(one).__name__: one for one in made}


@cache
def calls() -> list[Call]:
    """A call of every public name; one whose name has no entry takes no arguments, or is a result that is made again."""
    p = parts()
    known = values(p) | verbs(p)
    out = []
    for name, target in public_names():
        if name in known:
            out.append(Call(name, target, known[name]))
        elif name in results():
            one = results()[name]
            out.append(Call(name, target, {own.name: getattr(one, own.name) for own in fields(one) if own.init}))
        else:
            out.append(Call(name, target, {}))
    return out
