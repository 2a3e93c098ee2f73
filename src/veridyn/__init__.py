"""veridyn identifies the parameters of multibody machines from logs, and runs the identified model as an observer.

The verbs, the main types, the methods, the results and the errors are names of this package, listed in its stub `__init__.pyi`; what is
needed less often has a place in a module: :mod:`veridyn.model`, `elements`, `spatial`, `signals`, `dynamics`, `gpu`, `identification`,
`simulation`, `observers`, `files`, `studies` and `errors`. Each name is imported when it is first used.
"""

from veridyn.lazy import attach, import_module
from veridyn.verbs import keep_verbs
from veridyn.version import __version__ as __version__

VERBS = ("identify", "observe", "simulate")  # functions with a folder of the same name
# Names of 0.1 that have another place now; they work until the next release.
MOVED = {
    "dynamics": """actuators BaseState body_motion body_pose Buffer c_source close closed_home closed_motion energy forward_derivatives
        Inputs integrate inverse_derivatives jacobian loop_jacobian mass_matrix Method plate_wrench pressure_wrench sensor_wrench
        with_contacts""",
    "elements": "asymmetric coulomb damper drag drive_gain motor_inertia offset spring stribeck",
    "errors": "CacheWarning DataWarning IdentificationWarning ModelWarning",
    "files": """enu_of geodetic_of GeoOrigin load_osim load_storage load_urdf local_position save_log save_urdf
        urdf_limits""",
    "identification": """Acceptance carrying Clearance diagnose encoder_offsets essential explain Hac Noise NoiseModel observation
        remedies replay Sampling select_motions slow_and_fast stribeck_speeds Trial trust_prior with_payload""",
    "model": """Assembly Attachment Body Channel Drive Force Loop Mechanism on_six_joints ParameterSet Pose rebased Tie Torque
        Transmission Tree Uncertainty welded""",
    "observers": "Virtual",
    "signals": """averaged Butterworth dft_filter fit_markers fourier_fit FourierTrajectory inspect JointLimits marker_cluster mended
        Mending moved_to_base pose_at SampledTrajectory smoothed_pose SplineTrajectory zero_phase""",
    "simulation": "Imperfection Imperfections",
    "spatial": "from_centre MDH Placement",
    "studies": "load_study run_identify",
}
RENAMED = {"Unsure": "ProcessNoise"}  # these too
_MOVED_TO = {name: module for module, names in MOVED.items() for name in names.split()}
_find, __dir__ = attach(__name__)
_verb = keep_verbs(__name__, VERBS)


def __getattr__(name: str) -> object:
    if name in VERBS:
        return _verb(name)
    if name in RENAMED:
        return _renamed(name, RENAMED[name])
    if name in _MOVED_TO:
        return _moved(name, _MOVED_TO[name])
    return _find(name)


def _renamed(name: str, now: str) -> object:
    import warnings

    value = _find(now)
    text = f"veridyn.{name} is veridyn.{now} now; the old name works until the next release."
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    return value


def _moved(name: str, module: str) -> object:
    import warnings

    value = getattr(import_module(f"veridyn.{module}"), name)  # first: libraries change the filters of warnings
    text = f"veridyn.{name} is veridyn.{module}.{name} now; the old name works until the next release."
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    return value
