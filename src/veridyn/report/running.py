"""The machine in 3-D in its report: a motion of a mechanism, a log that is replayed, and the machine running by itself.

A replay shows measured and predicted forces at the joints, and how far they are apart as colour. The identified machine runs by forward
dynamics and places as WebAssembly, with sliders, in the page itself:

    a = M(q)⁻¹ (τ − bias(q, q̇; φ)),    φ = the identified parameters, one of them moved within its deviation

The page integrates by the classical Runge-Kutta method with a step that Python chooses from the fastest mode of the machine.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import VeridynError
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.dynamics.engine import uniform_values
from veridyn.mechanics.tree.dynamics.formula import Formula, formula
from veridyn.mechanics.tree.dynamics.forward import check_mass, mass_matrix
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.recursion.sensing import Output
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.report import number
from veridyn.report.blocks import DRAWING_ERRORS, Section, Text, undrawn
from veridyn.symbolic.emit_wasm import WasmModule, emit_wasm
from veridyn.view.scene import drawn_places, tree_layer

MAX_KERNEL_BYTES = 600_000  # of both kernels; a page stays far below 3 MB
MAX_GRAPH_OPERATIONS = 60_000  # of the graph, before code is made of it
FRICTION_SPEED = 0.05  # rad/s or m/s, below which dry friction is rounded off
LONGEST_STEP_S, SHORTEST_STEP_S = 1e-3, 2e-5
STABLE_RATE_STEP = 1.5  # of the largest rate times the step: the Runge-Kutta method is stable up to 2.8
CHECKED_POSES = 20


@dataclass(frozen=True)
class RunningMachine:
    """A machine that runs in the page: what its script needs, as JSON, and what stands below it."""

    title: str
    about: dict[str, object]
    caption: str = ""
    kind: str = field(default="running", init=False)

    @property
    def coordinates(self) -> list[dict[str, object]]:
        return self.about["coordinates"]  # pyright: ignore[reportReturnType]

    @property
    def parameters(self) -> list[dict[str, object]]:
        return self.about["parameters"]  # pyright: ignore[reportReturnType]

    @property
    def drawn(self) -> bool:
        """Whether there is a line to draw."""
        return bool(self.about["segments"])

    @property
    def heads(self) -> tuple[str, str, str]:
        """What stands above positions, speeds and accelerations, with the units of all joints."""
        units = list(dict.fromkeys(str(c["unit"]) for c in self.coordinates))
        words = ("angle" if units == ["rad"] else "position", ""), ("speed", "/s"), ("acceleration", "/s²")
        return tuple(f"{word}, {' or '.join(u + per for u in units)}" for word, per in words)  # pyright: ignore[reportReturnType]

    def payload(self) -> str:
        """The JSON, which cannot end the script element it stands in."""
        return json.dumps(self.about, separators=(",", ":")).replace("<", "\\u003c")


def running_section(fit: Fit, motion: Motion) -> Section:
    """The section of a report in which its machine runs, or in which it says why it does not."""
    lead = (
        "These are the identified equations, not a film: move a joint, let the machine fall, push it, and change a parameter within its "
        "standard deviation to see how far the prediction depends on it."
    )
    machine = fit.described
    reason = ""
    if machine.base == "free":
        reason = "its base is free, and would need a ground to stand on"
    elif machine.closed:
        reason = "it has closed loops, which the page does not close"
    elif machine.states or machine.prescribed:
        reason = "it has states or prescribed coordinates besides those of its joints"
    if reason:
        return Section("The identified machine", [Text(f"“{machine.name}” does not run in this page: {reason}.")])
    try:
        made = running_machine(fit, motion)
    except VeridynError as error:
        return Section("The identified machine", [Text(f"“{machine.name}” does not run in this page. {error}")])
    except DRAWING_ERRORS as error:
        return Section("The identified machine", [undrawn("The identified machine", error)])
    if made is None:
        what = f"its equations are longer than a page should carry ({number(MAX_KERNEL_BYTES / 1000, 3)} kB of WebAssembly)"
        return Section("The identified machine", [Text(f"“{machine.name}” does not run in this page: {what}.")])
    return Section("The identified machine", [made], lead)


def running_machine(fit: Fit, motion: Motion) -> RunningMachine | None:
    """The machine of a fit, posed as in the first sample of a motion; None where its kernels are too large.

    An IdentificationError where the mass matrix is not positive definite: then the identified values are those of no machine.
    """
    phi = fit.standard
    machine = fit.described.with_parameters(phi)
    some = np.unique(np.linspace(0, len(motion) - 1, CHECKED_POSES).astype(int))
    tree = tree_of(machine)
    check_mass(tree, mass_matrix(machine, motion.q[some], phi))
    forward = formula(tree, Request("forward", tuple(range(len(machine.rows))), friction_speed=FRICTION_SPEED))
    places = drawn_places(machine)
    outputs = tuple(
        Output(kind="position", on=body, at=at, along=axis)
        for body, at in places
        for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    )
    points = formula(tree, Request("readings", columns=outputs))
    if len(forward.graph.operation) + len(points.graph.operation) > MAX_GRAPH_OPERATIONS:
        return None
    kernels = [emit_wasm(f.graph, f.outputs, f.samples, f.parameters) for f in (forward, points)]
    if sum(len(k.code) for k in kernels) > MAX_KERNEL_BYTES:
        return None
    drawn = tree_layer(machine, motion.q[some], "")
    low, high = drawn.points.reshape(-1, 3).min(axis=0), drawn.points.reshape(-1, 3).max(axis=0)
    step, notes = _step(machine, motion.q[0], phi)
    about: dict[str, object] = {
        "coordinates": _coordinates(machine, motion),
        "forward": {**_kernel(kernels[0], forward, machine, phi), "outputs": [label[0] for label in forward.labels]},
        "points": {
            **_kernel(kernels[1], points, machine, phi),
            "outputs": [label[0] for label in points.labels],
            "size": len(outputs),
        },
        "parameters": _parameters(fit, forward),
        "segments": [list(s) for s in drawn.segments],
        "middle": ((low + high) / 2.0).tolist(),
        "floor": float(low[2]),
        "reach": float(0.6 * np.linalg.norm(high - low)) or 1.0,
        "step": step,
    }
    size = sum(len(k.code) for k in kernels)
    caption = (
        f"{number(size / 1000, 3)} kB of WebAssembly from the same expressions that identified it; classical Runge-Kutta steps of "
        f"{number(1e3 * step, 3)} ms; dry friction is rounded off below {FRICTION_SPEED:g} rad/s or m/s; joints have no end stops. {notes}"
    )
    return RunningMachine(machine.name, about, caption.strip())


def _kernel(made: WasmModule, f: Formula, machine: Machine, phi: Array) -> dict[str, object]:
    samples = [_input(*name.partition(".")[::2]) for name in f.samples]
    values = uniform_values(tree_of(machine), phi, f.parameters).tolist()
    return {"code": base64.b64encode(made.code).decode(), "samples": samples, "values": values}


def _input(kind: str, rest: str) -> list[object]:
    """Where the page finds an input: q, q̇ or τ by number; signals of drives and all else are zero there."""
    return [kind, int(rest)] if kind in ("q", "qd", "t") else ["zero", 0]


def _coordinates(machine: Machine, motion: Motion) -> list[dict[str, object]]:
    found = []
    for k, (name, kind) in enumerate(zip(machine.coordinates, machine.coordinate_kinds, strict=True)):
        turning, q = kind == "turning", motion.q[:, k]
        wide = np.pi if turning else max(float(np.ptp(q)), 0.1)
        force = np.nan if motion.forces is None else float(np.nanmax(np.abs(motion.forces[:, k]), initial=0.0))
        found.append(
            {
                "name": name,
                "unit": "rad" if turning else "m",
                "force_unit": "N*m" if turning else "N",
                "low": float(min(q.min(), q[0] - wide)),
                "high": float(max(q.max(), q[0] + wide)),
                "home": float(q[0]),
                "force": float(f"{force:.2g}") if np.isfinite(force) and force > 0.0 else 1.0,
            }
        )
    return found


def _parameters(fit: Fit, forward: Formula) -> list[dict[str, object]]:
    """Base parameters that move the equations: χ_i by δ is its leading standard parameter by δ, and what is tied to that."""
    p, found = fit.described.parameters, []
    place = {name: k for k, name in enumerate(forward.parameters)}
    rows = zip(fit.names, fit.units, fit.values, fit.sigma, fit.base.columns, strict=True)
    for name, unit, value, sigma, column in rows:
        lead = p.names[column]
        members = {column: 1.0} | {p.index(n): tie.factor for n, tie in p.ties.items() if tie.to == lead}
        moves = [[place[f"p.{c}"], factor] for c, factor in members.items() if f"p.{c}" in place]
        if moves and np.isfinite(sigma) and sigma > 0.0:
            found.append({"name": name, "unit": unit, "value": float(value), "sigma": float(sigma), "moves": moves})
    return found


def _step(machine: Machine, q: Array, phi: Array) -> tuple[float, str]:
    """A step (s) that the fastest decay of the machine at rest allows, and a sentence where it is too fast for that."""
    M = mass_matrix(machine, q[None], phi)[0]
    damping = np.zeros(machine.n)
    for e in machine.elements:
        value = float(phi[machine.parameters.index(e.parameter_name)])
        for name, factor in e.on.items():
            if e.kind == "damper":
                damping[machine.coordinates.index(name)] += abs(value) * factor**2
            elif e.kind == "coulomb":
                damping[machine.coordinates.index(name)] += abs(value * factor) / FRICTION_SPEED
    fastest = float(np.abs(np.linalg.eigvals(np.linalg.solve(M, np.diag(damping)))).max(initial=0.0))
    wanted = min(LONGEST_STEP_S, STABLE_RATE_STEP / fastest if fastest > 0.0 else LONGEST_STEP_S)
    if wanted < SHORTEST_STEP_S:
        return SHORTEST_STEP_S, "Its friction is too stiff for this step: the motion in the page may not stay finite."
    return float(f"{wanted:.2g}"), ""
