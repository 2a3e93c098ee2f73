"""``python -m benchmarks.house --way identify|observe [--seed N] [--json]``: which files a machine and a log pass through.

A two-joint arm and a made log of 4 s are handed to ``vd.identify(machine, log)`` or ``vd.observe(machine, log)``, defaults everywhere, and
every Python call of the package is watched (``sys.setprofile``). The rule:

- An object *enters* a function when that very object is among the arguments of the call: by itself, or in a tuple, list or mapping that is
  an argument; a method is entered by its ``self``. A file of the package that has such a function is counted once.
- *Made of it* is what a call returns into which the object, or what is made of it, has entered: an instance of one of the package's
  classes. Arrays, numbers and texts are not followed, nor what lies in the fields of an object.
- An *upward call* is one by which the object enters a function of a higher floor than the package's function that calls it; wrappers count
  as what they are, functions of the file in which they stand. Floors are the layers of the import contract in pyproject.toml, and modules
  that have none are left out. A pair of caller and called function counts once, however often it occurs.

Two counts are printed for the machine and for the log: of the object alone, and with all that is made of it. The first is what is handed
down; the second shows how far what is made of it travels. The verb is run once before with other objects of the same content, so
that machine code and lazy imports are there: counts do not depend on what lies in the cache. Another checkout is counted by this rule with
``PYTHONPATH=OTHER/src python -m benchmarks.house``.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import inspect
import json
import sys
import threading
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import veridyn as vd
from veridyn.errors import VeridynWarning

PACKAGE = Path(vd.__file__).resolve().parent
CONTRACT = "Imports go down the layers only"
WAYS: tuple[str, ...] = ("identify", "observe")
STEP, SAMPLES = 0.005, 800  # s: a log of 4 s
ENCODER_NOISE, TORQUE_NOISE = 1e-4, 0.05  # rad, N*m


class Way:
    """The files and upward calls of one object; with `made`, of what is made of it as well."""

    def __init__(self, thing: object, made: bool) -> None:
        self._made = made
        self._followed: dict[int, object] = {id(thing): thing}  # an id stays that of its object while that is kept
        self._inside: set[int] = set()  # frames into which the object has entered
        self.files: set[str] = set()
        self.upward: list[str] = []

    def call(self, frame: FrameType, handed: Sequence[object]) -> None:
        if not any(id(x) in self._followed for x in handed):
            return
        if self._made:
            self._inside.add(id(frame))
        called = file_of(frame.f_code)
        self.files.add(called)
        caller = caller_of(frame)
        if caller is not None and is_upward(file_of(caller), called):
            line = f"{file_of(caller)} {caller.co_qualname} -> {called} {frame.f_code.co_qualname}"
            if line not in self.upward:
                self.upward.append(line)

    def end(self, frame: FrameType, result: object) -> None:
        if id(frame) in self._inside:
            self._inside.remove(id(frame))
            if type(result).__module__.split(".")[0] == PACKAGE.name:
                self._followed[id(result)] = result

    def counts(self) -> dict[str, Any]:
        return {"files": sorted(self.files), "upward": self.upward}


@cache
def file_of(code: CodeType) -> str:
    """The file of a function, within the package; empty for others."""
    place = code.co_filename
    return Path(place).relative_to(PACKAGE).as_posix() if place.startswith(f"{PACKAGE}{os.sep}") else ""


def caller_of(frame: FrameType) -> CodeType | None:
    """The nearest function of the package that waits for this call."""
    back = frame.f_back
    while back is not None and not file_of(back.f_code):
        back = back.f_back
    return None if back is None else back.f_code


def is_upward(caller: str, called: str) -> bool:
    below, above = (floors().get(name.split("/")[0].removesuffix(".py")) for name in (caller, called))
    return below is not None and above is not None and above > below


@cache
def floors() -> dict[str, int]:
    """The floor of each room and module, counted from below, by the import contract of the package's checkout."""
    settings = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (c for c in settings["tool"]["importlinter"]["contracts"] if c["name"] == CONTRACT)
    return {name.strip(): k for k, row in enumerate(reversed(contract["layers"])) for name in row.split("|")}


def arguments_of(frame: FrameType) -> Iterator[object]:
    """What a call was handed, with the members of tuples, lists and mappings."""
    code = frame.f_code
    starred = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + starred]:
        value = frame.f_locals.get(name)
        yield value
        if type(value) is tuple or type(value) is list:
            yield from value
        elif type(value) is dict:
            yield from value.values()


@contextmanager
def watched(ways: Sequence[Way]) -> Iterator[None]:
    """Calls of the package in this thread and in those that it starts are shown to `ways`."""

    def note(frame: FrameType, event: str, result: object) -> None:
        if event == "call" and file_of(frame.f_code):
            handed = list(arguments_of(frame))
            for way in ways:
                way.call(frame, handed)
        elif event == "return":
            for way in ways:
                way.end(frame, result)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(before)  # pyright: ignore[reportArgumentType]


def arm() -> vd.Machine:
    """Two turning joints, each with a damper, a measured torque and an encoder."""
    turned = vd.model.Body("1", placement=vd.spatial.MDH(alpha=np.pi / 2))
    bodies = [turned, vd.model.Body("2", "1", placement=vd.spatial.MDH(d=0.5))]
    inertia = {
        "1": vd.spatial.from_centre(4.0, [0.25, 0.0, 0.0], np.diag([0.01, 0.1, 0.1])),
        "2": vd.spatial.from_centre(2.0, [0.2, 0.0, 0.0], np.diag([0.01, 0.05, 0.05])),
    }
    dampers = [vd.elements.damper("q1", 0.8), vd.elements.damper("q2", 0.5)]
    encoders = [vd.Sensor(f"encoder{k}", "coordinate", f"q{k}", ENCODER_NOISE) for k in (1, 2)]
    return vd.Machine.of_bodies(bodies, name="arm", inertia=inertia, elements=dampers, sensors=encoders)


def log(way: str, seed: int) -> vd.Experiment:
    """Positions and torques of the arm on a periodic path, with noise; positions by the names that the verb reads."""
    rng = np.random.default_rng(seed)
    limits = vd.signals.JointLimits(*(np.full(2, x) for x in (-2.0, 2.0, 4.0, 15.0)))  # rad, rad/s, rad/s²
    t = np.asarray(STEP * np.arange(SAMPLES), dtype=np.float64)
    motion = vd.Motion(t, *vd.signals.FourierTrajectory.random(rng, limits, harmonics=4, frequency=0.5).at(t))
    q = motion.q + ENCODER_NOISE * rng.normal(size=motion.q.shape)
    torque = vd.inverse_dynamics(arm(), motion)
    torque = torque + TORQUE_NOISE * rng.normal(size=torque.shape)
    position = "q" if way == "identify" else "encoder"
    channels = [vd.model.Channel(f"{position}{k}", t, q[:, k - 1], "rad") for k in (1, 2)]
    channels += [vd.model.Channel(f"force.q{k}", t, torque[:, k - 1], "N*m") for k in (1, 2)]
    return vd.Experiment({c.name: c for c in channels}, "made.csv")


def counted(way: str, seed: int = 0) -> dict[str, dict[str, dict[str, Any]]]:
    """Files and upward calls of the machine and of the log: "alone", and "with what is made of it"."""
    verb: Callable[[vd.Machine, vd.Experiment], object] = {"identify": vd.identify, "observe": vd.observe}[way]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridynWarning)
        verb(arm(), log(way, seed))
        things = {"machine": arm(), "log": log(way, seed)}
        ways = {
            name: {"alone": Way(thing, made=False), "with what is made of it": Way(thing, made=True)}
            for name, thing in things.items()
        }
        with watched([w for pair in ways.values() for w in pair.values()]):
            verb(things["machine"], things["log"])
    return {name: {what: w.counts() for what, w in pair.items()} for name, pair in ways.items()}


def lines(way: str, counts: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    """The lists, and one line at the end with all counts."""
    for name, pair in counts.items():
        for what, found in pair.items():
            yield f"{way}, the {name} {what}: {len(found['files'])} files, {len(found['upward'])} upward calls"
            yield from (f"  {file}" for file in found["files"])
            yield from (f"  up: {line}" for line in found["upward"])
    yield f"{way} (files, upward calls): " + "; ".join(
        f"{name} {what} {len(found['files'])}, {len(found['upward'])}"
        for name, pair in counts.items()
        for what, found in pair.items()
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.house", description="Files that a machine and a log enter."
    )
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    counts = counted(given.way, given.seed)
    print(json.dumps(counts) if given.json else "\n".join(lines(given.way, counts)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
