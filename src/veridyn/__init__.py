"""veridyn makes multibody models true.

Describe a machine once; veridyn says which of its parameters can be identified, identifies them from logs with honest standard deviations,
and checks them on data it has not seen. The names below are the public ones; each is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "veridyn.errors": (
        "CacheWarning",
        "DataError",
        "DataWarning",
        "FileError",
        "IdentificationError",
        "IdentificationWarning",
        "ModelError",
        "ModelWarning",
        "SimulationError",
        "VeridynError",
    ),
    "veridyn.spatial.transforms": ("MDH", "Placement"),
    "veridyn.spatial.inertia": ("from_centre",),
    "veridyn.model.joint": ("Body",),
    "veridyn.model.link": ("Joint", "Link"),
    "veridyn.model.machine": ("Machine",),
    "veridyn.model.tree": ("Tree",),
    "veridyn.model.uncertainty": ("Uncertainty",),
    "veridyn.model.loop": ("Assembly", "Attachment", "Loop"),
    "veridyn.model.actuators": ("actuators",),
    "veridyn.model.pose": ("Pose",),
    "veridyn.model.rebase": ("rebased",),
    "veridyn.model.weld": ("welded",),
    "veridyn.model.virtual_base": ("on_six_joints",),
    "veridyn.model.elements": (
        "Element",
        "asymmetric",
        "coulomb",
        "damper",
        "drag",
        "drive_gain",
        "motor_inertia",
        "offset",
        "spring",
        "stribeck",
    ),
    "veridyn.model.parameters": ("ParameterSet", "Tie"),
    "veridyn.model.transmission": ("Transmission",),
    "veridyn.model.motion": ("BaseMotion", "Motion"),
    "veridyn.model.experiment": ("Channel", "Experiment"),
    "veridyn.mechanics.inverse": ("inverse_dynamics",),
    "veridyn.mechanics.regressor": ("regressor",),
    "veridyn.mechanics.forward": ("forward_dynamics", "mass_matrix"),
    "veridyn.mechanics.kinematics": ("body_motion", "body_pose", "jacobian"),
    "veridyn.mechanics.loops.closure": ("close", "closed_home", "closed_motion"),
    "veridyn.mechanics.loops.projection": ("loop_jacobian",),
    "veridyn.mechanics.contact": ("plate_wrench", "pressure_wrench", "sensor_wrench", "with_contacts"),
    "veridyn.mechanics.codegen": ("c_source",),
    "veridyn.mechanics.derivatives": ("forward_derivatives", "inverse_derivatives"),
    "veridyn.mechanics.energy": ("energy",),
    "veridyn.mechanics.engine": ("Buffer",),
    "veridyn.mechanics.integrate": ("BaseState", "Inputs", "Method", "integrate"),
    "veridyn.signals.butterworth": ("Butterworth", "zero_phase"),
    "veridyn.signals.motion": ("Signals",),
    "veridyn.signals.base_motion": ("moved_to_base", "pose_at", "smoothed_pose"),
    "veridyn.signals.markers": ("fit_markers", "marker_cluster"),
    "veridyn.signals.mend": ("Mending", "mended"),
    "veridyn.signals.quality": ("inspect",),
    "veridyn.signals.resample": ("resample",),
    "veridyn.signals.frequency": ("averaged",),
    "veridyn.signals.periodic_filters": ("dft_filter", "fourier_fit"),
    "veridyn.signals.sampled": ("SampledTrajectory",),
    "veridyn.signals.splines": ("SplineTrajectory",),
    "veridyn.signals.trajectory": ("FourierTrajectory", "JointLimits"),
    "veridyn.simulate.imperfection": ("Imperfection", "Imperfections"),
    "veridyn.simulate.manoeuvre": ("Driven", "Prescribed", "Tracking"),
    "veridyn.identify.base": ("base_parameters",),
    "veridyn.identify.essential": ("essential",),
    "veridyn.identify.excitation.design": ("design_excitation",),
    "veridyn.identify.excitation.limits": ("Clearance", "Limits"),
    "veridyn.identify.excitation.plan": ("ExcitationPlan", "Noise"),
    "veridyn.identify.excitation.shape": ("Fourier", "Spline"),
    "veridyn.identify.estimators.gauss_markov": ("GaussMarkov",),
    "veridyn.identify.estimators.likelihood": ("Likelihood",),
    "veridyn.identify.estimators.noise_model": ("NoiseModel",),
    "veridyn.identify.estimators.coloured": ("Hac",),
    "veridyn.identify.explain": ("explain",),
    "veridyn.identify.estimators.feasible": ("Consistent",),
    "veridyn.identify.observation": ("Sampling", "observation"),
    "veridyn.identify.estimators.prior": ("Prior",),
    "veridyn.identify.encoders": ("encoder_offsets",),
    "veridyn.identify.logged": ("motion",),
    "veridyn.identify.laboratory": ("Trial", "diagnose"),
    "veridyn.identify.selection": ("remedies", "select_motions"),
    "veridyn.identify.result": ("Acceptance", "Fit"),
    "veridyn.identify.estimators.robust": ("Robust",),
    "veridyn.identify.estimators.instrumental": ("Instrumental",),
    "veridyn.identify.estimators.output_error": ("OutputError",),
    "veridyn.identify.payload": ("carrying", "with_payload"),
    "veridyn.identify.replay": ("replay",),
    "veridyn.identify.stribeck": ("stribeck_speeds",),
    "veridyn.identify.estimators.trust": ("slow_and_fast", "trust_prior"),
    "veridyn.identify.estimators.weighted": ("OLS", "WLS"),
    "veridyn.identify.validate": ("validate",),
    "veridyn.model.load": ("Drive", "Force", "Torque"),
    "veridyn.model.place": ("Marker",),
    "veridyn.model.sensor": ("Sensor",),
    "veridyn.model.natural": ("Mechanism",),
    "veridyn.files.natural": ("load_mechanism",),
    "veridyn.observe.unsure": ("Unsure",),
    "veridyn.observe.ekf": ("EKF",),
    "veridyn.observe.methods": ("ErrorEKF", "ForceErrorEKF", "LinearKF", "Smoother"),
    "veridyn.observe.observer": ("Observer",),
    "veridyn.observe.ukf": ("UKF",),
    "veridyn.observe.virtual": ("Virtual",),
    "veridyn.files.archive": ("load", "save"),
    "veridyn.files.machine": ("load_machine",),
    "veridyn.files.native": ("load_model", "save_model"),
    "veridyn.files.table": ("load_log", "save_log"),
    "veridyn.files.geodesy": ("GeoOrigin", "enu_of", "geodetic_of", "local_position"),
    "veridyn.files.osim": ("load_osim", "load_storage"),
    "veridyn.files.urdf": ("load_urdf", "urdf_limits"),
    "veridyn.files.urdf_write": ("save_urdf",),
    "veridyn.studies.config.study": ("load_study",),
    "veridyn.studies.identify_run": ("run_identify",),
}
_VERBS = ("identify", "observe", "simulate")  # folders that can be called
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*sorted([*_HOME, *_VERBS]), "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _VERBS:
        return importlib.import_module(f"veridyn.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'veridyn' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:  # what editors and type checkers see of the lazy names
    from veridyn.errors import CacheWarning as CacheWarning
    from veridyn.errors import DataError as DataError
    from veridyn.errors import DataWarning as DataWarning
    from veridyn.errors import FileError as FileError
    from veridyn.errors import IdentificationError as IdentificationError
    from veridyn.errors import IdentificationWarning as IdentificationWarning
    from veridyn.errors import ModelError as ModelError
    from veridyn.errors import ModelWarning as ModelWarning
    from veridyn.errors import SimulationError as SimulationError
    from veridyn.errors import VeridynError as VeridynError
    from veridyn.files.archive import load as load
    from veridyn.files.archive import save as save
    from veridyn.files.geodesy import GeoOrigin as GeoOrigin
    from veridyn.files.geodesy import enu_of as enu_of
    from veridyn.files.geodesy import geodetic_of as geodetic_of
    from veridyn.files.geodesy import local_position as local_position
    from veridyn.files.machine import load_machine as load_machine
    from veridyn.files.native import load_model as load_model
    from veridyn.files.native import save_model as save_model
    from veridyn.files.natural import load_mechanism as load_mechanism
    from veridyn.files.osim import load_osim as load_osim
    from veridyn.files.osim import load_storage as load_storage
    from veridyn.files.table import load_log as load_log
    from veridyn.files.table import save_log as save_log
    from veridyn.files.urdf import load_urdf as load_urdf
    from veridyn.files.urdf import urdf_limits as urdf_limits
    from veridyn.files.urdf_write import save_urdf as save_urdf
    from veridyn.identify.base import base_parameters as base_parameters
    from veridyn.identify.encoders import encoder_offsets as encoder_offsets
    from veridyn.identify.essential import essential as essential
    from veridyn.identify.estimate import identify as identify
    from veridyn.identify.estimators.coloured import Hac as Hac
    from veridyn.identify.estimators.feasible import Consistent as Consistent
    from veridyn.identify.estimators.gauss_markov import GaussMarkov as GaussMarkov
    from veridyn.identify.estimators.instrumental import Instrumental as Instrumental
    from veridyn.identify.estimators.likelihood import Likelihood as Likelihood
    from veridyn.identify.estimators.noise_model import NoiseModel as NoiseModel
    from veridyn.identify.estimators.output_error import OutputError as OutputError
    from veridyn.identify.estimators.prior import Prior as Prior
    from veridyn.identify.estimators.robust import Robust as Robust
    from veridyn.identify.estimators.trust import slow_and_fast as slow_and_fast
    from veridyn.identify.estimators.trust import trust_prior as trust_prior
    from veridyn.identify.estimators.weighted import OLS as OLS
    from veridyn.identify.estimators.weighted import WLS as WLS
    from veridyn.identify.excitation.design import design_excitation as design_excitation
    from veridyn.identify.excitation.limits import Clearance as Clearance
    from veridyn.identify.excitation.limits import Limits as Limits
    from veridyn.identify.excitation.plan import ExcitationPlan as ExcitationPlan
    from veridyn.identify.excitation.plan import Noise as Noise
    from veridyn.identify.excitation.shape import Fourier as Fourier
    from veridyn.identify.excitation.shape import Spline as Spline
    from veridyn.identify.explain import explain as explain
    from veridyn.identify.laboratory import Trial as Trial
    from veridyn.identify.laboratory import diagnose as diagnose
    from veridyn.identify.logged import motion as motion
    from veridyn.identify.observation import Sampling as Sampling
    from veridyn.identify.observation import observation as observation
    from veridyn.identify.payload import carrying as carrying
    from veridyn.identify.payload import with_payload as with_payload
    from veridyn.identify.replay import replay as replay
    from veridyn.identify.result import Acceptance as Acceptance
    from veridyn.identify.result import Fit as Fit
    from veridyn.identify.selection import remedies as remedies
    from veridyn.identify.selection import select_motions as select_motions
    from veridyn.identify.stribeck import stribeck_speeds as stribeck_speeds
    from veridyn.identify.validate import validate as validate
    from veridyn.mechanics.codegen import c_source as c_source
    from veridyn.mechanics.contact import plate_wrench as plate_wrench
    from veridyn.mechanics.contact import pressure_wrench as pressure_wrench
    from veridyn.mechanics.contact import sensor_wrench as sensor_wrench
    from veridyn.mechanics.contact import with_contacts as with_contacts
    from veridyn.mechanics.derivatives import forward_derivatives as forward_derivatives
    from veridyn.mechanics.derivatives import inverse_derivatives as inverse_derivatives
    from veridyn.mechanics.energy import energy as energy
    from veridyn.mechanics.engine import Buffer as Buffer
    from veridyn.mechanics.forward import forward_dynamics as forward_dynamics
    from veridyn.mechanics.forward import mass_matrix as mass_matrix
    from veridyn.mechanics.integrate import BaseState as BaseState
    from veridyn.mechanics.integrate import Inputs as Inputs
    from veridyn.mechanics.integrate import Method as Method
    from veridyn.mechanics.integrate import integrate as integrate
    from veridyn.mechanics.inverse import inverse_dynamics as inverse_dynamics
    from veridyn.mechanics.kinematics import body_motion as body_motion
    from veridyn.mechanics.kinematics import body_pose as body_pose
    from veridyn.mechanics.kinematics import jacobian as jacobian
    from veridyn.mechanics.loops.closure import close as close
    from veridyn.mechanics.loops.closure import closed_home as closed_home
    from veridyn.mechanics.loops.closure import closed_motion as closed_motion
    from veridyn.mechanics.loops.projection import loop_jacobian as loop_jacobian
    from veridyn.mechanics.regressor import regressor as regressor
    from veridyn.model.actuators import actuators as actuators
    from veridyn.model.elements import Element as Element
    from veridyn.model.elements import asymmetric as asymmetric
    from veridyn.model.elements import coulomb as coulomb
    from veridyn.model.elements import damper as damper
    from veridyn.model.elements import drag as drag
    from veridyn.model.elements import drive_gain as drive_gain
    from veridyn.model.elements import motor_inertia as motor_inertia
    from veridyn.model.elements import offset as offset
    from veridyn.model.elements import spring as spring
    from veridyn.model.elements import stribeck as stribeck
    from veridyn.model.experiment import Channel as Channel
    from veridyn.model.experiment import Experiment as Experiment
    from veridyn.model.joint import Body as Body
    from veridyn.model.link import Joint as Joint
    from veridyn.model.link import Link as Link
    from veridyn.model.load import Drive as Drive
    from veridyn.model.load import Force as Force
    from veridyn.model.load import Torque as Torque
    from veridyn.model.loop import Assembly as Assembly
    from veridyn.model.loop import Attachment as Attachment
    from veridyn.model.loop import Loop as Loop
    from veridyn.model.machine import Machine as Machine
    from veridyn.model.motion import BaseMotion as BaseMotion
    from veridyn.model.motion import Motion as Motion
    from veridyn.model.natural import Mechanism as Mechanism
    from veridyn.model.parameters import ParameterSet as ParameterSet
    from veridyn.model.parameters import Tie as Tie
    from veridyn.model.place import Marker as Marker
    from veridyn.model.pose import Pose as Pose
    from veridyn.model.rebase import rebased as rebased
    from veridyn.model.sensor import Sensor as Sensor
    from veridyn.model.transmission import Transmission as Transmission
    from veridyn.model.tree import Tree as Tree
    from veridyn.model.uncertainty import Uncertainty as Uncertainty
    from veridyn.model.virtual_base import on_six_joints as on_six_joints
    from veridyn.model.weld import welded as welded
    from veridyn.observe.ekf import EKF as EKF
    from veridyn.observe.methods import ErrorEKF as ErrorEKF
    from veridyn.observe.methods import ForceErrorEKF as ForceErrorEKF
    from veridyn.observe.methods import LinearKF as LinearKF
    from veridyn.observe.methods import Smoother as Smoother
    from veridyn.observe.observe import observe as observe
    from veridyn.observe.observer import Observer as Observer
    from veridyn.observe.ukf import UKF as UKF
    from veridyn.observe.unsure import Unsure as Unsure
    from veridyn.observe.virtual import Virtual as Virtual
    from veridyn.signals.base_motion import moved_to_base as moved_to_base
    from veridyn.signals.base_motion import pose_at as pose_at
    from veridyn.signals.base_motion import smoothed_pose as smoothed_pose
    from veridyn.signals.butterworth import Butterworth as Butterworth
    from veridyn.signals.butterworth import zero_phase as zero_phase
    from veridyn.signals.frequency import averaged as averaged
    from veridyn.signals.markers import fit_markers as fit_markers
    from veridyn.signals.markers import marker_cluster as marker_cluster
    from veridyn.signals.mend import Mending as Mending
    from veridyn.signals.mend import mended as mended
    from veridyn.signals.motion import Signals as Signals
    from veridyn.signals.periodic_filters import dft_filter as dft_filter
    from veridyn.signals.periodic_filters import fourier_fit as fourier_fit
    from veridyn.signals.quality import inspect as inspect
    from veridyn.signals.resample import resample as resample
    from veridyn.signals.sampled import SampledTrajectory as SampledTrajectory
    from veridyn.signals.splines import SplineTrajectory as SplineTrajectory
    from veridyn.signals.trajectory import FourierTrajectory as FourierTrajectory
    from veridyn.signals.trajectory import JointLimits as JointLimits
    from veridyn.simulate.imperfection import Imperfection as Imperfection
    from veridyn.simulate.imperfection import Imperfections as Imperfections
    from veridyn.simulate.manoeuvre import Driven as Driven
    from veridyn.simulate.manoeuvre import Prescribed as Prescribed
    from veridyn.simulate.manoeuvre import Tracking as Tracking
    from veridyn.simulate.simulator import simulate as simulate
    from veridyn.spatial.inertia import from_centre as from_centre
    from veridyn.spatial.transforms import MDH as MDH
    from veridyn.spatial.transforms import Placement as Placement
    from veridyn.studies.config.study import load_study as load_study
    from veridyn.studies.identify_run import run_identify as run_identify
