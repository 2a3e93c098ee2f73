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
