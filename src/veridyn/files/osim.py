"""OpenSim models: a musculoskeletal model as a machine on a free base, with the splines of its joints; muscles and geometry are not read.

Each joint of OpenSim becomes a chain of simple joints: one for every axis of its transform that moves, in OpenSim's order
(translations, then rotations about body-fixed axes). An axis is driven by a function of a coordinate: a line, or a spline such as
those of a knee. So the machine has more coordinates than the model; :meth:`OsimModel.drive` makes them. The body that a joint connects
with the ground is the free base. Storages (.sto, .mot) are tables behind a head that ends with 'endheader'.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from scipy.interpolate import CubicSpline

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, FileError, ModelError, did_you_mean, within
from veridyn.files.expressions import MAX_NUMBER
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Pose
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement, rot_x, rot_y, rot_z, rotation_to_axis

FUNCTIONS = ("Constant", "LinearFunction", "MultiplierFunction", "NaturalCubicSpline", "SimmSpline")
DEEPEST = 16  # functions in functions
Frame = tuple[Array, Array]  # rotation and position
ROTATIONS = ("rotation1", "rotation2", "rotation3")
TRANSLATIONS = ("translation1", "translation2", "translation3")
MOST_FAULTS = 20  # listed of one storage


def numbers(parent: ElementTree.Element, tag: str, default: str, count: int | None, where: str) -> Array:
    """The numbers of a child element, `default` where there is none; `count` of them, or any number."""
    text = parent.findtext(tag, default) or ""
    words = text.split()
    values = [_number(word) for word in words]
    wrong = [word for word, value in zip(words, values, strict=True) if value is None]
    if wrong or (count is not None and len(words) != count):
        one = "number" if count == 1 else "numbers"
        what = "it has another number of entries." if not wrong else f"it is not {'a ' * (count == 1)}{one}."
        expected = f"{'' if count is None else f'{count} '}finite {one}, at most {MAX_NUMBER:g}"
        found = f"'{wrong[0][:40]}'" if wrong else f"{len(words)}"
        raise FileError(
            what, where=within(where, tag), expected=expected, found=found, hint="Look at this element of the file."
        )
    return np.array([v for v in values if v is not None], dtype=np.float64)


def number(parent: ElementTree.Element, tag: str, default: str, where: str) -> float:
    """One number of a child element."""
    return float(numbers(parent, tag, default, 1, where)[0])


def function_of(f: ElementTree.Element, where: str, depth: int = 0) -> Callable[[Array], Array]:
    """What an element computes of a coordinate: a constant, a line, a spline, or a multiple of one of these."""
    if f.tag == "MultiplierFunction":
        scale, inside = number(f, "scale", "1", where), f.find("function/*")
        if inside is None or depth == DEEPEST:
            what = "a multiple of no function."
            raise FileError(what, where=where, expected="one element in 'function'", found="none or too many levels")
        inner = function_of(inside, where, depth + 1)
        return lambda x: scale * inner(x)
    if f.tag == "Constant":
        value = number(f, "value", "0", where)
        return lambda x: np.full(len(x), value)
    if f.tag == "LinearFunction":
        a, b = numbers(f, "coefficients", "1 0", 2, where)
        return lambda x: a * x + b
    if f.tag in ("SimmSpline", "NaturalCubicSpline"):
        x, y = numbers(f, "x", "", None, where), numbers(f, "y", "", None, where)
        if len(x) != len(y) or len(x) < 2 or not (np.diff(x) > 0.0).all():
            expected = "two or more increasing x, and as many y"
            found = f"{len(x)} x and {len(y)} y" + ("" if len(x) != len(y) or len(x) < 2 else ", x not increasing")
            raise FileError("its points make no spline.", where=within(where, f.tag), expected=expected, found=found)
        return CubicSpline(x, y, bc_type="natural" if f.tag == "NaturalCubicSpline" else "not-a-knot")
    raise ModelError(f"functions of kind '{f.tag}' are not read.", where=where, expected=", ".join(FUNCTIONS))


def is_identity(f: ElementTree.Element, where: str) -> bool:
    """Whether a function gives back what it is given."""
    return f.tag == "LinearFunction" and numbers(f, "coefficients", "1 0", 2, where).tolist() == [1.0, 0.0]


def _number(word: str) -> float | None:
    try:
        value = float(word) if "_" not in word else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= MAX_NUMBER else None


@dataclass(frozen=True, eq=False)
class OsimDrive:
    """One axis that moves: `value` of the coordinate `of`, about or along `axis` in its frame."""

    name: str
    of: str
    turning: bool
    axis: Array
    value: Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class OsimModel:
    """`machine` has a free base; `drives` are its coordinates in order, `root` the axes between ground and base.

    `couplers`: coordinates that follow others.
    """

    machine: Machine
    drives: tuple[OsimDrive, ...]
    root: tuple[OsimDrive, ...]
    couplers: Mapping[str, tuple[str, Callable[[Array], Array]]]
    defaults: Mapping[str, float]

    def drive(self, t: Array, values: Mapping[str, Array]) -> tuple[Array, Pose]:
        """q (N, n) of the machine and the base's pose, from the model's coordinates (N,) by name, rad and m.

        A coordinate without values follows its coupler, or stays at its default.
        """
        known = {d.of for d in (*self.drives, *self.root)} | set(self.couplers)
        strange = [name for name in values if name not in known]
        if strange:
            hint = did_you_mean(strange[0], sorted(known))
            raise DataError(f"'{strange[0]}' is no coordinate.", where=self.machine.name, hint=hint)
        at = {n: np.asarray(v, dtype=np.float64) for n, v in values.items()}
        for name, (source, function) in self.couplers.items():
            if name not in at and source in at:
                at[name] = function(at[source])
        every = {n: at.get(n, np.full(len(t), self.defaults.get(n, 0.0))) for n in known}
        q = np.stack([d.value(every[d.of]) for d in self.drives], axis=1)
        R, p = np.tile(np.eye(3), (len(t), 1, 1)), np.zeros((len(t), 3))
        for d in self.root:
            value = d.value(every[d.of])
            if d.turning:
                R = R @ _about(d.axis, value)
            else:
                p = p + value[:, None] * d.axis
        return q, Pose(t, R, p)


@checked
def load_osim(path: str | os.PathLike[str]) -> OsimModel:
    """Read bodies, joints and coupled coordinates of an OpenSim 4 model."""
    file = Path(path)
    try:
        model = ElementTree.parse(file).getroot().find("Model")
    except OSError as error:
        raise FileError("it cannot be read.", where=str(file), found=error.strerror or str(error)) from error
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        hint = "Is it complete, and the right one? Text must be in the encoding that its first line names."
        raise FileError("it is no XML.", where=str(file), found=str(error), hint=hint) from error
    if model is None:
        raise FileError("it holds no OpenSim model.", where=str(file), expected="an element 'Model'")
    return _Reader(model, file.name).model()


class _Reader:
    def __init__(self, model: ElementTree.Element, source: str) -> None:
        self.source, self.root = source, model
        self.name = model.get("name", source)
        self.bodies = {str(b.get("name")): b for b in model.iterfind("BodySet/objects/Body")}
        self.joints = list(model.iterfind("JointSet/objects/*"))
        self.gravity = numbers(model, "gravity", "0 -9.80665 0", 3, source)

    def model(self) -> OsimModel:
        by_child = {self.frame(j, "child")[0]: j for j in self.joints}
        strange = [b for b in by_child if b not in self.bodies]
        if strange or len(by_child) != len(self.joints):
            what = "each joint has one body of its own at its end."
            found = f"joints to {', '.join(strange)}" if strange else f"{len(by_child)} bodies"
            hint = did_you_mean(strange[0], list(self.bodies)) if strange else ""
            wanted = f"{len(self.joints)} joints with as many bodies"
            raise ModelError(what, where=self.source, expected=wanted, found=found, hint=hint)
        missing = [b for b in self.bodies if b not in by_child]
        bases = [b for b, j in by_child.items() if self.frame(j, "parent")[0] == "ground"]
        if missing or len(bases) != 1:
            expected = "one joint for each body, and one of them to the ground"
            found = f"no joint: {', '.join(missing) or 'none'}; on the ground: {', '.join(bases) or 'none'}"
            raise ModelError("it is no tree with one base.", where=self.source, expected=expected, found=found)
        base = bases[0]
        made = [Body(base, None, "fixed", Placement())]
        drives: list[OsimDrive] = []
        done, waiting = {base}, [b for b in by_child if b != base]
        while waiting:
            ready = [b for b in waiting if self.frame(by_child[b], "parent")[0] in done]
            if not ready:
                raise ModelError("its joints form a loop.", where=self.source, found=", ".join(waiting))
            for body in ready:
                chain, moving = self.chain(by_child[body], body)
                made += chain
                drives += moving
                done.add(body)
                waiting.remove(body)
        inertia = {name: self.inertia(b) for name, b in self.bodies.items()}
        machine = Machine.of_bodies(made, name=self.name, base="free", gravity=self.gravity, inertia=inertia)
        rank = {c: k for k, c in enumerate(machine.coordinates)}
        drives.sort(key=lambda d: rank[d.name])
        root = [d for d, _ in self.axes(by_child[base]) if d is not None]
        return OsimModel(machine, tuple(drives), tuple(root), self.couplers(), self.defaults())

    def inertia(self, body: ElementTree.Element) -> Array:
        where = f"{self.source}, body '{body.get('name')}'"
        xx, yy, zz, xy, xz, yz = numbers(body, "inertia", "0 0 0 0 0 0", 6, where)
        centre = numbers(body, "mass_center", "0 0 0", 3, where)
        return from_centre(number(body, "mass", "0", where), centre, (xx, xy, xz, yy, yz, zz))

    def frame(self, joint: ElementTree.Element, which: str) -> tuple[str, Frame]:
        """The body (or 'ground') that a joint's parent or child frame belongs to, and where it is there."""
        name = str(joint.findtext(f"socket_{which}_frame"))
        here = {str(f.get("name")): f for f in joint.iterfind("frames/*")}
        if name in here:
            frame = here[name]
            where = f"{self.source}, joint '{joint.get('name')}', frame '{name}'"
            a, b, c = numbers(frame, "orientation", "0 0 0", 3, where)
            place = (rot_x(a) @ rot_y(b) @ rot_z(c), numbers(frame, "translation", "0 0 0", 3, where))
            name = str(frame.findtext("socket_parent"))
        else:
            place = (np.eye(3), np.zeros(3))
        return name.rsplit("/", 1)[-1], place

    def chain(self, joint: ElementTree.Element, body: str) -> tuple[list[Body], list[OsimDrive]]:
        """A joint as simple joints in a row, and the body at its end."""
        before, (R, p) = self.frame(joint, "parent")
        made: list[Body] = []
        moving: list[OsimDrive] = []
        for drive, (A, shift) in self.axes(joint):
            R, p = R @ A, p + R @ shift
            if drive is None:
                continue
            turn = rotation_to_axis(drive.axis)
            kind = "turning" if drive.turning else "sliding"
            virtual = f"{body} {drive.name}"
            made.append(Body(virtual, before, kind, Placement(R @ turn, p), coordinate=drive.name, real=False))
            moving.append(drive)
            before, R, p = virtual, turn.T, np.zeros(3)
        Rc, pc = self.frame(joint, "child")[1]
        made.append(Body(body, before, "fixed", Placement(R @ Rc.T, p - R @ Rc.T @ pc)))
        return made, moving

    def axes(self, joint: ElementTree.Element) -> list[tuple[OsimDrive | None, Frame]]:
        """For each axis in order: what drives it, and the constant part of its transform."""
        name, kind = str(joint.get("name")), joint.tag
        owned = [str(c.get("name") or "") for c in joint.iterfind("coordinates/Coordinate")]
        where = f"{self.source}, joint '{name}'"
        if "" in owned:
            raise ModelError("a coordinate has no name.", where=where, expected="a name of its own")
        still: Frame = (np.eye(3), np.zeros(3))
        plain = {"PinJoint": ((0.0, 0.0, 1.0),), "UniversalJoint": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), "WeldJoint": ()}
        if kind in plain:
            if len(owned) != len(plain[kind]):
                expected = f"{len(plain[kind])} for a {kind}"
                raise ModelError(
                    "it has another number of coordinates.", where=where, expected=expected, found=f"{len(owned)}"
                )
            return [
                (OsimDrive(c, c, True, np.array(axis), lambda x: x), still)
                for c, axis in zip(owned, plain[kind], strict=True)
            ]
        transform = joint.find("SpatialTransform")
        if kind != "CustomJoint" or transform is None:
            expected = "CustomJoint, PinJoint, UniversalJoint or WeldJoint"
            raise ModelError(f"joints of kind '{kind}' are not read.", where=where, expected=expected)
        by_name = {str(a.get("name")): a for a in transform.iterfind("TransformAxis")}
        out: list[tuple[OsimDrive | None, Frame]] = []
        for label in (*TRANSLATIONS, *ROTATIONS):
            here = f"{where}, axis '{label}'"
            if label not in by_name:
                expected = ", ".join((*ROTATIONS, *TRANSLATIONS))
                found = ", ".join(by_name) or "none"
                raise ModelError(
                    "the axis is missing.", where=here, expected=expected, found=found, hint="The file may be cut off."
                )
            axis = numbers(by_name[label], "axis", "0 0 1", 3, here)
            if not axis.any():
                raise ModelError(
                    "the axis has no direction.", where=here, expected="a vector that is not zero", found="0 0 0"
                )
            axis = axis / np.linalg.norm(axis)
            of = (by_name[label].findtext("coordinates") or "").strip()
            if len(of.split()) > 1:
                raise ModelError(
                    "it moves with several coordinates.", where=here, expected="one coordinate, or none", found=of
                )
            function = next((f for f in by_name[label] if f.tag not in ("coordinates", "axis")), None)
            if function is None:
                raise ModelError("the axis has no function.", where=here, expected=", ".join(FUNCTIONS), found="none")
            value = function_of(function, here)
            turning = label in ROTATIONS
            if of:
                own = of if is_identity(function, here) else f"{name} {label}"
                out.append((OsimDrive(own, of, turning, axis, value), still))
            else:
                size = value(np.zeros(1))[0]
                out.append(
                    (None, (_about(axis, np.array([size]))[0], np.zeros(3)) if turning else (np.eye(3), size * axis))
                )
        return out

    def couplers(self) -> dict[str, tuple[str, Callable[[Array], Array]]]:
        out = {}
        for c in self.root.iterfind("ConstraintSet/objects/CoordinateCouplerConstraint"):
            where = f"{self.source}, coupler '{c.get('name')}'"
            function = c.find("coupled_coordinates_function/*")
            words = [
                (c.findtext(tag) or "").split() for tag in ("independent_coordinate_names", "dependent_coordinate_name")
            ]
            if function is None or [len(w) for w in words] != [1, 1]:
                expected = "coupled_coordinates_function, independent_coordinate_names, dependent_coordinate_name"
                found = f"{'no' if function is None else 'a'} function, {words[0]} and {words[1]}"
                raise ModelError(
                    "it does not make one coordinate follow another.", where=where, expected=expected, found=found
                )
            (source,), (follower,) = words
            out[follower] = (source, function_of(function, where))
        return out

    def defaults(self) -> dict[str, float]:
        every = [c for j in self.joints for c in j.iterfind("coordinates/Coordinate")]
        where = f"{self.source}, coordinate"
        return {str(c.get("name")): number(c, "default_value", "0", f"{where} '{c.get('name')}'") for c in every}


def _about(axis: Array, angle: Array) -> Array:
    """Rotations (N, 3, 3) about a unit axis (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle)[:, None, None] * K + (1.0 - np.cos(angle))[:, None, None] * (K @ K)


@checked
def load_storage(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Columns of an OpenSim storage (.sto, .mot) by name, as they stand: angles in degrees where its head says inDegrees=yes."""
    file = Path(path)
    try:
        lines = file.read_bytes().decode("utf-8-sig").splitlines()
    except OSError as error:
        raise FileError("it cannot be read.", where=str(file), found=error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found, hint = f"the byte {error.object[error.start]:#04x}", "Save it as UTF-8."
        raise FileError(Fault("it is not text in UTF-8.", str(file), found=found, hint=hint, line=line)) from error
    ends = [k for k, line in enumerate(lines) if line.strip().lower() == "endheader"]
    if not ends or ends[0] + 2 > len(lines):
        raise FileError("it is no OpenSim storage.", where=str(file), expected="a head that ends with 'endheader'")
    names = lines[ends[0] + 1].split()
    rows = [line.split() for line in lines[ends[0] + 2 :] if line.strip()]
    faults, first = Faults(), ends[0] + 3
    for name in [n for n, times in Counter(names).items() if times > 1]:
        faults.add(f"two columns are called '{name}'.", where=str(file), line=first - 1)
    numbered = [first + k for k, line in enumerate(lines[ends[0] + 2 :]) if line.strip()]
    for line, row in zip(numbered, rows, strict=True):
        if len(faults.found) == MOST_FAULTS:
            break
        if len(row) != len(names):
            what = "a row has another number of cells than the head."
            faults.add(what, where=str(file), expected=f"{len(names)}", found=f"{len(row)}", line=line)
        elif wrong := [cell for cell in row if not _is_number(cell)]:
            faults.add("a cell is no number.", where=str(file), found=f"'{wrong[0][:40]}'", line=line)
    if not rows:
        faults.add("it holds no samples.", where=str(file), expected="rows of numbers below the names")
    faults.raise_if_any(FileError)
    table = np.array(rows, dtype=np.float64)
    return {name: table[:, k] for k, name in enumerate(names)}


def _is_number(cell: str) -> bool:
    """Whether a cell of a storage is a number; nan marks a sample that is missing."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
