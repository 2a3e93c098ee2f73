"""A three-joint robot with logs and a study file on disk, all in order: what the damaged ones are made from."""

from dataclasses import dataclass, field
from functools import cache
from math import pi
from pathlib import Path

import numpy as np

from veridyn.files.machine.write import save_model
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

RATE = 200.0
JOINTS = ("q1", "q2", "q3")
STUDY = """\
veridyn: 1
kind: identify
name: bench
model: {file: model.yaml}
log:
  time: t [s]
  columns:
    q.q1: q1 [rad]
    q.q2: q2 [rad]
    q.q3: q3 [rad]
    qd.q1: qd1 [rad/s]
    qd.q2: qd2 [rad/s]
    qd.q3: qd3 [rad/s]
    force.q1: tau1 [N*m]
    force.q2: tau2 [N*m]
    force.q3: tau3 [N*m]
training: [training.csv]
validation: [validation.csv]
signals: {lowpass: 8}
accept: {validation_percent: 5}
"""
URDF_LINK = """  <link name="{name}"><inertial><origin xyz="{x}" rpy="0 0 0"/><mass value="{m}"/>
    <inertia ixx="{i[0]}" iyy="{i[1]}" izz="{i[2]}" ixy="0" ixz="0" iyz="0"/></inertial></link>
"""
URDF_JOINT = """  <joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
    <origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="100" velocity="6"/>
    <dynamics damping="{damping}" friction="{friction}"/></joint>
"""
MASSES = (6.0, 4.0, 2.0)
CENTRES = ([0.02, 0.01, 0.05], [0.2, 0.01, 0.03], [0.12, 0.02, 0.01])
INERTIAS = ([0.05, 0.04, 0.03], [0.01, 0.07, 0.065], [0.004, 0.012, 0.011])
PLACES = ((0.0, 0.0, 0.3, 0.0), (0.08, 0.0, 0.0, pi / 2), (0.4, 0.0, 0.0, 0.0))
DAMPING, FRICTION = (1.2, 0.9, 0.4), (1.0, 0.8, 0.3)


def robot(prior: float = 1.0) -> Machine:
    """Shoulder about the vertical, then two joints that lift; `prior` scales all that is believed of it."""
    bodies = [
        Body("1", placement=MDH(r=0.3)),
        Body("2", "1", placement=MDH(alpha=pi / 2, d=0.08)),
        Body("3", "2", placement=MDH(d=0.4)),
    ]
    inertia = {
        b.name: prior * from_centre(m, c, np.diag(i))
        for b, m, c, i in zip(bodies, MASSES, CENTRES, INERTIAS, strict=True)
    }
    elements = [damper(c, prior * h) for c, h in zip(JOINTS, DAMPING, strict=True)]
    elements += [coulomb(c, prior * f) for c, f in zip(JOINTS, FRICTION, strict=True)]
    return Machine.of_bodies(bodies, name="bench robot", inertia=inertia, elements=elements)


def urdf(prior: float = 1.1) -> str:
    """The same robot as a URDF file, with joints q1 to q3."""
    text = '<robot name="bench robot">\n  <link name="ground"/>\n'
    for k in range(3):
        x = " ".join(str(v) for v in CENTRES[k])
        text += URDF_LINK.format(name=f"link{k + 1}", x=x, m=prior * MASSES[k], i=[prior * v for v in INERTIAS[k]])
    for k, (d, b, r, alpha) in enumerate(PLACES):
        parent = "ground" if k == 0 else f"link{k}"
        text += URDF_JOINT.format(
            name=JOINTS[k],
            parent=parent,
            child=f"link{k + 1}",
            xyz=f"{d} {b} {r}",
            rpy=f"{alpha} 0 0",
            damping=prior * DAMPING[k],
            friction=prior * FRICTION[k],
        )
    return text + "</robot>\n"


def recording(seed: int, seconds: float = 10.0) -> dict[str, np.ndarray]:
    """Columns of one log: sums of sinusoids, forces by inverse dynamics, and noise on all that is measured; to be changed at will."""
    return {name: column.copy() for name, column in _recorded(seed, seconds).items()}


@cache
def _recorded(seed: int, seconds: float) -> dict[str, np.ndarray]:
    rng, truth = np.random.default_rng(seed), robot()
    t = np.arange(0.0, seconds, 1.0 / RATE)
    q, qd, qdd = (np.zeros((len(t), 3)) for _ in range(3))
    for k in range(3):
        for harmonic in range(1, 6):
            w = 2.0 * pi * 0.15 * harmonic
            a, phase = rng.uniform(0.4, 1.0) / harmonic, rng.uniform(0.0, 2.0 * pi)
            q[:, k] += a * np.sin(w * t + phase)
            qd[:, k] += a * w * np.cos(w * t + phase)
            qdd[:, k] -= a * w**2 * np.sin(w * t + phase)
    tau = inverse_dynamics(truth, Motion(t, q, qd, qdd))
    tau += 0.02 * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    columns = {"t": t}
    columns |= {f"q{k + 1}": q[:, k] + 2e-5 * rng.normal(size=len(t)) for k in range(3)}
    columns |= {f"qd{k + 1}": qd[:, k] + 2e-3 * rng.normal(size=len(t)) for k in range(3)}
    columns |= {f"tau{k + 1}": tau[:, k] for k in range(3)}
    return columns


@dataclass
class Bench:
    """A folder that holds model, logs and study; changed before it is written."""

    folder: Path
    study: str = STUDY
    prior: float = 1.1
    training: dict[str, np.ndarray] = field(default_factory=lambda: recording(1))
    validation: dict[str, np.ndarray] = field(default_factory=lambda: recording(2))

    def write(self) -> Path:
        save_model(robot(self.prior), self.folder / "model.yaml")
        (self.folder / "model.urdf").write_text(urdf(self.prior), encoding="utf-8")
        for name in ("training", "validation"):
            (self.folder / f"{name}.csv").write_text(table(getattr(self, name)), encoding="utf-8")
        return self.write_study()

    def write_study(self) -> Path:
        path = self.folder / "study.yaml"
        path.write_text(self.study, encoding="utf-8")
        return path


def table(columns: dict[str, np.ndarray]) -> str:
    rows, line = np.column_stack(list(columns.values())).tolist(), ",".join(["%.9g"] * len(columns))
    return "\n".join([",".join(columns), *(line % tuple(row) for row in rows)]) + "\n"
