"""The keys of a model file of version 2: what the reader accepts, and what the schema is made of."""

from __future__ import annotations

from veridyn.files.machine.native_bodies import KEYS as CARRIED_BODY
from veridyn.files.machine.native_bodies import ROTATIONS
from veridyn.files.machine.points import POINT_SECTIONS
from veridyn.model.element_kinds import CONSTANT_KEYS

FORMAT = 2
FORMATS = (1, FORMAT)
TOP = (
    *("veridyn", "name", "formulation", "dimension", "base", "gravity", "constants", "bodies", "joints"),
    *("points", "vectors", "coordinates", "racks"),
    *("elements", "loads", "sensors", "parameters", "transmission", "assembly", "prescribed"),
    "car",
)
CAR_TOP = ("veridyn", "name", "formulation", "constants", "car", "sensors", "parameters")  # of a car of a few numbers
POINT_TOP = ("vectors", "coordinates", "racks")  # sections that need points
SHORT = tuple(
    key for key in CARRIED_BODY if key not in ("name", "virtual", "label", "inertia")
)  # a joint within its body
BODY = (*CARRIED_BODY, "frames", "capsules")
CAPSULE = ("start", "end", "radius")
POINT_BODY = POINT_SECTIONS["bodies"][1]
FRAME = ("position", *ROTATIONS, "mdh")
END = ("body", *FRAME)
JOINT = ("kind", "a", "b", "coordinates", "ratio", "actuated", "cut", "length")
NUMBERS = ("value", "typical", *CONSTANT_KEYS)
ELEMENT = ("kind", "on", "between", "wheel", "name", "signal", "unit", "formula", "table", *NUMBERS)
TABLE = ("at", "values", "of", "shape", "outside")
LOADS = ("drive", "force", "torque")
LOAD = ("kind", "on", "value", "against")
SENSOR_NUMBERS = ("quantum", "rate", "delay", "bias", "bias_sigma", "bias_walk")
SENSOR = ("kind", "on", "to", "sigma", "axes", *SENSOR_NUMBERS, "turns")
TRANSMISSION = ("motors", "joints", "matrix")
ASSEMBLY = ("hold", "guess")
PARAMETERS = ("known", "tied", "typical", "values", "sigma", "covariance")
COVARIANCE = ("names", "matrix")
BASES = ("fixed", "free", "six_joints")
