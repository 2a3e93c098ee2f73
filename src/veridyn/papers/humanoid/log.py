"""What the laboratory records of the humanoid, and how a recording becomes a motion: markers, encoders and a force plate, every 3 ms.

Paper 004, section 4: motion capture and plate on one clock, plate with a resolution of about 70 g = 0.7 N. The rest is chosen: steps of
0.05 N m in the moments, 0.5 mrad of encoder noise, 0.3 mm of noise in each marker, six markers on the torso. Faults can be built in.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.laboratory import Trial
from veridyn.identify.regression.sampling import Sampling
from veridyn.mechanics.ground.contact import plate_wrench, with_contacts
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.humanoid.machine import BASE
from veridyn.papers.humanoid.walk import Performed
from veridyn.signals.base_motion import MarkerFit, fit_markers, pose_at, smoothed_pose
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals, motion
from veridyn.simulate.imperfection import Imperfection, Imperfections
from veridyn.spatial.rotations import Placement

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
    on = np.column_stack([np.interp(plain.t, *_line(log[f"plate.{r}"])) for r in WRENCH_ROWS])
    where = pose_at(smoothed_pose(fit.pose, settings.filter), plain.t)
    world = plate_wrench(on[:, :3], on[:, 3:], plate)
    base = sampling()
    bad = fit.unusable(plain.t, margin=0.15)
    made = replace(base, drop=dict.fromkeys(WRENCH_ROWS, bad)) if bad.any() else base
    return Read(with_contacts(machine, plain, where, {machine.root: world}), fit, made, Trial(plain, where, world))


def _line(channel: Channel) -> tuple[Array, Array]:
    return channel.t, channel.values
