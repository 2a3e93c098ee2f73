"""The humanoid in the engine, and what the laboratory records of it.

Its joints are servoed to a plan, its soft soles touch the ground, and nothing holds it up.

MuJoCo integrates the free robot with contact; the plan was made for the drawing, the robot is 1.3 kg heavier. A small stabiliser
tilts the ankles against the torso's own tilt, as an inertial unit would measure it. Rotor inertia and joint damping are in the engine
and in no base row. All gains are chosen. What is recorded is the engine's own state, acceleration and contact force at the same
instant.

The engine shares no equations with veridyn. :class:`PrescribedJoints` lets the engine compute, by its own inverse dynamics, the wrench
that the ground must apply to a free machine that moves in a given way. :func:`mjcf` writes the model for simulations with contact. Only
data are read from it. MuJoCo comes with the extra `mujoco`.

The laboratory records markers, encoders and a force plate every 3 ms; a recording becomes a motion.

Paper 004, section 4: motion capture and plate on one clock, plate with a resolution of about 70 g = 0.7 N. The rest is chosen: steps of
0.05 N m in the moments, 0.5 mrad of encoder noise, 0.3 mm of noise in each marker, six markers on the torso. Faults can be built in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import ModelError, SimulationError
from veridyn.identify.laboratory import Trial
from veridyn.identify.regression.sampling import Sampling
from veridyn.mechanics.ground.contact import plate_wrench, with_contacts
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion, Pose
from veridyn.model.place import GROUND
from veridyn.papers.humanoid.machine import BASE, FEET, FOOT, SIDES, SOLE, STEP, GaitPlan
from veridyn.progress import Progress, silent
from veridyn.signals.base_motion import MarkerFit, fit_markers, pose_at, smoothed_pose
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals, motion
from veridyn.simulate.imperfection import Imperfection, Imperfections
from veridyn.spatial.inertia import inertia_matrix
from veridyn.spatial.rotations import Placement, matrix_of, quaternion, rotation_of

THICK = 0.004  # m, half the thickness of a sole
SOLE_AXES = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])  # forward, left, up in a foot's frame
SETTLE = 0.6  # s on its feet before the recording begins
FALLEN = 0.15  # m: a torso lower than this has fallen
MARKERS = {
    "chest": (0.06, 0.0, 0.12),
    "back": (-0.06, 0.01, 0.10),
    "left_shoulder": (0.0, 0.07, 0.17),
    "right_shoulder": (0.01, -0.07, 0.17),
    "head": (0.0, 0.0, 0.25),
    "belt": (0.05, -0.02, 0.02),
}  # m, in the torso's frame
LOWPASS = 6.0  # Hz of the equations: three times the step frequency, above it the noise of accelerations grows (chosen)
KINEMATICS = 12.0  # Hz of positions: products of what is between it and LOWPASS, as of an impact, are below LOWPASS, and must not be lost
SIGMA = {
    "fx": 0.6,
    "fy": 0.6,
    "fz": 0.6,
    "mx": 0.08,
    "my": 0.08,
    "mz": 0.04,
}  # N, N m: twice what these sensors leave (see sampling)
GAP = 0.05  # s, for which markers may be lost and the pose still be used


def mujoco() -> Any:
    """The engine, or a refusal that names what to install."""
    try:
        import mujoco as engine
    except ImportError as error:
        what = "this simulation needs MuJoCo, which is not installed."
        raise ModelError(what, where="mujoco", found=str(error), hint="pip install 'veridyn[mujoco]'") from error
    return engine


def mjcf(
    machine: Machine, soles: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]] | None = None, step: float = 1e-3
) -> Any:
    """The model of a machine on a free base as an XML element `mujoco`; joints are called as their coordinates, bodies as bodies.

    `soles`: body → (centre, rotation, half edges) of a box that may touch the ground, in the body's frame. Where there are none,
    contact is off. Centre of mass and inertia about it are exact to rounding; joints have neither friction nor armature.
    """
    if machine.base != "free" or machine.shares_coordinates or machine.elements:
        raise ModelError(
            "only a free tree without elements and shared coordinates goes into the engine.", where=machine.name
        )
    root = ElementTree.Element("mujoco", model=machine.name)
    ElementTree.SubElement(root, "compiler", angle="radian", inertiafromgeom="false", autolimits="false")
    gravity = _text(machine.gravity)
    option = ElementTree.SubElement(root, "option", timestep=repr(step), gravity=gravity, cone="elliptic")
    if not soles:
        ElementTree.SubElement(option, "flag", contact="disable", constraint="disable")
    world = ElementTree.SubElement(root, "worldbody")
    if soles:
        ElementTree.SubElement(world, "geom", name="ground", type="plane", size="5 5 1")
    elements: dict[str, ElementTree.Element] = {}
    columns = {body: k for k, (body, number) in enumerate(machine.columns) if body and number == 0}
    for b in bodies_of(machine):
        carrier = elements.get(b.antecedent or GROUND)
        here = ElementTree.SubElement(world if carrier is None else carrier, "body", name=b.name)
        elements[b.name] = here
        if carrier is not None:
            here.set("pos", _text(b.placement.position))
            here.set("quat", _text(quaternion(b.placement.rotation)))
        _inertial(here, machine.parameters.values[columns[b.name] :][:10] if b.name in columns else None, b.name)
        if carrier is None:
            ElementTree.SubElement(here, "freejoint", name="free")
        elif b.joint != "fixed":
            kind = "hinge" if b.joint == "turning" else "slide"
            ElementTree.SubElement(here, "joint", name=b.coordinate_name, type=kind, axis="0 0 1")
        if soles and b.name in soles:
            centre, rotation, half = soles[b.name]
            ElementTree.SubElement(
                here,
                "geom",
                name=f"sole {b.name}",
                type="box",
                pos=_text(centre),
                quat=_text(quaternion(np.asarray(rotation, dtype=np.float64))),
                size=_text(half),
                mass="0",
            )
    return root


class PrescribedJoints:
    """The engine's answer to prescribed motion: what the ground must do to a free machine so that it moves so."""

    def __init__(self, machine: Machine) -> None:
        engine = mujoco()
        self.machine = machine
        self._engine = engine
        self.model = engine.MjModel.from_xml_string(ElementTree.tostring(mjcf(machine), encoding="unicode"))
        self.data = engine.MjData(self.model)
        ids = [engine.mj_name2id(self.model, engine.mjtObj.mjOBJ_JOINT, c) for c in machine.coordinates]
        self.at = np.array([self.model.jnt_qposadr[k] for k in ids], dtype=int)
        self.dof = np.array([self.model.jnt_dofadr[k] for k in ids], dtype=int)

    def ground_wrench(self, pose: Pose, velocity: Array, acceleration: Array, q: Array, qd: Array, qdd: Array) -> Array:
        """(N, 6) force and moment about the world's origin, in the world's axes, that act on the machine from outside.

        `velocity` and `acceleration` (N, 6) of the base: of its origin in the world's axes, then angular in its own frame.
        """
        out = np.empty((len(pose), 6))
        for k in range(len(pose)):
            d = self.data
            d.qpos[:3], d.qpos[3:7], d.qpos[self.at] = pose.position[k], quaternion(pose.rotation[k]), q[k]
            d.qvel[:6], d.qvel[self.dof] = velocity[k], qd[k]
            d.qacc[:6], d.qacc[self.dof] = acceleration[k], qdd[k]
            self._engine.mj_inverse(self.model, d)
            force, moment = d.qfrc_inverse[:3], pose.rotation[k] @ d.qfrc_inverse[3:6]
            out[k] = np.concatenate([force, moment + np.cross(pose.position[k], force)])
        return out


def base_motion(machine: Machine, pose: Pose, velocity: Array, acceleration: Array) -> BaseMotion:
    """What an ideal inertial unit at the base's origin reads, from the engine's own velocities and accelerations."""
    back = np.swapaxes(pose.rotation, 1, 2)
    specific = np.einsum("nij,nj->ni", back, acceleration[:, :3] - machine.gravity)
    return BaseMotion(velocity[:, 3:], acceleration[:, 3:], specific, np.einsum("nij,nj->ni", back, velocity[:, :3]))


def engine_motion(
    machine: Machine, pose: Pose, velocity: Array, acceleration: Array, q: Array, qd: Array, qdd: Array, wrench: Array
) -> Motion:
    """Exact data of the engine as a motion: the ground's `wrench` about the world's origin acts on the base."""
    base = machine.root
    back = np.swapaxes(pose.rotation, 1, 2)
    about = wrench[:, 3:] - np.cross(pose.position, wrench[:, :3])
    at_base = np.concatenate([np.einsum("nij,nj->ni", back, x) for x in (wrench[:, :3], about)], axis=1)
    return Motion(pose.t, q, qd, qdd, base_motion(machine, pose, velocity, acceleration), wrenches={base: at_base})


def _inertial(here: ElementTree.Element, X: Array | None, name: str) -> None:
    if X is None:
        return
    if not np.isfinite(X).all() or X[9] <= 0.0:
        raise ModelError("the engine needs its mass and inertia.", where=f"body '{name}'")
    centre = X[6:9] / X[9]
    J = np.array(inertia_matrix(X)) - X[9] * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    full = (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
    ElementTree.SubElement(here, "inertial", pos=_text(centre), mass=repr(float(X[9])), fullinertia=_text(full))


def _text(values: ArrayLike) -> str:
    return " ".join(repr(float(v)) for v in np.asarray(values, dtype=np.float64))


@dataclass(frozen=True)
class Servo:
    """Stiffness (N m/rad) and damping (N m s/rad) of the joints, rotor inertia (kg m²), and the stabiliser's gains on tilt and its rate.

    `softness` (s) is the time constant of the contact: how long a sole takes to come to rest on the ground.
    """

    stiffness: float = 200.0
    damping: float = 6.0
    rotor: float = 0.002
    tilt: float = 0.6
    tilt_rate: float = 0.04
    softness: float = 0.02
    step: float = 5e-4


@dataclass(frozen=True, eq=False)
class Performed:
    """What happened: poses of the torso, angles, the ground's wrench (N, 6) about the world's origin, and the engine's exact `motion`.

    `how` says whether the robot moved freely or was moved. `feet` (N, 2, 6): the part of each foot, where contact was simulated.
    """

    name: str
    how: str
    pose: Pose
    q: Array
    wrench: Array
    motion: Motion
    feet: Array | None = None


def prescribed(machine: Machine, plan: GaitPlan) -> Performed:
    """The plan exactly as planned; the engine says what the ground must have done."""
    wrench = PrescribedJoints(machine).ground_wrench(
        plan.pose, plan.velocity, plan.acceleration, plan.q, plan.qd, plan.qdd
    )
    motion = engine_motion(machine, plan.pose, plan.velocity, plan.acceleration, plan.q, plan.qd, plan.qdd, wrench)
    return Performed(
        plan.name, "prescribed motion, wrench by the engine's inverse dynamics", plan.pose, plan.q, wrench, motion
    )


def performed(machine: Machine, plan: GaitPlan, servo: Servo | None = None, progress: Progress = silent) -> Performed:
    """The robot itself, servoed to the plan, free to fall; where it does, a SimulationError says when."""
    how = servo or Servo()
    engine = mujoco()
    model = engine.MjModel.from_xml_string(_world(machine, how))
    data = engine.MjData(model)
    at, dof = _addresses(engine, model, machine)
    ankles = np.array([[machine.coordinates.index(f"{s}_{part}") for s in SIDES] for part in ("ankle", "foot")])
    data.qpos[:3], data.qpos[3:7] = plan.pose.position[0], quaternion(plan.pose.rotation[0])
    data.qpos[at] = plan.q[0]
    N, substeps, settle = len(plan), round(STEP / how.step), round(SETTLE / STEP)
    qpos, qvel, qacc = (np.empty((N, k)) for k in (model.nq, model.nv, model.nv))
    feet = np.zeros((N, 2, 6))
    for sample in range(-settle, N):
        k = max(sample, 0)
        for s in range(substeps):
            after = min(max(sample + 1, 0), N - 1)
            # All that is planned is interpolated: a target that steps once in a sample makes the sampled forces unlike the mean ones.
            part = s / substeps
            target = plan.q[k] + (plan.q[after] - plan.q[k]) * part
            turning = plan.velocity[k, 3:] + (plan.velocity[after, 3:] - plan.velocity[k, 3:]) * part
            tilt = plan.pose.rotation[k].T @ rotation_of(data.qpos[3:7])
            lean = 0.5 * np.array([tilt[0, 2] - tilt[2, 0], tilt[2, 1] - tilt[1, 2]])  # about y, about x
            lean -= 0.5 * (plan.velocity[k, 3:] + turning)[[1, 0]] * part * STEP * (after > k)
            rate = (data.qvel[3:6] - turning)[[1, 0]]
            target[ankles] += (how.tilt * lean + how.tilt_rate * rate)[:, None]
            data.ctrl[:] = target
            if sample >= 0 and s == 0:
                engine.mj_forward(model, data)
                qpos[k], qvel[k] = data.qpos, data.qvel
                # The contact solver iterates; the acceleration that belongs to its forces to the last digit is M⁻¹ f.
                engine.mj_solveM(model, data, qacc[k : k + 1], (data.qfrc_smooth + data.qfrc_constraint)[None])
                feet[k] = _ground_forces(engine, model, data)
            engine.mj_step(model, data)
        if data.qpos[2] < FALLEN:
            found = f"the torso at {data.qpos[2]:.3f} m after {k * STEP:.2f} s of {N * STEP:.2f} s"
            hint = "Shorter steps, or other gains of the servo."
            raise SimulationError("the robot fell.", where=plan.name, found=found, hint=hint)
        if k % 100 == 0:
            progress(plan.name, float(k), float(N))
    R = matrix_of(qpos[:, 3:7] / np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True))
    pose = Pose(plan.pose.t, R, qpos[:, :3])
    wrench = feet.sum(axis=1)
    motion = engine_motion(machine, pose, qvel[:, :6], qacc[:, :6], qpos[:, at], qvel[:, dof], qacc[:, dof], wrench)
    return Performed(
        plan.name, "free motion in the engine, joints servoed, soft soles", pose, qpos[:, at], wrench, motion, feet
    )


def _world(machine: Machine, how: Servo) -> str:
    (back, front), (inner, outer) = FOOT
    half = ((front - back) / 2, (outer - inner) / 2, THICK)
    centre = (SOLE - THICK, (inner + outer) / 2, (front + back) / 2)
    root = mjcf(machine, dict.fromkeys(FEET, (centre, SOLE_AXES, half)), how.step)
    root.find("option").attrib.update(integrator="implicitfast", tolerance="1e-14", iterations="200")
    for geom in root.iter("geom"):
        geom.set("solref", f"{how.softness} 1")
        geom.set("friction", "0.9 0.02 0.001")
        geom.set("condim", "6")
        ground = geom.get("name") == "ground"  # soles touch the ground and not each other
        geom.attrib.update(contype="1" if ground else "2", conaffinity="2" if ground else "1")
    for joint in root.iter("joint"):
        joint.set("armature", repr(how.rotor))
    actuators = ElementTree.SubElement(root, "actuator")
    for c in machine.coordinates:
        ElementTree.SubElement(actuators, "position", joint=c, kp=repr(how.stiffness), kv=repr(how.damping))
    return ElementTree.tostring(root, encoding="unicode")


def _addresses(engine, model, machine: Machine) -> tuple[NDArray[np.intp], NDArray[np.intp]]:  # pyright: ignore[reportMissingParameterType]
    ids = [engine.mj_name2id(model, engine.mjtObj.mjOBJ_JOINT, c) for c in machine.coordinates]
    return np.array([model.jnt_qposadr[k] for k in ids]), np.array([model.jnt_dofadr[k] for k in ids])


def _ground_forces(engine, model, data) -> Array:  # pyright: ignore[reportMissingParameterType]
    """(2, 6): what the ground does to each foot, about the world's origin."""
    out, six, count = np.zeros((2, 6)), np.zeros(6), int(data.ncon)
    which, (places, forces, moments) = np.zeros(count, dtype=np.intp), np.zeros((3, count, 3))
    for k in range(count):
        contact = data.contact[k]
        engine.mj_contactForce(model, data, k, six)
        first_is_ground = model.geom_bodyid[contact.geom1] == 0
        sign = 1.0 if first_is_ground else -1.0
        foot = model.geom_bodyid[contact.geom2 if first_is_ground else contact.geom1]
        axes = contact.frame.reshape(3, 3).T
        places[k], forces[k], moments[k] = contact.pos, sign * axes @ six[:3], sign * axes @ six[3:]
        which[k] = FEET.index(engine.mj_id2name(model, engine.mjtObj.mjOBJ_BODY, foot))
    np.add.at(out, which, np.concatenate([forces, moments + np.cross(places, forces)], axis=1))
    return out


@dataclass(frozen=True)
class Faulty:
    """What is wrong with a laboratory: nothing by default.

    `late` s: the plate's clock lags. `shift` (m) and `axes` (3, 3): the plate's origin and axes are not where the set-up has them.
    `encoder`: joint → offset in rad. `lost`: (first, last) times at which no marker is seen.
    """

    late: float = 0.0
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    axes: tuple[tuple[float, ...], ...] | None = None
    encoder: dict[str, float] = field(default_factory=dict)
    lost: tuple[float, float] | None = None


def sensors(faulty: Faulty | None = None) -> Imperfections:
    """Encoders, motion capture and plate; exact ones for noise zero."""
    faults = faulty or Faulty()
    offsets = {f"q.{c}": Imperfection(noise=5e-4, bias=by) for c, by in faults.encoder.items()}
    return Imperfections(
        {
            **offsets,
            "q.*": Imperfection(noise=5e-4),
            "marker.*": Imperfection(noise=3e-4),
            "plate.f?": Imperfection(quantum=0.7, delay=faults.late),
            "plate.m?": Imperfection(quantum=0.05, delay=faults.late),
        }
    )


def recorded(machine: Machine, run: Performed, rng: np.random.Generator, faulty: Faulty | None = None) -> Experiment:
    """The log of one run."""
    faults = faulty or Faulty()
    t = run.pose.t
    values: dict[str, Array] = {f"q.{c}": run.q[:, k] for k, c in enumerate(machine.coordinates)}
    units = dict.fromkeys(values, "rad")
    for name, place in MARKERS.items():
        seen = run.pose.position + run.pose.rotation @ np.array(place)
        for k, axis in enumerate("xyz"):
            values[f"marker.{name}.{axis}"] = seen[:, k]
            units[f"marker.{name}.{axis}"] = "m"
    plate = np.concatenate(
        [run.wrench[:, :3], run.wrench[:, 3:] - np.cross(np.array(faults.shift), run.wrench[:, :3])], axis=1
    )
    axes = np.eye(3) if faults.axes is None else np.array(faults.axes)
    plate = np.concatenate([plate[:, :3] @ axes.T, plate[:, 3:] @ axes.T], axis=1)
    for k, row in enumerate(WRENCH_ROWS):
        values[f"plate.{row}"] = plate[:, k]
        units[f"plate.{row}"] = "N" if row[0] == "f" else "N*m"
    log = sensors(faults).read(Experiment.from_arrays(t, values, units, run.name), rng)
    if faults.lost is not None:
        first, last = faults.lost
        gone = [c for n, c in log.channels.items() if n.startswith("marker.")]
        hidden = [replace(c, values=np.where((c.t >= first) & (c.t <= last), np.nan, c.values)) for c in gone]
        log = log.replacing(*hidden)
    return log


def signals() -> Signals:
    """12 Hz, zero phase, twice the band of the equations; a fifth of a second is left out at both ends."""
    return Signals(lowpass=KINEMATICS, trim=0.2)


def sampling(decimate: int = 10) -> Sampling:
    """Both sides of the equations through the same low-pass; at 6 Hz one equation in ten, 30 ms, is more than enough.

    Neighbours 30 ms apart still share their noise, so the deviations stated (SIGMA) are larger than the rms that is left.
    """
    return Sampling(filter=Butterworth(LOWPASS), decimate=decimate, trim=40)


@dataclass(frozen=True, eq=False)
class Read:
    """A recording read: the motion with the plate's wrench on the torso, the marker fit, and how equations are made of it.

    `trial` is the same with the plate's wrench beside the motion, for :func:`veridyn.estimators.diagnose`.
    """

    motion: Motion
    markers: MarkerFit
    sampling: Sampling
    trial: Trial


def read(machine: Machine, log: Experiment, plate: Placement | None = None, how: Signals | None = None) -> Read:
    """Markers to pose, encoders and pose to motion, plate to wrench: what any laboratory with these sensors would do."""
    names = list(dict.fromkeys(n.split(".")[1] for n in log if n.startswith("marker.")))
    clock = log[f"marker.{names[0]}.x"].t
    seen = np.stack([np.column_stack([log[f"marker.{n}.{a}"].values for a in "xyz"]) for n in names], axis=1)
    fit = fit_markers(clock, seen, np.array([MARKERS[n] for n in names]), names, max_gap=GAP, body=BASE)
    settings = how or signals()
    angles = Experiment({n: c for n, c in log.channels.items() if n.startswith("q.")}, log.name)
    plain = motion(machine, angles, settings, pose=fit.pose)
    on = np.column_stack([np.interp(plain.t, c.t, c.values) for c in (log[f"plate.{r}"] for r in WRENCH_ROWS)])
    where = pose_at(smoothed_pose(fit.pose, settings.filter), plain.t)
    world = plate_wrench(on[:, :3], on[:, 3:], plate)
    base = sampling()
    bad = fit.unusable(plain.t, margin=0.15)
    made = replace(base, drop=dict.fromkeys(WRENCH_ROWS, bad)) if bad.any() else base
    return Read(with_contacts(machine, plain, where, {machine.root: world}), fit, made, Trial(plain, where, world))
