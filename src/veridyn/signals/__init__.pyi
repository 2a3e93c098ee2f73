"""Measured time: clocks, filters, derivatives, spectra, and what is wrong with a log. No files and no printing here."""

from veridyn.signals.base_motion import moved_to_base as moved_to_base
from veridyn.signals.base_motion import pose_at as pose_at
from veridyn.signals.base_motion import smoothed_pose as smoothed_pose
from veridyn.signals.butterworth import Butterworth as Butterworth
from veridyn.signals.butterworth import zero_phase as zero_phase
from veridyn.signals.clock_offset import clock_offset as clock_offset
from veridyn.signals.course import course_over_ground as course_over_ground
from veridyn.signals.false_counts import false_counts as false_counts
from veridyn.signals.frequency import averaged as averaged
from veridyn.signals.markers import fit_markers as fit_markers
from veridyn.signals.markers import marker_cluster as marker_cluster
from veridyn.signals.mend import Mending as Mending
from veridyn.signals.mend import mended as mended
from veridyn.signals.motion import Signals as Signals
from veridyn.signals.periodic_filters import dft_filter as dft_filter
from veridyn.signals.periodic_filters import fourier_fit as fourier_fit
from veridyn.signals.pulses import PulseReader as PulseReader
from veridyn.signals.pulses import PulseWheel as PulseWheel
from veridyn.signals.pulses import edges_of_intervals as edges_of_intervals
from veridyn.signals.pulses import readings_of_counts as readings_of_counts
from veridyn.signals.pulses import readings_of_edges as readings_of_edges
from veridyn.signals.quality import inspect as inspect
from veridyn.signals.sampled import SampledTrajectory as SampledTrajectory
from veridyn.signals.splines import SplineTrajectory as SplineTrajectory
from veridyn.signals.trajectory import FourierTrajectory as FourierTrajectory
from veridyn.signals.trajectory import JointLimits as JointLimits
