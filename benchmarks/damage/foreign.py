"""Logs of machines of Pinocchio (:mod:`benchmarks.damage.world`) with damage, or with structure that their models lack.

Odd seeds are logs of the four-joint arm, even ones of the geared machine; gears can be wrong on the latter alone, and on the wrist. Each
log is handed to ``identify`` and nothing is set: signals, sampling, covariance and diagnosis are the defaults.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

import veridyn as vd
from benchmarks.damage.bench import Bench
from benchmarks.damage.kinds import DAMAGES, TURNED, Damage, Table, whole
from benchmarks.damage.structure import KINDS_BY_NAME, Joints, Structure, as_it_is
from benchmarks.damage.world import FREQUENCIES, World, machine_of, world
from benchmarks.damage.wrist import GEARS, coupling_reversed, gear_reversed, without_coupling
from benchmarks.foreign.motions import FOURIER
from veridyn.model.machine import Machine

FIXED = vd.Signals(lowpass=5.0 * FREQUENCIES[1], trim=1.0)  # near what is chosen by default for this motion
NEW_DAMAGES = ("drifting encoder", "torque in steps", "torque behind a low-pass", "positions swapped halfway")
TABLES = {d.name: d for d in DAMAGES}
FOREIGN_KINDS = (*KINDS_BY_NAME, *NEW_DAMAGES)
CLEAN_SUBJECTS = ("arm", "geared", "seven")  # in turn, where motions are named
WRIST_KINDS = (*(f"gear {k} reversed" for k in range(1, GEARS + 1)), "no coupling", "coupling reversed")
COUPLING_CAUSES = ("coupling", "sign")


def bench_of(w: World, machine: Machine, name: str, seed: int) -> Bench:
    """The log of a world, with a model."""
    return Bench(name, machine, w.log(), seed, w.log(quiet=True), fixed=FIXED)


def subject_of(seed: int, geared: bool = False) -> str:
    """The machine of a seed."""
    return "geared" if geared or seed % 2 == 0 else "arm"


def clean_bench(seed: int, subject: str = "", motion: str = FOURIER) -> Bench:
    """An undamaged log with the right model, of the machine of its seed unless another is named."""
    subject = subject or subject_of(seed)
    w = world(subject, seed, motion=motion)
    return bench_of(w, machine_of(subject), f"{subject} {seed}" + (f", {motion}" if motion != FOURIER else ""), seed)


def case(kind: str, seed: int) -> tuple[Bench, Damage]:
    """The log of a seed, and the damage or structure of that name to be put into it."""
    if kind in WRIST_KINDS:
        return _wrist_case(kind, seed)
    if kind in TABLES:
        return clean_bench(seed), TABLES[kind]
    structure = KINDS_BY_NAME[kind]
    subject = subject_of(seed, structure.geared)
    w, machine = world(subject, seed), machine_of(subject)
    among = range(len(w.subject.joints)) if structure.among is None else structure.among(machine)
    k = int(np.random.default_rng([seed, 3]).choice(among))
    return with_structure(structure, w, machine, (k,), f"{subject} {seed}", seed)


def with_structure(
    structure: Structure, w: World, machine: Machine, joints: Joints, name: str, seed: int
) -> tuple[Bench, Damage]:
    """A bench on which world and model agree, and the structure as a damage of it."""
    w, machine = structure.prepare(w, machine, joints)
    places = tuple(p for k in joints for p in w.places(k)) if structure.located else ()
    damage = Damage(
        structure.name,
        whole,
        structure.words,
        structure.sizes,
        causes=structure.causes,
        log=partial(_recorded, structure, w, joints),
        places=places,
    )
    if structure.model is not None:
        damage = replace(damage, machine=partial(_modelled, structure, joints[0]))
    return bench_of(w, machine, name, seed), damage


def _recorded(structure: Structure, w: World, joints: Joints, size: float, quiet: bool) -> Table:
    return structure.record(w, size, joints, quiet)


def _modelled(structure: Structure, joint: int, machine: Machine, _size: float) -> Machine:
    assert structure.model is not None
    return structure.model(machine, joint)


def _wrist_case(kind: str, seed: int) -> tuple[Bench, Damage]:
    """A file of the wrist with one gear, or the coupling, wrong; the coupling is that of motor 6, with joint 5."""
    k = int(kind.split()[1]) - 1 if kind.startswith("gear") else GEARS - 1
    model = {"no coupling": without_coupling, "coupling reversed": coupling_reversed}.get(kind)
    structure = Structure(
        kind,
        as_it_is,
        TURNED if model is None else COUPLING_CAUSES,
        ("other way", "gear sign", "wrong sign") if model is None else ("coupl",),
        model=gear_reversed if model is None else lambda machine, _k: model(machine),
    )
    joints = (k,) if model is None else (k, k - 1)
    return with_structure(structure, world("wrist", seed), machine_of("wrist"), joints, f"wrist {seed}", seed)
