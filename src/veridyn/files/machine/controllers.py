"""The section ``controllers`` of a model file: control laws of the machine's own drives, read and written."""

from __future__ import annotations

import math
from typing import cast

from ruamel.yaml.nodes import Node

from veridyn.errors import At, part_at
from veridyn.files.machine.keys import CONTROLLER
from veridyn.files.machine.write_parts import mapping_text, name_text, number_text
from veridyn.files.yaml_nodes import line_of
from veridyn.files.yaml_reader import Reader
from veridyn.model.controller import (
    ANTI_WINDUPS,
    CONTROLLER_CONSTANTS,
    CONTROLLER_KINDS,
    FEEDFORWARDS,
    AntiWindup,
    Controller,
    ControllerKind,
    Feedforward,
)


def read_controllers(read: Reader, node: Node, lines: dict[At, int]) -> list[Controller]:
    """The controllers of a file; `lines` gets the line of each."""
    found = []
    for name, key, item, inside in read.named(node, "controllers", "controller"):
        lines["controller", name] = line_of(key)
        found.append(_controller(read, item, name, inside))
    return [c for c in found if c is not None]


def _controller(read: Reader, node: Node, name: str, inside: bool) -> Controller | None:
    where = part_at("controller", name)
    at = read.mapping(node, where, ("name", *CONTROLLER) if inside else CONTROLLER, required=("kind", "on", "rate"))
    chosen = {
        key: read.choice(at[key], where, key, allowed) if key in at else default
        for key, allowed, default in (
            ("kind", tuple(CONTROLLER_KINDS), None),
            ("feedforward", FEEDFORWARDS, "none"),
            ("anti_windup", ANTI_WINDUPS, "clamp"),
        )
    }
    numbers = {
        key: read.number(at[key], where, key) for key in (*CONTROLLER_CONSTANTS, "rate", "current_rate") if key in at
    }
    sigma: dict[str, float] = {}
    if "sigma" in at:
        for key, _, value in read.items(at["sigma"], where, "{kp: 2}"):
            sigma[key] = read.number(value, where, f"the standard deviation of {key}", fallback=1.0)
    if None in chosen.values() or "on" not in at or "rate" not in at or any(map(math.isnan, numbers.values())):
        return None  # the fault is noted
    return Controller(
        name=name,
        kind=cast(ControllerKind, chosen["kind"]),
        on=read.optional_text(at, where, "on"),
        rate=numbers.pop("rate"),
        current_rate=numbers.pop("current_rate", None),
        constants=numbers,
        feedforward=cast(Feedforward, chosen["feedforward"]),
        anti_windup=cast(AntiWindup, chosen["anti_windup"]),
        motor=read.optional_text(at, where, "motor"),
        sigma=sigma,
    )


def controller_text(c: Controller) -> dict[str, str]:
    """A controller as a model file has it."""
    out = {"name": name_text(c.name), "kind": c.kind, "on": name_text(c.on), "rate": number_text(c.rate)}
    out |= {key: number_text(x) for key, x in c.constants.items()}
    words = (("feedforward", c.feedforward, "none"), ("anti_windup", c.anti_windup, "clamp"))
    out |= {key: f'"{word}"' if word == "none" else word for key, word, usual in words if word != usual}
    out |= {"motor": name_text(c.motor)} if c.motor else {}
    out |= {} if c.current_rate is None else {"current_rate": number_text(c.current_rate)}
    return out | ({"sigma": mapping_text({k: number_text(s) for k, s in c.sigma.items()})} if c.sigma else {})
