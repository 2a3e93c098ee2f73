"""The keys of a model file of version 2: what the reader accepts, and what the schema is made of."""

from __future__ import annotations

from veridyn.model.controller import CONTROLLER_CONSTANTS
from veridyn.model.elements.kinds import CONSTANT_KEYS

FORMAT = 2
TOP = (
    *("veridyn", "name", "formulation", "dimension", "base", "gravity", "constants", "bodies", "joints"),
    *("points", "vectors", "coordinates", "racks"),
    *("elements", "loads", "sensors", "controllers", "parameters", "transmission", "assembly", "prescribed"),
    "car",
)
CAR_TOP = ("veridyn", "name", "formulation", "constants", "car", "sensors", "parameters")  # of a car of a few numbers
POINT_TOP = ("vectors", "coordinates", "racks")  # sections that need points
# Of a joint within its body.
SHORT = ("antecedent", "joint", "sigma", "actuated", "mu", "mdh", "placement", "coordinate", "ratio", "flexible")
BODY = ("name", *SHORT, "virtual", "label", "inertia", "frames", "capsules")
ANGLES_AND_LENGTHS = ("gamma", "b", "alpha", "d", "theta", "r")
ANGLES = ("gamma", "alpha", "theta")
ROTATIONS = ("rotation", "rpy", "axis")
CENTRAL = ("mass", "centre", "about_centre")
CAPSULE = ("start", "end", "radius")
FRAME = ("position", *ROTATIONS, "mdh")
END = ("body", *FRAME)
FLEXIBLE = ("stiffness", "damping", "inertia", "backlash", "hysteresis", "hysteresis_deflection")
JOINT = ("kind", "a", "b", "coordinates", "ratio", "actuated", "flexible", "cut", "length")
NUMBERS = ("value", "typical", *CONSTANT_KEYS)
ELEMENT = ("kind", "on", "between", "wheel", "name", "signal", "unit", "formula", "table", *NUMBERS)
TABLE = ("at", "values", "of", "shape", "outside")
LOADS = ("drive", "force", "torque")
LOAD = ("kind", "on", "value", "against")
SENSOR_NUMBERS = ("quantum", "rate", "delay", "bias", "bias_sigma", "bias_walk")
SENSOR = ("kind", "on", "to", "sigma", "axes", *SENSOR_NUMBERS, "turns")
CONTROLLER_WORDS = ("feedforward", "anti_windup", "motor")
CONTROLLER = ("kind", "on", "rate", *CONTROLLER_CONSTANTS, *CONTROLLER_WORDS, "current_rate", "sigma")
TRANSMISSION = ("motors", "joints", "matrix")
ASSEMBLY = ("hold", "guess")
PARAMETERS = ("known", "tied", "typical", "values", "sigma", "covariance", "drifts")
DRIFT = ("by", "within")
COVARIANCE = ("names", "matrix")
BASES = ("fixed", "free", "six_joints")
SIX_PREFIX = "base_"  # of the joints of a base on six joints
