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
        "DataError",
        "DataWarning",
        "FileError",
        "IdentificationError",
        "IdentificationWarning",
        "ModelError",
        "SimulationError",
        "VeridynError",
    ),
    "veridyn.spatial.transforms": ("MDH", "Placement"),
    "veridyn.spatial.inertia": ("from_centre",),
    "veridyn.model.joint": ("Body",),
    "veridyn.model.tree": ("Tree",),
    "veridyn.model.virtual_base": ("on_six_joints",),
    "veridyn.model.elements": (
        "Element",
        "coulomb",
        "damper",
        "drag",
        "drive_gain",
        "motor_inertia",
        "offset",
        "spring",
    ),
    "veridyn.model.parameters": ("ParameterSet", "Tie"),
    "veridyn.model.transmission": ("Transmission",),
    "veridyn.model.motion": ("BaseMotion", "Motion"),
    "veridyn.model.experiment": ("Channel", "Experiment"),
    "veridyn.mechanics.inverse": ("inverse_dynamics",),
    "veridyn.mechanics.regressor": ("regressor",),
    "veridyn.mechanics.forward": ("forward_dynamics", "mass_matrix"),
    "veridyn.mechanics.kinematics": ("body_motion", "body_pose", "jacobian"),
    "veridyn.mechanics.codegen": ("c_source",),
    "veridyn.mechanics.derivatives": ("forward_derivatives", "inverse_derivatives"),
    "veridyn.mechanics.energy": ("energy",),
    "veridyn.mechanics.engine": ("Buffer",),
    "veridyn.mechanics.integrate": ("BaseState", "Inputs", "Method", "integrate"),
    "veridyn.signals.butterworth": ("Butterworth", "zero_phase"),
    "veridyn.signals.motion": ("Signals", "motion"),
    "veridyn.signals.quality": ("inspect",),
    "veridyn.signals.resample": ("resample",),
    "veridyn.signals.trajectory": ("FourierTrajectory", "JointLimits"),
    "veridyn.simulate.imperfection": ("Sensor", "Sensors"),
    "veridyn.simulate.manoeuvre": ("Driven", "Tracking"),
    "veridyn.identify.base": ("base_parameters",),
    "veridyn.identify.essential": ("essential",),
    "veridyn.identify.coloured": ("Hac",),
    "veridyn.identify.explain": ("explain",),
    "veridyn.identify.feasible": ("Consistent",),
    "veridyn.identify.observation": ("Sampling", "observation"),
    "veridyn.identify.prior": ("Prior",),
    "veridyn.identify.result": ("Acceptance", "Fit"),
    "veridyn.identify.robust": ("Robust",),
    "veridyn.identify.validate": ("validate",),
    "veridyn.files.archive": ("load", "save"),
    "veridyn.files.native": ("load_model", "save_model"),
    "veridyn.files.table": ("load_log", "save_log"),
    "veridyn.files.urdf": ("load_urdf", "urdf_limits"),
    "veridyn.files.urdf_write": ("save_urdf",),
}
_VERBS = ("identify", "simulate")  # folders that can be called
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
    from veridyn.errors import DataError as DataError
    from veridyn.errors import DataWarning as DataWarning
    from veridyn.errors import FileError as FileError
    from veridyn.errors import IdentificationError as IdentificationError
    from veridyn.errors import IdentificationWarning as IdentificationWarning
    from veridyn.errors import ModelError as ModelError
    from veridyn.errors import SimulationError as SimulationError
    from veridyn.errors import VeridynError as VeridynError
    from veridyn.files.archive import load as load
    from veridyn.files.archive import save as save
    from veridyn.files.native import load_model as load_model
    from veridyn.files.native import save_model as save_model
    from veridyn.files.table import load_log as load_log
    from veridyn.files.table import save_log as save_log
    from veridyn.files.urdf import load_urdf as load_urdf
    from veridyn.files.urdf import urdf_limits as urdf_limits
    from veridyn.files.urdf_write import save_urdf as save_urdf
    from veridyn.identify.base import base_parameters as base_parameters
    from veridyn.identify.coloured import Hac as Hac
    from veridyn.identify.essential import essential as essential
    from veridyn.identify.estimate import identify as identify
    from veridyn.identify.explain import explain as explain
    from veridyn.identify.feasible import Consistent as Consistent
    from veridyn.identify.observation import Sampling as Sampling
    from veridyn.identify.observation import observation as observation
    from veridyn.identify.prior import Prior as Prior
    from veridyn.identify.result import Acceptance as Acceptance
    from veridyn.identify.result import Fit as Fit
    from veridyn.identify.robust import Robust as Robust
    from veridyn.identify.validate import validate as validate
    from veridyn.mechanics.codegen import c_source as c_source
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
    from veridyn.mechanics.regressor import regressor as regressor
    from veridyn.model.elements import Element as Element
    from veridyn.model.elements import coulomb as coulomb
    from veridyn.model.elements import damper as damper
    from veridyn.model.elements import drag as drag
    from veridyn.model.elements import drive_gain as drive_gain
    from veridyn.model.elements import motor_inertia as motor_inertia
    from veridyn.model.elements import offset as offset
    from veridyn.model.elements import spring as spring
    from veridyn.model.experiment import Channel as Channel
    from veridyn.model.experiment import Experiment as Experiment
    from veridyn.model.joint import Body as Body
    from veridyn.model.motion import BaseMotion as BaseMotion
    from veridyn.model.motion import Motion as Motion
    from veridyn.model.parameters import ParameterSet as ParameterSet
    from veridyn.model.parameters import Tie as Tie
    from veridyn.model.transmission import Transmission as Transmission
    from veridyn.model.tree import Tree as Tree
    from veridyn.model.virtual_base import on_six_joints as on_six_joints
    from veridyn.signals.butterworth import Butterworth as Butterworth
    from veridyn.signals.butterworth import zero_phase as zero_phase
    from veridyn.signals.motion import Signals as Signals
    from veridyn.signals.motion import motion as motion
    from veridyn.signals.quality import inspect as inspect
    from veridyn.signals.resample import resample as resample
    from veridyn.signals.trajectory import FourierTrajectory as FourierTrajectory
    from veridyn.signals.trajectory import JointLimits as JointLimits
    from veridyn.simulate.imperfection import Sensor as Sensor
    from veridyn.simulate.imperfection import Sensors as Sensors
    from veridyn.simulate.manoeuvre import Driven as Driven
    from veridyn.simulate.manoeuvre import Tracking as Tracking
    from veridyn.simulate.simulator import simulate as simulate
    from veridyn.spatial.inertia import from_centre as from_centre
    from veridyn.spatial.transforms import MDH as MDH
    from veridyn.spatial.transforms import Placement as Placement
