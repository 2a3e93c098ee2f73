"""Measured time: clocks, filters, derivatives, spectra, and what is wrong with a log. No files and no printing here.

Examples
--------
>>> import numpy as np
>>> import veridyn as vd
>>> t = 0.001 * np.arange(2000)
>>> slow, fast = np.sin(2 * np.pi * t), 0.1 * np.sin(2 * np.pi * 200.0 * t)
>>> smooth = vd.signals.zero_phase(slow + fast, 1000.0, vd.signals.Butterworth(20.0))
>>> bool(np.abs(smooth - slow)[200:-200].max() < 1e-3)  # the fast part is gone, the slow one not delayed
True

Periodic motion, and a log that is inspected and mended:

>>> from veridyn.signals import *
>>> twice = np.stack([slow, 2.0 * slow], axis=1)
>>> averaged(twice, 1000.0, 1.0).mean.shape, fourier_fit(twice, t, 1.0, harmonics=2).at(0.25)[0].round(6)
((1000, 2), array([1., 2.]))
>>> bool(np.allclose(dft_filter(slow[:1000, None], 1000.0, harmonics=3)[1][0], 2 * np.pi, atol=1e-6))  # its rate
True
>>> SampledTrajectory(t, twice).at(0.25)[0].round(3), SplineTrajectory(np.zeros((8, 1)), 0.5).at(0.1)[0]
(array([1., 2.]), array([0.]))
>>> position = slow.copy()
>>> position[700] = 5.0  # a spike
>>> log = vd.Experiment.from_arrays(t, {"q.hinge": position}, {"q.hinge": "rad"})
>>> [(f.channel, f.kind, f.count) for f in inspect(log).findings]
[('q.hinge', 'spike', 1)]
>>> repaired = mended(log, Mending(spikes="repair"))
>>> bool(np.abs(repaired.pieces[0]["q.hinge"].values - slow).max() < 1e-3)
True

Markers of motion capture, an inertial unit beside the base, and the pulses of a wheel:

>>> places = np.array([[0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1], [0.1, 0.1, 0]])
>>> still = fit_markers(t[:50], np.tile(places, (50, 1, 1)), places).pose
>>> pose_at(smoothed_pose(still, Butterworth(6.0)), [0.01]).position.round(9)
array([[0., 0., 0.]])
>>> marker_cluster(np.tile(places, (50, 1, 1))).shape
(4, 3)
>>> read = vd.BaseMotion(np.zeros((1, 3)), np.zeros((1, 3)), np.array([[0.0, 0.0, 9.81]]))
>>> moved_to_base(read, vd.spatial.Placement(position=(0.2, 0, 0))).acceleration
array([[0.  , 0.  , 9.81]])
>>> edges = edges_of_intervals(0.1, [0.02, 0.02, 0.02])
>>> readings_of_edges(edges, PulseWheel(holes=40), "wheel")[0].values.round(4)
array([0.1571, 0.3142, 0.4712, 0.6283])
>>> count = vd.model.Channel("wheel", 0.01 * np.arange(20), np.arange(20.0) // 4, "1")
>>> [c.name for c in readings_of_counts(count, PulseWheel(holes=40), "wheel")]
['wheel', 'wheel.sigma']
>>> others = vd.model.Channel("other", count.t, np.zeros(20), "1")  # it stands: what the first counts is false
>>> find_false_counts(vd.Experiment({"wheel": count, "other": others}), ("wheel", "other")).false["wheel"].sum()
np.int64(4)
"""

from veridyn.signals.base_motion import fit_markers as fit_markers
from veridyn.signals.base_motion import marker_cluster as marker_cluster
from veridyn.signals.base_motion import moved_to_base as moved_to_base
from veridyn.signals.base_motion import pose_at as pose_at
from veridyn.signals.base_motion import smoothed_pose as smoothed_pose
from veridyn.signals.butterworth import Butterworth as Butterworth
from veridyn.signals.butterworth import zero_phase as zero_phase
from veridyn.signals.clock_offset import estimate_clock_offset as estimate_clock_offset
from veridyn.signals.drive import course_over_ground as course_over_ground
from veridyn.signals.frequency import averaged as averaged
from veridyn.signals.frequency import dft_filter as dft_filter
from veridyn.signals.frequency import fourier_fit as fourier_fit
from veridyn.signals.mend import Mending as Mending
from veridyn.signals.mend import mended as mended
from veridyn.signals.motion import Signals as Signals
from veridyn.signals.pulses import PulseReader as PulseReader
from veridyn.signals.pulses import PulseWheel as PulseWheel
from veridyn.signals.pulses import count_of_rounded as count_of_rounded
from veridyn.signals.pulses import edges_of_intervals as edges_of_intervals
from veridyn.signals.pulses import find_false_counts as find_false_counts
from veridyn.signals.pulses import readings_of_counts as readings_of_counts
from veridyn.signals.pulses import readings_of_edges as readings_of_edges
from veridyn.signals.quality import inspect as inspect
from veridyn.signals.trajectory import FourierTrajectory as FourierTrajectory
from veridyn.signals.trajectory import JointLimits as JointLimits
from veridyn.signals.trajectory import SampledTrajectory as SampledTrajectory
from veridyn.signals.trajectory import SplineTrajectory as SplineTrajectory
