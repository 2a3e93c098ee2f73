"""A car of a few numbers in a model file: the section ``car``, read and written.

    veridyn: 2
    formulation: single_track
    car:
      tyre: tanh
      mass: 982
      front: 1.33                                   # m from the centre of mass to the front axle
      rear: 1.07
      front_stiffness: {value: 15, sigma: 6}        # estimated, with a prior

A number is known; ``{value, sigma, lower, upper}`` is estimated, unless its sigma is 0. :data:`veridyn.model.car.TABLE` has every key.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from ruamel.yaml.nodes import MappingNode, Node

from veridyn.errors import At, ModelError, part_at, with_line
from veridyn.files.machine.keys import CAR_TOP, TOP
from veridyn.files.machine.parameters import ParameterSection, read_constants, read_parameters
from veridyn.files.machine.parts import Parts, Places
from veridyn.files.machine.write_parts import (
    drift_texts,
    flow,
    mapping_text,
    name_text,
    number_text,
    sensor_text,
    uncertainty_lines,
)
from veridyn.files.yaml_nodes import line_of
from veridyn.files.yaml_reader import Reader
from veridyn.model.car import SECTION, TABLE, CarDescription, car_parameters, check_car
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import USUAL_SENSORS, described_car

FORMULATION = "single_track"
PRIOR = ("value", "sigma", "lower", "upper")


def parse_car(root: MappingNode, source: str) -> Machine:
    """The car that the top mapping of a model file describes; every fault at once, by name and line."""
    read, lines = Reader(), dict[At, int]()
    top = read.mapping(root, "", TOP, required=("veridyn", SECTION))
    for key in top:
        if key not in CAR_TOP:
            hint = "Drop it, or describe bodies, joints and tyres in formulation: tree."
            read.fault(top[key], f"'{key}' does not belong to a car of a few numbers.", key, hint=hint)
    if "formulation" in top:
        chosen = read.text(top["formulation"], "formulation", "formulation")
        if chosen not in (None, FORMULATION):
            what = "a car of a few numbers has one formulation."
            read.fault(top["formulation"], what, "formulation", FORMULATION, f"{chosen}")
    if "constants" in top:
        read_constants(read, top["constants"])
    name = read.optional_text(top, "", "name") or Path(source).stem
    lines |= {(key,): line_of(node) for key, node in top.items()}
    car, sigma = _read_car(read, top[SECTION], lines) if SECTION in top else (CarDescription({}), {})
    sensors, found = _read_sensors(read, top)
    lines |= found
    own = car_parameters(car)
    priors = dict(zip(own.names, own.values.tolist(), strict=True))
    section = read_parameters(read, top.get("parameters"), priors)
    if sigma and section.uncertainty is not None:
        what = f"deviations stand here and with the parameters of the car ('{next(iter(sigma))}')."
        read.fault(top["parameters"], what, "parameters", hint="Give all of them in one of the two places.")
    if SECTION in top:
        read.faults.extend(with_line(fault, lines) for fault in check_car(car))
    if read.faults:
        raise ModelError(dict.fromkeys(sorted(read.faults.found, key=lambda fault: fault.line or 0)), source)
    try:
        return _with_section(described_car(name, car, sigma, sensors), section)
    except ModelError as error:
        raise ModelError([with_line(fault, lines) for fault in error.faults], source) from error


def _with_section(machine: Machine, section: ParameterSection) -> Machine:
    """The car with what the section ``parameters`` says; deviations of the section ``car`` stay."""
    known = section.uncertainty or machine.uncertainty
    changed = machine.with_parameters(section.applied(machine.parameters)) if section.changes else machine
    return changed.with_uncertainty(known)


def _read_car(read: Reader, node: Node, lines: dict[At, int]) -> tuple[CarDescription, dict[str, float]]:
    """The description, and the deviations of its parameters."""
    values, sigma, bounds, estimated = dict[str, float](), dict[str, float](), dict[str, tuple[float, float]](), []
    at, tyre = read.mapping(node, SECTION, ("tyre", *TABLE)), "tanh"
    for key, value in at.items():
        lines[SECTION, key] = line_of(value)
        where = part_at(SECTION, key)
        if key == "tyre":
            tyre = read.text(value, where, "tyre") or tyre
        elif isinstance(value, MappingNode):
            given = read.mapping(value, where, PRIOR, required=("value",))
            numbers = {part: read.number(n, where, part, fallback=TABLE[key].typical) for part, n in given.items()}
            values[key] = numbers.get("value", TABLE[key].typical)
            if numbers.get("sigma", 1.0) < 0.0:
                read.fault(given["sigma"], "sigma is below zero.", where, "zero or more", f"{numbers['sigma']:g}")
            if {"lower", "upper"} & {*numbers}:
                bounds[key] = (numbers.get("lower", -np.inf), numbers.get("upper", np.inf))
            if numbers.get("sigma") != 0.0:
                estimated.append(key)
                sigma |= {key: numbers["sigma"]} if "sigma" in numbers else {}
        else:
            values[key] = read.number(value, where, key, fallback=TABLE[key].typical)
    car = CarDescription(values, tyre, tuple(estimated), bounds)
    return car, {n: sigma[n] for n in car.estimated if n in sigma}


def _read_sensors(read: Reader, top: Mapping[str, Node]) -> tuple[tuple[Sensor, ...], dict[At, int]]:
    if "sensors" not in top:
        return USUAL_SENSORS, {}
    parts = Parts(Places(read, 2))
    return tuple(parts.sensors(top["sensors"])), parts.lines


def car_lines(machine: Machine) -> list[str]:
    """The sections ``car``, ``sensors`` and ``parameters`` of a car."""
    car, u = machine.car, machine.uncertainty
    assert car is not None  # the caller looked
    if not {*car.bounds} | {*car.estimated} <= {*car.values}:
        raise ModelError(
            "bounds or a state of a parameter are given, but no value.", where=part_at(SECTION), source=machine.name
        )
    own = {} if u is None or not _independent(machine) else dict(zip(u.names, u.sigma.tolist(), strict=True))
    lines = [f"{SECTION}:", f"  tyre: {name_text(car.tyre)}"]
    for key, value in car.values.items():
        parts = {"value": number_text(value)}
        if key in car.estimated:
            parts |= {"sigma": number_text(own[key])} if key in own else {}
        elif key in car.bounds:
            parts["sigma"] = "0"
        ends = car.bounds.get(key, (-np.inf, np.inf))
        parts |= {word: number_text(x) for word, x in zip(("lower", "upper"), ends, strict=True) if np.isfinite(x)}
        known = key not in car.estimated and key not in car.bounds
        lines.append(
            f"  {key}: {parts['value'] if known else mapping_text(parts)}  # {TABLE[key].what}, {TABLE[key].unit}"
        )
    sensors = [flow("  - ", sensor_text(s)) for s in machine.sensors]
    lines += ["sensors:", *sensors] if sensors else ["sensors: []"]
    p, plain = machine.parameters, car_parameters(car)
    sizes = {n: number_text(x) for n, x, y in zip(p.names, p.typical, plain.typical, strict=True) if x != y}
    section = [flow("  typical: ", sizes)] if sizes else []
    section += [flow("  drifts: ", drift_texts(p.drifts))] if p.drifts else []
    section += uncertainty_lines(u) if u is not None and not own else []
    return [*lines, *(["parameters:", *section] if section else [])]


def _independent(machine: Machine) -> bool:
    """Whether deviations with the parameters say all: of estimated ones, in order, independent, and squares bring back the variances."""
    u, car = machine.uncertainty, machine.car
    assert u is not None and car is not None
    estimated = tuple(n for n in car.estimated if n in u.names)
    return (
        u.names == estimated and bool(np.array_equal(np.diag(u.sigma**2), u.covariance)) and bool((u.sigma > 0.0).all())
    )
