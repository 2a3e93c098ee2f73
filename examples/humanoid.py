"""Whole-body parameters of a humanoid from base-link equations: the heart of ``veridyn demo humanoid`` through the public names.

Needs the extras mujoco (the robot walks in an engine of its own) and consistent.
"""

import numpy as np

import veridyn as vd
from veridyn.papers.humanoid.machine import BASE, bend, cad, machine, total_mass, walk
from veridyn.papers.humanoid.walk import MARKERS, SIGMA, performed, recorded, sampling

rng = np.random.default_rng(0)
drawing, robot = cad(), machine()  # 6.7 kg in the drawing, 8.0 kg on the scales
signals = vd.Signals(lowpass=6.0, trim=0.2)


def laboratory(log: vd.Experiment) -> vd.Motion:
    """Markers to a pose, encoders and pose to a motion, plate to a wrench on the torso."""
    clock = log["plate.fz"].t
    seen = np.stack([np.column_stack([log[f"marker.{m}.{a}"].values for a in "xyz"]) for m in MARKERS], axis=1)
    fit = vd.signals.fit_markers(clock, seen, np.array(list(MARKERS.values())), list(MARKERS), body=BASE)
    angles = vd.Experiment({n: c for n, c in log.channels.items() if n.startswith("q.")}, log.name)
    motion = vd.motion(drawing, angles, signals, pose=fit.pose)
    pose = vd.signals.pose_at(vd.signals.smoothed_pose(fit.pose, signals.filter), motion.t)
    plate = np.column_stack([np.interp(motion.t, clock, log[f"plate.{r}"].values) for r in SIGMA])
    return vd.dynamics.with_contacts(
        drawing, motion, pose, {BASE: vd.dynamics.plate_wrench(plate[:, :3], plate[:, 3:])}
    )


walking = laboratory(recorded(drawing, performed(robot, walk(drawing, steps=4)), rng))
print(f"walking excites {vd.base_parameters(drawing, walking, rows='base').count} base parameters")

how = vd.IdentifySettings(sampling=sampling(), sigma=SIGMA)
fit = vd.identify(drawing, walking, vd.estimators.Consistent(prior=vd.estimators.Prior()), how, rows="base")
mass = fit.values[fit.names.index("M0R")]
print(f"total mass {mass:.3f} kg: {total_mass(robot):g} kg is true, the drawing says {total_mass(drawing):g} kg")

bending = laboratory(recorded(drawing, performed(robot, bend(drawing)), rng))  # motion the fit has not seen
print(vd.validate(fit, bending, how).summary())
