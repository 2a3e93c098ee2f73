"""A hexapod: its base parameters, its kinematics both ways, and its identification from a designed run under position control.

Run it with ``python examples/hexapod.py``; it takes about a minute.
"""

import numpy as np

import veridyn as vd
from veridyn.papers.hexapod.machine import (
    LEGS,
    POSE,
    TABLE_NAMES,
    SensorNoise,
    controlled,
    hexapod,
    prior,
    recorded,
    task,
    tracking,
    truth,
)
from veridyn.papers.hexapod.study import period_fit
from veridyn.papers.hexapod.trials import designed

# 1. The machine is a model file: a tree, and the joints at which its loops were cut open.
robot = hexapod()
base = vd.base_parameters(robot)
print(base.summary(), "\n")

# 2. Kinematics: the pose of the platform gives all joints, and the lengths of the legs give the pose back.
pose = np.array([[0.05, -0.03, -0.90, 0.1, 0.0, 0.2]])
joints = vd.dynamics.close(robot, pose, at=POSE)
lengths = joints.q[:, [robot.coordinates.index(leg) for leg in LEGS]]
back = vd.dynamics.close(robot, lengths)
print(
    f"legs {lengths[0].round(4)} m; pose again to {abs(back.q[:, :6] - pose).max():.1e} in {back.iterations[0]} steps\n"
)

# 3. A periodic motion of the pose, designed for small deviations of all parameters within what drives and workspace allow.
rng = np.random.default_rng(1)
plan = designed("d", starts=1, iterations=40, rng=rng)
print(plan.summary(), "\n")
frequency = plan.frequency

# 4. The machine runs it under control, with the drawing's model as feed-forward, and is measured with noise.
noise = SensorNoise()
run = controlled(task(plan.trajectory.at, 1 / frequency, prior()), 4, noise, rng)[0]
log = recorded(run, noise, rng, skip=1 / frequency, fresh=False)

# 5. Identified from the average of three periods.
fit = period_fit(log, frequency, harmonics=30)
true = base.reduce(truth().parameters.values)
for name, value, sigma, right in zip(fit.names, fit.values, fit.sigma, true, strict=True):
    print(f"{TABLE_NAMES[name]:>4} {value:10.4f} ± {sigma:.4f}   true {right:10.4f}")

# 6. What it is good for: the error of the legs on a circle, with each model as feed-forward.
identified = robot.with_parameters(fit.standard)
found = tracking({"none": None, "prior": prior(), "identified": identified}, noise, rng, (0.6, 1.2))
for name, error in zip(found.models, found.rms[-1], strict=True):
    print(f"tracking error with {name:>10}: {1e6 * error:6.1f} µm")
